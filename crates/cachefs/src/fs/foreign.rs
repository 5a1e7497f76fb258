//! A name on another mount that is not served (see [`crate::node`]): it is listed, and nothing more.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::Statx;

use super::{FoundNode, attr_of};

/// Numbers that no node has; nodes on other devices begin with only the highest bit. The kernel needs a number in the
/// attributes. Each is used once, because two directories with one number would be the same.
static NUMBERS: AtomicU64 = AtomicU64::new(3 << 62);

/// The entry that readdir returns: its type, without permissions. It expires at once, so the kernel looks it up, and that
/// error gives the reason.
pub(super) fn unserved(statx: &Statx) -> FoundNode {
    let mut attr = attr_of(NUMBERS.fetch_add(1, Ordering::Relaxed), statx);
    attr.perm = 0;
    attr.size = 0;
    attr.rdev = 0;
    FoundNode { attr, generation: 0 }
}
