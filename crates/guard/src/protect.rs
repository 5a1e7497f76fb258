//! What the guard never stops, slows or ends. Pure.
//!
//! A name protects a process only if a user cannot choose it: the executable belongs to root, or root started the process. A user
//! chooses the name of a set-user-id program, by a link to it; and whoever makes a container's image chooses those in it.

use std::collections::{BTreeMap, BTreeSet};

use crate::process::Process;

/// Root sets this for services that must survive (`OOMScoreAdjust=` of systemd); lowering takes CAP_SYS_RESOURCE
/// (proc_pid_oom_score_adj(5)).
const KEPT_BY_ROOT: i32 = -500;

/// Sessions, remote access, desktops, network: without them nobody can see or help the machine.
const SESSION: &[&str] = &[
    "(sd-pam)",
    "X",
    "Xorg",
    "Xtigervnc",
    "Xvnc",
    "Xwayland",
    "agetty",
    "anacron",
    "at-spi-bus-launcher",
    "atd",
    "awesome",
    "bspwm",
    "budgie-panel",
    "budgie-wm",
    "cage",
    "cinnamon",
    "cinnamon-session-binary",
    "connmand",
    "containerd",
    "cosmic-comp",
    "cosmic-panel",
    "cosmic-session",
    "crond",
    "cron",
    "dbus-broker",
    "dbus-broker-launch",
    "dbus-daemon",
    "dhclient",
    "dhcpcd",
    "dockerd",
    "dropbear",
    "dwl",
    "dwm",
    "elogind",
    "elogind-daemon",
    "enlightenment",
    "fcron",
    "fluxbox",
    "gala",
    "gamescope",
    "gdm",
    "gdm-session-worker",
    "gdm-x-session",
    "gdm-wayland-session",
    "gdm3",
    "getty",
    "gnome-remote-desktop-daemon",
    "gnome-session-binary",
    "gnome-session-ctl",
    "gnome-shell",
    "greetd",
    "Hyprland",
    "i3",
    "icewm",
    "init",
    "iwd",
    "jwm",
    "kded5",
    "kded6",
    "ksmserver",
    "kwin_wayland",
    "kwin_x11",
    "labwc",
    "lightdm",
    "login",
    "lomiri",
    "lxdm",
    "lxpanel",
    "lxqt-panel",
    "lxqt-session",
    "lxsession",
    "ly",
    "magpie_wm",
    "marco",
    "mate-panel",
    "mate-session",
    "metacity",
    "mosh-server",
    "muffin",
    "mutter",
    "NetworkManager",
    "niri",
    "openbox",
    "openrc-init",
    "openrc-run",
    "openvpn",
    "phoc",
    "phosh",
    "pipewire",
    "pipewire-pulse",
    "plasma_session",
    "plasmashell",
    "pulseaudio",
    "river",
    "runsvdir",
    "screen",
    "sddm",
    "sddm-helper",
    "slim",
    "sshd",
    "sshd-auth",
    "sshd-session",
    "sssd",
    "sssd_be",
    "startplasma-wayland",
    "startplasma-x11",
    "supervise-daemon",
    "sway",
    "systemd",
    "systemd-homed",
    "systemd-journald",
    "systemd-logind",
    "systemd-networkd",
    "systemd-resolved",
    "systemd-timesyncd",
    "systemd-udevd",
    "tailscaled",
    "tmux",
    "udevd",
    "wayfire",
    "weston",
    "wf-panel-pi",
    "wireplumber",
    "wpa_supplicant",
    "xdm",
    "xfce4-panel",
    "xfce4-session",
    "xfdesktop",
    "xfwm4",
    "xrdp",
    "xrdp-sesman",
];

/// Package managers: a half-installed package is worse than a slow machine. What they started is protected with them.
const PACKAGES: &[&str] = &[
    "apk",
    "apt",
    "apt-get",
    "aptd",
    "aptitude",
    "dnf",
    "dnf-automatic",
    "dnf5",
    "dnf5daemon-server",
    "dpkg",
    "emerge",
    "eopkg",
    "flatpak",
    "fwupd",
    "guix-daemon",
    "microdnf",
    "nix-daemon",
    "opkg",
    "packagekitd",
    "pacman",
    "rpm",
    "rpm-ostree",
    "snapd",
    "synaptic",
    "tdnf",
    "transactional-update",
    "unattended-upgrade",
    "urpmi",
    "xbps-install",
    "xbps-reconfigure",
    "xbps-remove",
    "yum",
    "zypper",
];

