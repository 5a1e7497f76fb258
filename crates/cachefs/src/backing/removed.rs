//! Descriptors of inodes that no name leads to any more.
//!
//! When btrfs removes a subvolume, it takes away the subvolume's device number at once and gives it to the next one
//! (`btrfs_delete_subvolume` in fs/btrfs/inode.c). The links of the inodes inside stay.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Statx, StatxFlags, statx};

/// True if the inode lies in a removed subvolume.
pub fn is_of_removed_subvolume(file: impl AsFd) -> bool {
    stat(file).is_some_and(|found| has_no_device(&found))
}

/// True if the inode has lost its last name, or its subvolume was removed.
pub fn is_removed(file: impl AsFd) -> bool {
    stat(file).is_some_and(|found| found.stx_nlink == 0 || has_no_device(&found))
}

/// No file system has the device 0.
fn has_no_device(found: &Statx) -> bool {
    (found.stx_dev_major, found.stx_dev_minor) == (0, 0)
}

fn stat(file: impl AsFd) -> Option<Statx> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    statx(file, c"", flags, StatxFlags::NLINK).ok()
}
