//! Descriptors of this process that users hold for good: of files that they have open for writing, or removed while they are open. The limit on
//! descriptors is the process's, so the count is, too.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::{LazyLock, Mutex};

use crate::sync::lock;

/// Subordinate user ids begin here, by default in ranges of so many (subuid(5), useradd(8)): one user has a whole range.
const SUBORDINATE: (u32, u32) = (100_000, 65_536);

static TAKEN: LazyLock<Mutex<HashMap<NonZeroU32, u64>>> = LazyLock::new(Mutex::default);

/// Who holds a node's descriptors. Gives them back when it is dropped.
#[derive(Debug)]
pub(super) struct Taken(NonZeroU32);

impl Taken {
    /// `None` for root, who is not counted.
    pub(super) fn by(uid: u32) -> Option<Self> {
        let user = user(uid)?;
        *lock(&TAKEN).entry(user).or_default() += 1;
        Some(Self(user))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut all = lock(&TAKEN);
        if let Some(count) = all.get_mut(&self.0) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                all.remove(&self.0);
            }
        }
    }
}

/// How many files' descriptors the user holds.
pub fn taken_by(uid: u32) -> u64 {
    user(uid).and_then(|user| lock(&TAKEN).get(&user).copied()).unwrap_or(0)
}

/// The same for all ids of one user.
fn user(uid: u32) -> Option<NonZeroU32> {
    let (first, range) = SUBORDINATE;
    NonZeroU32::new(uid.checked_sub(first).map_or(uid, |above| first + above / range * range))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_all_subordinate_ids_of_a_range() {
        let all: Vec<_> = [4_000_000_001, 4_000_000_002].into_iter().map(Taken::by).collect();
        assert_eq!([4_000_000_001, 4_000_000_003, 1].map(taken_by), [2, 2, 0]);
        drop(all);
        assert_eq!(taken_by(4_000_000_002), 0);
        assert!(Taken::by(0).is_none());
    }
}