/// Package managers that build, as users of their own. A build takes the most memory of all, and changes nothing but its own files until
/// root installs them: only what these do as root is protected.
const BUILDERS: &[&str] = &["emerge", "guix-daemon", "nix-daemon"];

/// The kernel's name of a process has at most so many bytes.
const COMM_BYTES: usize = 15;

/// eke itself.
const OWN: &[&str] = &["eke", "eke-agent", "eke-cache", "eke-dash", "eke-io", "eke-prefetch", "eke-record"];

/// Their session leaders hold logins and terminals.
pub(crate) const SHELLS: &[&str] = &[
    "ash", "bash", "busybox", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "sh", "tcsh", "yash",
    "zsh",
];

/// The pids that are protected: by `names` of the user's list too, and with everything that a package manager started, but for builds.
pub fn protected(processes: &[Process], names: &[String]) -> BTreeSet<u32> {
    let by_pid: BTreeMap<u32, &Process> = processes.iter().map(|p| (p.id.pid, p)).collect();
    let is = |p: &Process| {
        is_protected(p) || names.iter().any(|name| is_listed(p, name)) || has_installer_above(p, &by_pid)
    };
    processes.iter().filter(|p| is(p)).map(|p| p.id.pid).collect()
}

fn is_protected(process: &Process) -> bool {
    process.id.pid == 1
        || process.oom_score_adj <= KEPT_BY_ROOT
        || is_one_of(process, SESSION)
        || is_installer(process)
        || is_one_of(process, OWN)
        || process.id.pid == process.session && is_one_of(process, SHELLS)
}

/// A package manager that changes the machine. A user may start one too, with own hooks, to no effect but on that user's files.
fn is_installer(process: &Process) -> bool {
    process.is_roots && is_one_of(process, PACKAGES)
}

fn is_one_of(process: &Process, names: &[&str]) -> bool {
    names.iter().any(|name| is_called(process, name))
}

fn is_called(process: &Process, name: &str) -> bool {
    process.trusted_program.as_deref() == Some(name) || process.has_roots_name() && has_comm(process, name)
}

/// Root listed it, so a name counts in a container, too.
fn is_listed(process: &Process, name: &str) -> bool {
    process.contained_program.as_deref() == Some(name)
        || process.is_roots && has_comm(process, name)
        || is_called(process, name)
}

fn has_comm(process: &Process, name: &str) -> bool {
    process.name == name.get(..COMM_BYTES).unwrap_or(name)
}

