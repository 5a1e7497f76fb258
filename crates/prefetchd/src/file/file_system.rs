//! Which file system is on a block device, by what udev has found there (`/run/udev/data`): a device's name and number may be another one's after a boot.
//! So a device is learned by the path that udev gives it by the UUID of its file system, where that is known.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_linux::device::Device;
use rustix::fs::{Mode, OFlags, openat};

use eke_prefetch_model::program::ProgramId;

/// Where udev's links to devices are, and how each begins there.
const BY_UUID: &str = "/dev/disk/by-uuid";
const TO_DEV: &str = "../..";

/// A hash of the file system's UUID; 0 if udev knows none.
pub(crate) fn of_udev(text: &str) -> u64 {
    uuid(text).map_or(0, |uuid| ProgramId::of_name(uuid.as_bytes()).0)
}

fn uuid(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("E:ID_FS_UUID="))
}

/// The path of a device that stays the same whatever the kernel names it, if udev knows a UUID that it writes as it is.
pub(crate) fn path(text: &str) -> Option<PathBuf> {
    let is_plain = |uuid: &&str| uuid.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    Some(Path::new(BY_UUID).join(uuid(text).filter(is_plain)?))
}

/// Whether a path is such a one.
pub(crate) fn is_by_uuid(path: &Path) -> bool {
    path.parent() == Some(Path::new(BY_UUID))
}

/// The kernel's path of a device that is learned by its UUID; `None` if no such file system is here.
pub(crate) fn node(root: &Root, path: &Path) -> Option<PathBuf> {
    let target = std::fs::read_link(root.path(path)).ok()?;
    Some(Path::new("/dev").join(target.strip_prefix(TO_DEV).ok()?))
}

/// What udev stores of a device, from the root.
pub(crate) fn udev_file(device: u64) -> String {
    format!("run/udev/data/b{}", Device::of(device))
}

/// The same hash for a device below the directory `root`.
pub(crate) fn on(root: &OwnedFd, device: u64) -> u64 {
    let mut text = String::new();
    let opened = openat(root, udev_file(device), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let read = opened.map(|fd| File::from(fd).read_to_string(&mut text));
    if matches!(read, Ok(Ok(_))) { of_udev(&text) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_is_known_by_its_uuid() {
        let of = |uuid: &str| of_udev(&format!("S:disk/by-uuid/x\nE:ID_FS_TYPE=ext4\nE:ID_FS_UUID={uuid}\n"));
        assert!(of("a-1") != 0 && of("a-1") == of("a-1") && of("a-1") != of("a-2"));
        assert_eq!(of_udev("E:ID_FS_TYPE=ext4\nE:ID_FS_UUID_ENC=a-1\n"), 0);
        assert_eq!(path("E:ID_FS_UUID=a-1\n"), Some("/dev/disk/by-uuid/a-1".into()));
        assert_eq!((path("E:ID_FS_UUID=../a\n"), path("E:ID_FS_UUID=a b\n"), path("")), (None, None, None));
    }
}
