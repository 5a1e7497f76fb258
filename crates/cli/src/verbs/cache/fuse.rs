//! This machine's support for FUSE: facts, and the lines of `eke doctor`.

use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_linux::parse::release::version;
use eke_linux::read::kernel_release;
use rustix::fs::{Access, access};

use crate::documents::DoctorLine;

/// The device's number (Documentation/admin-guide/devices.txt: 10 is "misc", 229 is "fuse").
const DEVICE: (u32, u32) = (10, 229);
/// The first kernel with openat2(2), which reaches sockets without following another user's mount. pidfd_open(2), for watching processes,
/// is older (5.3), and so is appending by pwritev2(2) (4.16).
const OLDEST: (u32, u32) = (5, 6);
/// The first kernel with FUSE_NOTIFY_RESEND and passthrough.
const RESEND: (u32, u32) = (6, 9);

/// fusermount3 opens the device with the rights of its caller.
const CLOSED: &str = "/dev/fuse is not open to you: use sudo, or have root do `chmod 666 /dev/fuse` (in a container: allow the device)";

/// Directories where `eke-cache` also searches for fusermount3: the PATH of a service may lack them.
const ALSO: [&str; 5] = ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin"];

/// The facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fuse {
    /// Why `/dev/fuse` is not usable by this user; `None` if it is.
    pub no_device: Option<String>,
    /// `fusermount3` was found.
    pub fusermount: bool,
    /// `/etc/fuse.conf` has `user_allow_other`.
    pub user_allow_other: bool,
    /// The kernel's version, if it can be read.
    pub version: Option<(u32, u32)>,
}

impl Fuse {
    /// Reads the facts; `path` is `PATH`.
    pub fn read(root: &Root, path: &std::ffi::OsStr) -> Self {
        let conf = root.read("etc/fuse.conf").unwrap_or_default();
        Self {
            no_device: device(&root.path("dev/fuse")).err(),
            fusermount: std::env::split_paths(path)
                .chain(ALSO.map(PathBuf::from))
                .any(|dir| root.path(dir.join("fusermount3")).is_file()),
            user_allow_other: allows_others(&conf),
            version: version(&kernel_release(root)),
        }
    }

    /// This machine's.
    pub fn host(root: &Root) -> Self {
        Self::read(root, &std::env::var_os("PATH").unwrap_or_default())
    }

    /// Why this kernel is too old for `eke-cache`; an unreadable version counts as new enough.
    pub fn too_old(&self) -> Option<String> {
        let (major, minor) = self.version.filter(|v| *v < OLDEST)?;
        Some(format!("Linux {major}.{minor} is too old: `eke cache` needs 5.6 or newer (openat2)"))
    }

    /// Whether another user can use `/dev/fuse`.
    pub fn is_closed(&self) -> bool {
        self.no_device.as_deref() == Some(CLOSED)
    }

    fn resends(&self) -> bool {
        self.version.is_some_and(|v| v >= RESEND)
    }

    /// For `eke doctor`.
    pub fn lines(&self) -> Vec<DoctorLine> {
        vec![
            DoctorLine {
                what: "FUSE".into(),
                available: self.no_device.is_none() && self.too_old().is_none(),
                why: match self.no_device.clone().or(self.too_old()) {
                    None => "`eke cache` can mount".into(),
                    Some(why) => format!("{why}: `eke cache` cannot mount"),
                },
            },
            line(
                "fusermount3",
                self.fusermount,
                "`eke cache` works without root",
                "not in PATH (package fuse3): only root can use `eke cache`",
            ),
            line(
                "user_allow_other",
                self.user_allow_other,
                "users other than root can share their cache (--allow-other)",
                "not in /etc/fuse.conf: a cache mounted without root is visible to its user only",
            ),
            line(
                "FUSE resend",
                self.resends(),
                "if a cache's worker dies, another one takes over",
                "needs Linux 6.9: without it a cache is unmounted if its worker dies",
            ),
            line(
                "FUSE passthrough",
                self.resends(),
                "as root, uncached files are read natively (CONFIG_FUSE_PASSTHROUGH)",
                "needs Linux 6.9: without it uncached files are read through the cache's process",
            ),
        ]
    }
}

fn line(what: &str, available: bool, yes: &str, no: &str) -> DoctorLine {
    DoctorLine { what: what.into(), available, why: if available { yes.into() } else { no.into() } }
}

fn device(path: &Path) -> Result<(), String> {
    let meta =
        std::fs::metadata(path).map_err(|_| "no /dev/fuse (`modprobe fuse`, CONFIG_FUSE_FS)".to_owned())?;
    let number = (rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev()));
    if !meta.file_type().is_char_device() || number != DEVICE {
        return Err("/dev/fuse is not the FUSE device (hidden by a sandbox?)".into());
    }
    access(path, Access::READ_OK | Access::WRITE_OK).map_err(|_| CLOSED.to_owned())
}

fn allows_others(conf: &str) -> bool {
    conf.lines().any(|l| l.trim() == "user_allow_other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_is_read() {
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
            assert!(fuse(release).too_old().is_none() && fuse(release).lines()[0].available, "{release}");
        }
        for release in ["5.5.19", "4.19.0-27-amd64"] {
            let old = fuse(release);
            assert!(
                !old.lines()[0].available && old.lines()[0].why.contains("needs 5.6 or newer"),
                "{release}"
            );
        }
    }

    #[test]
    fn what_is_missing_is_reported_with_its_effect() {
        let root = tempfile::tempdir().unwrap();
        let fuse = Fuse::read(&Root::at(root.path()), "/opt/bin".as_ref());
        assert!(fuse.lines().iter().all(|l| !l.available));
        eke_testkit::tree::put(root.path(), "opt/bin/fusermount3", "");
        eke_testkit::tree::put(root.path(), "etc/fuse.conf", "user_allow_other\n");
        eke_testkit::tree::put(root.path(), "proc/sys/kernel/osrelease", "6.9.1\n");
        eke_testkit::tree::put(root.path(), "dev/fuse", "");
        let fuse = Fuse::read(&Root::at(root.path()), "/opt/bin".as_ref());
        let available: Vec<bool> = fuse.lines().iter().map(|l| l.available).collect();
        assert_eq!(available, [false, true, true, true, true]);
        assert!(fuse.lines()[0].why.contains("hidden by a sandbox"));
    }
}