fn has_installer_above(process: &Process, by_pid: &BTreeMap<u32, &Process>) -> bool {
    let mut seen = BTreeSet::new();
    let mut parent = process.parent;
    // Pids of one reading can form a circle if one was reused meanwhile.
    while let Some(above) = by_pid.get(&parent).filter(|_| seen.insert(parent)) {
        if is_installer(above) && (process.user == 0 || !is_one_of(above, BUILDERS)) {
            return true;
        }
        parent = above.parent;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::process;

    fn is_kept(process: Process) -> bool {
        protected(&[process], &["postgres".to_owned()]).len() == 1
    }

    #[test]
    fn names_count_only_if_a_user_cannot_choose_them() {
        assert!(is_kept(process(5, "sshd", 1)));
        let forged = Process { trusted_program: None, ..process(5, "sshd", 1) };
        assert!(!is_kept(forged.clone()), "a user's program that calls itself sshd");
        assert!(is_kept(Process { user: 0, is_roots: true, ..forged.clone() }));
        assert!(!is_kept(Process { user: 0, ..forged }), "a set-user-id program of a user");
        assert!(is_kept(process(5, "postgres", 1)), "the user's list");
        assert!(is_kept(process(5, "lxpanel", 1)) && is_kept(process(5, "awesome", 1)));
        assert!(is_kept(Process { is_roots: true, user: 0, ..process(5, "dnf5daemon-server", 1) }));
        assert!(!is_kept(process(5, "firefox", 1)));
        assert!(is_kept(Process { oom_score_adj: -900, ..process(5, "firefox", 1) }));
    }

    #[test]
    fn a_listed_name_counts_in_a_container_and_no_other() {
        let contained = |name: &str| {
            is_kept(Process {
                trusted_program: None,
                contained_program: Some(name.into()),
                ..process(5, name, 1)
            })
        };
        assert!(contained("postgres"));
        assert!(!contained("sshd"), "the container's maker chose it");
    }

    #[test]
    fn root_in_a_container_names_nothing_but_what_is_listed() {
        let contained = |name: &str| Process {
            user: 0,
            is_roots: true,
            is_contained: true,
            trusted_program: None,
            session: 5,
            ..process(5, name, 1)
        };
        for name in ["sshd", "apt", "init", "bash"] {
            assert!(!is_kept(contained(name)), "{name}");
        }
        assert!(is_kept(contained("postgres")), "a script that is listed");
        let below = Process { parent: 5, ..process(6, "cc1plus", 900) };
        assert!(protected(&[contained("apt"), below], &[]).is_empty());
    }

    /// A script of root has its name only from the kernel, which cuts it.
    #[test]
    fn a_long_name_of_a_script_counts_as_far_as_the_kernel_keeps_it() {
        let script = |name: &str, is_roots| {
            let user = if is_roots { 0 } else { 1000 };
            Process { user, is_roots, trusted_program: Some("bash".into()), ..process(5, name, 1) }
        };
        assert!(is_kept(script("unattended-upgr", true)) && is_kept(script("transactional-u", true)));
        assert!(!is_kept(script("transactional-u", false)));
        assert!(!is_kept(script("transactional", true)), "another program");
        assert!(is_kept(process(5, "gnome-remote-desktop-daemon", 1)), "the file name is not cut");
    }

    #[test]
    fn no_list_has_a_name_twice_and_builders_are_package_managers() {
        for names in [SESSION, PACKAGES, BUILDERS, SHELLS] {
            let distinct: BTreeSet<&str> = names.iter().copied().collect();
            assert_eq!(distinct.len(), names.len());
        }
        assert!(BUILDERS.iter().all(|name| PACKAGES.contains(name)));
    }

    #[test]
    fn a_shell_is_kept_if_it_leads_a_session() {
        assert!(is_kept(Process { session: 5, ..process(5, "bash", 1) }));
        assert!(!is_kept(process(5, "bash", 1)), "a script");
        assert!(
            !is_kept(Process { session: 5, ..process(5, "stressor", 1) }),
            "setsid makes every program a leader"
        );
    }

    #[test]
    fn what_a_package_manager_started_is_kept_with_it() {
        let script = Process { parent: 5, ..process(6, "postinst", 1) };
        let below = Process { parent: 6, ..process(7, "mkinitramfs", 1) };
        let other = Process { parent: 9, ..process(8, "mkinitramfs", 1) };
        let circle = Process { parent: 8, ..process(9, "x", 1) };
        let dpkg = |user, is_roots| Process { user, is_roots, ..process(5, "dpkg", 1) };
        let with = |dpkg| [dpkg, script.clone(), below.clone(), other.clone(), circle.clone()];
        assert_eq!(protected(&with(dpkg(0, true)), &[]), BTreeSet::from([5, 6, 7]));
        assert!(protected(&with(dpkg(1001, false)), &[]).is_empty(), "hooks of a user");
        assert!(protected(&with(dpkg(0, false)), &[]).is_empty(), "newgrp, by a link");
    }

    #[test]
    fn of_what_a_builder_started_only_what_runs_as_root_is_kept() {
        let kept = |installer: &str| {
            let root =
                |pid, parent, name| Process { user: 0, is_roots: true, parent, ..process(pid, name, 1) };
            let build = Process { user: 30_001, parent: 6, ..process(7, "cc1plus", 900) };
            let below = Process { user: 30_001, parent: 7, ..process(8, "ld", 900) };
            let all = [root(5, 1, installer), root(6, 5, "worker"), build, below];
            protected(&all, &[]).into_iter().collect::<Vec<_>>()
        };
        for builder in ["nix-daemon", "guix-daemon", "emerge"] {
            assert_eq!(kept(builder), [5, 6], "{builder}");
        }
        assert_eq!(kept("dpkg"), [5, 6, 7, 8], "apt's sandbox is another user, too");
    }
}
