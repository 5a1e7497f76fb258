//! Other programs that set up compressed swap.

use eke_linux::Root;

use super::zram_generator;
use crate::facts::Manager;

/// How to detect a program.
struct Known {
    name: &'static str,
    /// It is installed if any of these exists.
    programs: &'static [&'static str],
    /// It acts at boot if any of these exists, too.
    switches: &'static [&'static str],
    /// Its device, if it always has the same.
    device: Option<&'static str>,
}

/// All known programs but zram-generator, with the files of each project's own packaging.
const KNOWN: &[Known] = &[
    Known {
        name: "zram-tools",
        programs: &["usr/sbin/zramswap", "etc/default/zramswap"],
        switches: &["etc/systemd/system/multi-user.target.wants/zramswap.service", "etc/rc2.d/S01zramswap"],
        device: Some("zram0"),
    },
    Known {
        name: "rpi-swap",
        programs: &[
            "usr/lib/systemd/system-generators/rpi-swap-generator",
            "etc/rpi/swap.conf",
            "usr/lib/rpi/swap.conf",
        ],
        switches: &["usr/lib/systemd/system-generators/rpi-swap-generator"],
        device: Some("zram0"),
    },
    Known {
        name: "zram-config (Ubuntu)",
        programs: &["usr/bin/init-zram-swapping"],
        switches: &[
            "etc/systemd/system/multi-user.target.wants/zram-config.service",
            "lib/systemd/system/zram-config.service",
        ],
        device: Some("zram0"),
    },
    Known {
        name: "zram-config (ztab)",
        programs: &["etc/ztab", "usr/local/sbin/zram-config"],
        switches: &[
            "etc/systemd/system/multi-user.target.wants/zram-config.service",
            "etc/systemd/system/zram-config.service",
        ],
        device: None,
    },
    Known {
        name: "systemd-swap",
        programs: &["usr/bin/systemd-swap", "etc/systemd/swap.conf"],
        switches: &["etc/systemd/system/multi-user.target.wants/systemd-swap.service"],
        device: None,
    },
    Known {
        name: "zram-init",
        programs: &["etc/conf.d/zram-init", "sbin/zram-init", "usr/sbin/zram-init"],
        switches: &["etc/runlevels/boot/zram-init", "etc/runlevels/default/zram-init"],
        device: Some("zram0"),
    },
    Known {
        name: "zramd",
        programs: &["usr/bin/zramd", "etc/default/zramd"],
        switches: &["etc/systemd/system/multi-user.target.wants/zramd.service"],
        device: Some("zram0"),
    },
    Known {
        name: "pop-zram",
        programs: &["usr/bin/pop-zram-config", "etc/default/pop-zram"],
        switches: &["usr/bin/pop-zram-config"],
        device: Some("zram0"),
    },
    Known {
        name: "zswap-cli",
        programs: &["usr/bin/zswap-cli", "etc/zswap-cli.conf"],
        switches: &["etc/systemd/system/multi-user.target.wants/zswap-cli.service"],
        device: None,
    },
];

/// The installed ones.
pub(crate) fn installed(root: &Root) -> Vec<Manager> {
    let others = KNOWN.iter().filter_map(|known| detect(root, known));
    zram_generator::installed(root).into_iter().chain(others).collect()
}

fn detect(root: &Root, known: &Known) -> Option<Manager> {
    // units are enabled by links, whose targets may be outside this root
    let exists = |file: &&&str| root.path(file).symlink_metadata().is_ok();
    let programs: Vec<&&str> = known.programs.iter().filter(exists).collect();
    let switches: Vec<&&str> = known.switches.iter().filter(exists).collect();
    let mut found: Vec<String> = programs.iter().chain(&switches).map(|f| format!("/{f}")).collect();
    found.dedup();
    let active = !programs.is_empty() && !switches.is_empty();
    (!found.is_empty()).then(|| Manager {
        name: known.name.into(),
        found,
        active,
        devices: known.device.map(str::to_owned).into_iter().collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eke_starts_after_every_known_service() {
        let unit = include_str!("../../../../units/eke.service");
        let after: Vec<&str> = unit.lines().filter_map(|l| l.strip_prefix("After=")).collect();
        let after: Vec<&str> = after.iter().flat_map(|l| l.split_whitespace()).collect();
        let services = KNOWN.iter().flat_map(|known| known.switches);
        for service in services.filter_map(|s| s.rsplit('/').next()).filter(|s| s.ends_with(".service")) {
            assert!(after.contains(&service), "{service} may start after eke.service");
        }
    }
}
