//! The backing directory, reached by descriptors, never by a path that somebody could replace.

pub use eke_cache_mounts::at;
mod dirty;
pub mod file;
pub mod stamp;

use std::os::fd::AsFd;

pub use file::File;
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

/// True if it is on a remote file system, or if that is unknown.
pub fn is_remote(file: impl AsFd) -> bool {
    rustix::fs::fstatfs(file).map_or(true, |fs| REMOTE.contains(&(fs.f_type as u32)))
}
