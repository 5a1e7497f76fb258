//! Finds mounts of a device in `/proc/mounts`. Pure.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use eke_linux::parse::escape::unescape;

/// The mount points of `source` in the text of `/proc/mounts` (proc_pid_mounts(5)), the last mount first.
pub(super) fn targets(mounts: &str, source: &Path) -> Vec<PathBuf> {
    let fields = mounts.lines().filter_map(|line| line.split_once(' '));
    let of_source = fields.filter(|(from, _)| unescaped(from) == source);
    let mut targets: Vec<_> =
        of_source.filter_map(|(_, rest)| rest.split(' ').next()).map(unescaped).collect();
    targets.reverse();
    targets
}

/// Whether something is mounted at `target`.
pub(super) fn is_target(mounts: &str, target: &Path) -> bool {
    mounts.lines().filter_map(|line| line.split(' ').nth(1)).any(|t| unescaped(t) == target)
}

fn unescaped(field: &str) -> PathBuf {
    OsString::from_vec(unescape(field.as_bytes())).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "/dev/vda / ext4 rw 0 0\n/dev/loop1 /a ext4 rw 0 0\n/dev/loop11 /x ext4 rw 0 0\n\
                          /dev/loop1 /b\\040c ext4 ro 0 0\n";

    #[test]
    fn the_last_mount_comes_first_and_blanks_are_unescaped() {
        assert_eq!(targets(MOUNTS, Path::new("/dev/loop1")), [Path::new("/b c"), Path::new("/a")]);
        assert!(targets(MOUNTS, Path::new("/dev/loop2")).is_empty());
        assert!(is_target(MOUNTS, Path::new("/b c")) && !is_target(MOUNTS, Path::new("/b")));
    }
}
