//! Ghosts: records of blocks that left the small queue without a second request. If one is admitted again soon, it was
//! evicted too early.
//!
//! A table of buckets as in section 4.2 of the S3-FIFO paper. A ghost is a part of the key's hash and the time of eviction,
//! counted in bytes evicted since. Nothing is removed: a ghost older than the reach does not count, and in a full bucket the
//! oldest is replaced.

use std::collections::TryReserveError;

use eke_model::units::Bytes;

const WAYS: usize = 4;

/// `tag` 0 marks an empty entry.
#[derive(Debug, Clone, Copy, Default)]
struct Ghost {
    tag: u32,
    /// KiB evicted before it. Wraps after 4 TiB; a wrong answer puts one block into the better queue.
    gone_kib: u32,
}

#[derive(Debug, Default)]
pub(super) struct Ghosts {
    /// A power of two of buckets, or none.
    buckets: Vec<[Ghost; WAYS]>,
    gone: u64,
    reach: u64,
}

impl Ghosts {
    /// Makes room for about `slots` ghosts. Keeps the present ones.
    pub fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError> {
        let buckets = slots.div_ceil(WAYS).max(1).next_power_of_two();
        if buckets > self.buckets.len() { self.rebuild(buckets) } else { Ok(()) }
    }

    /// Shrinks to the room that `slots` ghosts need. Keeps the table if there is no memory for a smaller one.
    pub fn shrink(&mut self, slots: usize) {
        let buckets = slots.div_ceil(WAYS).max(1).next_power_of_two();
        if buckets < self.buckets.len() {
            let _ = self.rebuild(buckets);
        }
    }

    pub fn held(&self) -> Bytes {
        Bytes((self.buckets.capacity() * size_of::<[Ghost; WAYS]>()) as u64)
    }

    /// A ghost counts until `reach` bytes were evicted after it.
    pub fn set_reach(&mut self, reach: u64) {
        self.reach = reach;
    }

    pub fn add(&mut self, tag: u32, weight: u32) {
        self.gone += u64::from(weight);
        let gone_kib = self.now_kib();
        self.insert(Ghost { tag: tag.max(1), gone_kib });
    }

    /// Removes a ghost; true if there was one within reach.
    pub fn take(&mut self, tag: u32) -> bool {
        let (tag, now, reach) = (tag.max(1), self.now_kib(), self.reach >> 10);
        let Some(bucket) = self.bucket(tag) else { return false };
        let Some(ghost) = bucket.iter_mut().find(|g| g.tag == tag) else { return false };
        let age = now.wrapping_sub(ghost.gone_kib);
        ghost.tag = 0;
        u64::from(age) <= reach
    }

    fn now_kib(&self) -> u32 {
        (self.gone >> 10) as u32
    }

    fn bucket(&mut self, tag: u32) -> Option<&mut [Ghost; WAYS]> {
        let mask = self.buckets.len().wrapping_sub(1);
        self.buckets.get_mut(tag as usize & mask)
    }

    fn insert(&mut self, ghost: Ghost) {
        let now = self.now_kib();
        let Some(bucket) = self.bucket(ghost.tag) else { return };
        let age = |g: &Ghost| {
            if g.tag == 0 || g.tag == ghost.tag { u64::MAX } else { u64::from(now.wrapping_sub(g.gone_kib)) }
        };
        if let Some(oldest) = bucket.iter_mut().max_by_key(|g| age(g)) {
            *oldest = ghost;
        }
    }

    fn rebuild(&mut self, buckets: usize) -> Result<(), TryReserveError> {
        let mut fresh = Vec::new();
        fresh.try_reserve_exact(buckets)?;
        fresh.resize(buckets, [Ghost::default(); WAYS]);
        let old = std::mem::replace(&mut self.buckets, fresh);
        for ghost in old.into_iter().flatten().filter(|g| g.tag != 0) {
            self.insert(ghost);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ghosts(slots: usize, reach: u64) -> Ghosts {
        let mut ghosts = Ghosts::default();
        ghosts.reserve(slots).unwrap();
        ghosts.set_reach(reach);
        ghosts
    }

    #[test]
    fn a_ghost_is_known_once_and_only_within_reach() {
        let mut ghosts = ghosts(64, 10 << 10);
        ghosts.add(7, 1 << 10);
        assert!(ghosts.take(7));
        assert!(!ghosts.take(7));
        ghosts.add(7, 1 << 10);
        ghosts.add(8, 11 << 10);
        assert!(!ghosts.take(7), "more than the reach went after it");
        assert!(ghosts.take(8));
    }

    #[test]
    fn a_full_bucket_forgets_its_oldest_and_growing_forgets_nothing() {
        let mut ghosts = ghosts(1, 1 << 30);
        for tag in 1..=5 {
            ghosts.add(tag, 1 << 10);
        }
        ghosts.reserve(1000).unwrap();
        assert_eq!((1..=5).map(|tag| ghosts.take(tag)).collect::<Vec<_>>(), [false, true, true, true, true]);
    }

    #[test]
    fn without_memory_there_are_no_ghosts_and_no_harm() {
        let mut ghosts = Ghosts::default();
        ghosts.add(1, 1);
        assert!(!ghosts.take(1));
    }
}
