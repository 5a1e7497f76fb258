//! A name that is another mount's, which is not served (see [`crate::node`]): listed, and nothing more.

use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::Statx;

use super::{Found, attr_of};

/// Numbers that no node has: those of nodes on other devices begin with the highest bit alone. The kernel wants one with the
/// attributes; each is used once, for two directories with the same number would be one.
static NUMBERS: AtomicU64 = AtomicU64::new(3 << 62);

/// What readdir tells of it: its kind, and that nobody may do anything with it. It must be looked up, for no time is given, and
/// then the error says why it cannot be had.
pub(super) fn unserved(statx: &Statx) -> Found {
    let mut attr = attr_of(NUMBERS.fetch_add(1, Ordering::Relaxed), statx);
    attr.perm = 0;
    attr.size = 0;
    attr.rdev = 0;
    Found { attr, generation: 0 }
}
