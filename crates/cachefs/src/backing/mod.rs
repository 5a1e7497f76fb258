//! The backing directory, reached by descriptors, never by a path that somebody could replace.

pub use eke_cache_mounts::at;
mod dirty;
pub mod file;
pub mod stamp;

use std::os::fd::AsFd;

pub use file::{File, is_within};
pub use stamp::{Stamp, kernel_is_at_least, tick};

/// `include/uapi/linux/magic.h`: NFS, SMB, CIFS, SMB2, 9P, AFS twice, Ceph, FUSE.
const REMOTE: [u32; 9] = [
    0x6969,
    0x517b,
    0xff53_4d42,
    0xfe53_4d42,
    0x0102_1997,
    0x5346_414f,
    0x6b41_4653,
    0x00c3_6400,
    0x6573_5546,
];

/// ext2 to ext4, XFS, Btrfs, tmpfs, F2FS: names and attributes change only by calls of this kernel, which a watch reports. Not those that go
/// back to an earlier state at once (ZFS), or that other machines write to.
const LOCAL: [u32; 5] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0xf2f5_2010];

/// True if every change of names and attributes comes through this kernel.
pub fn is_local(file: impl AsFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|fs| LOCAL.contains(&(fs.f_type as u32)))
}

/// True if it is on a remote file system, or if that is unknown.
pub fn is_remote(file: impl AsFd) -> bool {
    rustix::fs::fstatfs(file).map_or(true, |fs| REMOTE.contains(&(fs.f_type as u32)))
}
