//! Which file system is on a block device, by what udev has found there (`/run/udev/data`): a device's name and number may be another one's after a boot.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;

use eke_linux::device::Device;
use rustix::fs::{Mode, OFlags, openat};

use eke_prefetch_model::program::ProgramId;

/// A hash of the file system's UUID; 0 if udev knows none.
pub(crate) fn of_udev(text: &str) -> u64 {
    let uuid = text.lines().find_map(|line| line.strip_prefix("E:ID_FS_UUID="));
    uuid.map_or(0, |uuid| ProgramId::of_name(uuid.as_bytes()).0)
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
    }
}
