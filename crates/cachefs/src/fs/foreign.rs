//! A name that is listed, and nothing more: on another mount that is not served (see [`crate::node`]), or of an inode that the disk
//! cannot give.

use std::sync::atomic::{AtomicU64, Ordering};

use fuser::FileType;

use super::FoundNode;
use super::directories::dots;

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
