//! What tells one content of a file from another, as NFS does it: close-to-open.

use rustix::fs::{Statx, StatxTimestamp};

/// What a file was when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// In bytes.
    pub size: u64,
    /// Of the content, in nanoseconds since 1970.
    pub modified_ns: i128,
    /// Of the inode, in nanoseconds since 1970.
    pub changed_ns: i128,
    /// When the inode came to be, if the file system says: an inode number can be used again.
    pub born_ns: i128,
}

impl Stamp {
    /// Of what statx(2) says with `STATX_BASIC_STATS | STATX_BTIME`.
    pub fn of(statx: &Statx) -> Self {
        Self {
            size: statx.stx_size,
            modified_ns: nanos(statx.stx_mtime),
            changed_ns: nanos(statx.stx_ctime),
            born_ns: nanos(statx.stx_btime),
        }
    }
}

fn nanos(time: StatxTimestamp) -> i128 {
    i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
}
