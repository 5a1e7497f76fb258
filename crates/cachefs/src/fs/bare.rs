//! Entries of which a list has number and type, and nothing more: `.` and `..`, names on another mount that is not served
//! (see [`crate::node`]), and names whose inode the disk cannot give.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use fuser::{FileAttr, FileType, INodeNo};

use super::FoundNode;

/// Numbers that no node has; nodes on other devices begin with only the highest bit. The kernel needs a number in the
/// attributes. Each is used once, because two directories with one number would be the same.
static NUMBERS: AtomicU64 = AtomicU64::new(3 << 62);

/// The entry that readdir returns: its type, without permissions. It expires at once, so the kernel looks it up, and that
/// error gives the reason.
pub(super) fn unserved(kind: FileType) -> FoundNode {
    let mut found = dots(NUMBERS.fetch_add(1, Ordering::Relaxed));
    found.attr.kind = kind;
    found.attr.perm = 0;
    found
}

/// The kernel uses only number and type of `.` and `..`.
pub(super) fn dots(ino: u64) -> FoundNode {
    let attr = FileAttr {
        ino: INodeNo(ino),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: FileType::Directory,
        perm: 0o755,
        nlink: 2,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 4096,
        flags: 0,
    };
    FoundNode { attr, generation: 0 }
}
