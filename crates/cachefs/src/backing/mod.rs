//! The backing directory, reached by descriptors, never by a path that somebody could replace.

pub use eke_cache_mounts::at;
mod case;
mod dirty;
pub mod file;
mod left_pages;
mod removed;
mod sole;
pub mod stamp;

use std::os::fd::AsFd;

use eke_linux::magic;

pub use case::{ignores_case, may_ignore_case};
pub use file::{File, OF_READERS, OF_USERS, Pages, is_within, left_within};
pub use removed::{is_of_removed_subvolume, is_removed};
pub use sole::{has_no_writer, is_sole};
pub use stamp::{Stamp, kernel_is_at_least, tick};

/// Other machines write to these, or may.
const REMOTE: [u32; 9] = [
    magic::NFS,
    magic::SMB,
    magic::CIFS,
    magic::SMB2,
    magic::V9FS,
    magic::OPEN_AFS,
    magic::AFS,
    magic::CEPH,
    magic::FUSE,
];

/// Names and attributes change only by calls of this kernel, which a watch reports. Not those that go
/// back to an earlier state at once (ZFS), or that other machines write to.
const LOCAL: [u32; 5] = [magic::EXT, magic::XFS, magic::BTRFS, magic::TMPFS, magic::F2FS];

/// True if every change of names and attributes comes through this kernel.
pub fn is_local(file: impl AsFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|fs| LOCAL.contains(&(fs.f_type as u32)))
}

/// True if it is on a remote file system, or if that is unknown.
pub fn is_remote(file: impl AsFd) -> bool {
    rustix::fs::fstatfs(file).map_or(true, |fs| REMOTE.contains(&(fs.f_type as u32)))
}
