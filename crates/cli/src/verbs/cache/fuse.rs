//! What this machine has of FUSE: facts, and the lines that `eke doctor` makes of them.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use eke_linux::Root;

use crate::documents::DoctorLine;

/// The device's number (Documentation/admin-guide/devices.txt: 10 is "misc", 229 is "fuse").
const DEVICE: (u32, u32) = (10, 229);
/// openat2(2), by which sockets are reached without a step onto another's mount, came with this one; pidfd_open(2), by which the supervisor
/// watches its processes, is older (5.3), and so is appending by pwritev2(2) (4.16).
const OLDEST: (u32, u32) = (5, 6);
/// FUSE_NOTIFY_RESEND and passthrough came with this one.
const RESEND: (u32, u32) = (6, 9);

/// Where `eke-cache` looks for fusermount3 too: a service's path may lack them.
const ALSO: [&str; 5] = ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"];

/// What there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fuse {
    /// Why there is no `/dev/fuse`; none: there is.
    pub no_device: Option<String>,
    /// Is `fusermount3` on the path?
    pub fusermount: bool,
    /// Does `/etc/fuse.conf` have `user_allow_other`?
    pub user_allow_other: bool,
    /// Of the kernel, if it can be read.
    pub version: Option<(u32, u32)>,
}

impl Fuse {
    /// Reads it; `path` is `PATH`.
    pub fn read(root: &Root, path: &std::ffi::OsStr) -> Self {
        let conf = root.read("etc/fuse.conf").unwrap_or_default();
        let release = root.read("proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            no_device: device(&root.path("dev/fuse")).err(),
            fusermount: std::env::split_paths(path)
                .chain(ALSO.map(PathBuf::from))
                .any(|dir| root.path(dir.join("fusermount3")).is_file()),
            user_allow_other: allows_others(&conf),
            version: version(&release),
        }
    }

    /// This machine's.
    pub fn host(root: &Root) -> Self {
        Self::read(root, &std::env::var_os("PATH").unwrap_or_default())
    }

    /// Why this kernel cannot do what `eke-cache` needs; a version that cannot be read is tried.
    pub fn too_old(&self) -> Option<String> {
        let (major, minor) = self.version.filter(|v| *v < OLDEST)?;
        Some(format!("Linux {major}.{minor} is too old: `eke cache` needs 5.6 or newer (openat2)"))
    }

    fn resends(&self) -> bool {
        self.version.is_some_and(|v| v >= RESEND)
    }

    /// For `eke doctor`.
    pub fn lines(&self) -> Vec<DoctorLine> {
        vec![
            DoctorLine {
                what: "FUSE".into(),
                there: self.no_device.is_none() && self.too_old().is_none(),
                why: match self.no_device.clone().or(self.too_old()) {
                    None => "`eke cache` can mount".into(),
                    Some(why) => format!("{why}: `eke cache` cannot mount"),
                },
            },
            line(
                "fusermount3",
                self.fusermount,
                "`eke cache` works without root",
                "not on the path (package fuse3): only root can use `eke cache`",
            ),
            line(
                "user_allow_other",
                self.user_allow_other,
                "others than root may let others see their cache (--allow-other)",
                "not in /etc/fuse.conf: without root only who mounts a cache sees it",
            ),
            line(
                "FUSE resend",
                self.resends(),
                "a cache whose worker dies goes on with another",
                "Linux 6.9 has it: without it a cache whose worker dies is unmounted",
            ),
            line(
                "FUSE passthrough",
                self.resends(),
                "as root, files that a cache does not pay for are read natively (CONFIG_FUSE_PASSTHROUGH)",
                "Linux 6.9 has it: without it files that a cache does not pay for are read by way of it, uncached",
            ),
        ]
    }
}

fn line(what: &str, there: bool, yes: &str, no: &str) -> DoctorLine {
    DoctorLine { what: what.into(), there, why: if there { yes.into() } else { no.into() } }
}

fn device(path: &Path) -> Result<(), String> {
    let meta =
        std::fs::metadata(path).map_err(|_| "no /dev/fuse (`modprobe fuse`, CONFIG_FUSE_FS)".to_owned())?;
    let number = (rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev()));
    if meta.file_type().is_char_device() && number == DEVICE {
        return Ok(());
    }
    Err("/dev/fuse is not the FUSE device (hidden by a sandbox?)".into())
}

fn allows_others(conf: &str) -> bool {
    conf.lines().any(|l| l.trim() == "user_allow_other")
}

/// 6 and 18 of `6.18.44-cloud-amd64`.
pub fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_configuration_are_read() {
        assert_eq!(version("6.18.44-cloud-amd64\n"), Some((6, 18)));
        assert_eq!(version("5.10-rc1"), Some((5, 10)));
        assert_eq!(version(""), None);
        assert!(allows_others("# comment\n user_allow_other\nmount_max = 9\n"));
        assert!(!allows_others("#user_allow_other\n"));
    }

    #[test]
    fn a_kernel_that_is_too_old_is_named_with_the_oldest_that_is_not() {
        let root = tempfile::tempdir().unwrap();
        let fuse = |release: &str| {
            eke_testkit::tree::put(root.path(), "proc/sys/kernel/osrelease", release);
            Fuse { no_device: None, ..Fuse::read(&Root::at(root.path()), "".as_ref()) }
        };
        for release in ["5.6.0", "6.18.44-cloud-amd64", "unreadable"] {
            assert!(fuse(release).too_old().is_none() && fuse(release).lines()[0].there, "{release}");
        }
        for release in ["5.5.19", "4.19.0-27-amd64"] {
            let old = fuse(release);
            assert!(!old.lines()[0].there && old.lines()[0].why.contains("needs 5.6 or newer"), "{release}");
        }
    }

    #[test]
    fn what_is_missing_is_said_with_what_is_lost() {
        let root = tempfile::tempdir().unwrap();
        let fuse = Fuse::read(&Root::at(root.path()), "/opt/bin".as_ref());
        assert!(fuse.lines().iter().all(|l| !l.there));
        eke_testkit::tree::put(root.path(), "opt/bin/fusermount3", "");
        eke_testkit::tree::put(root.path(), "etc/fuse.conf", "user_allow_other\n");
        eke_testkit::tree::put(root.path(), "proc/sys/kernel/osrelease", "6.9.1\n");
        eke_testkit::tree::put(root.path(), "dev/fuse", "");
        let fuse = Fuse::read(&Root::at(root.path()), "/opt/bin".as_ref());
        let there: Vec<bool> = fuse.lines().iter().map(|l| l.there).collect();
        assert_eq!(there, [false, true, true, true, true]);
        assert!(fuse.lines()[0].why.contains("hidden by a sandbox"));
    }
}
