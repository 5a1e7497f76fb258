//! The memory of blocks that left the small queue unasked: if one comes again soon, it was thrown out too early.
//!
//! A table of buckets as in section 4.2 of the S3-FIFO paper: a ghost is a part of the key's hash and the time it went,
//! where time is counted in the bytes that went since. Nothing is taken out by hand: a ghost older than the reach is none,
//! and the oldest of a full bucket makes room.

use std::collections::TryReserveError;

use eke_model::units::Bytes;

const WAYS: usize = 4;

/// `tag` 0 is an empty place.
#[derive(Debug, Clone, Copy, Default)]
struct Ghost {
    tag: u32,
    /// KiB that had gone before it; wraps after 4 TiB, where a wrong answer costs one block a better place.
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
    /// Room for about as many ghosts as `slots`; keeps those it has.
    pub fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError> {
        let wanted = slots.div_ceil(WAYS).max(1).next_power_of_two();
        if wanted > self.buckets.len() { self.rebuild(wanted) } else { Ok(()) }
    }

    /// Room for no more than `slots` needs; keeps everything if there is no memory to do it with.
    pub fn shrink(&mut self, slots: usize) {
        let wanted = slots.div_ceil(WAYS).max(1).next_power_of_two();
        if wanted < self.buckets.len() {
            let _ = self.rebuild(wanted);
        }
    }

    pub fn held(&self) -> Bytes {
        Bytes((self.buckets.capacity() * size_of::<[Ghost; WAYS]>()) as u64)
    }

    /// A ghost counts while no more than `reach` bytes went after it.
    pub fn set_reach(&mut self, reach: u64) {
        self.reach = reach;
    }

    pub fn add(&mut self, tag: u32, weight: u32) {
        self.gone += u64::from(weight);
        let gone_kib = self.now_kib();
        self.place(Ghost { tag: tag.max(1), gone_kib });
    }

    /// Is there such a ghost? If so it is none any more.
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

    fn place(&mut self, ghost: Ghost) {
        let now = self.now_kib();
        let Some(bucket) = self.bucket(ghost.tag) else { return };
        let worth = |g: &Ghost| {
            if g.tag == 0 || g.tag == ghost.tag { u64::MAX } else { u64::from(now.wrapping_sub(g.gone_kib)) }
        };
        if let Some(place) = bucket.iter_mut().max_by_key(|g| worth(g)) {
            *place = ghost;
        }
    }

    fn rebuild(&mut self, buckets: usize) -> Result<(), TryReserveError> {
        let mut fresh = Vec::new();
        fresh.try_reserve_exact(buckets)?;
        fresh.resize(buckets, [Ghost::default(); WAYS]);
        let old = std::mem::replace(&mut self.buckets, fresh);
        for ghost in old.into_iter().flatten().filter(|g| g.tag != 0) {
            self.place(ghost);
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
