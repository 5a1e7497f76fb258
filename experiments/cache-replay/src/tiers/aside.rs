//! Whether the mount stands aside: the product's own rules, driven by the model's clock. The move itself takes no time.

use std::time::Duration;

use eke_cache_policy::aside::{Advice, Left, Reason, Sample, Usefulness};
use eke_model::units::Bytes;

use super::time;

/// The product looks so often.
const TICK_S: f64 = 1.0;
const BLOCK: u64 = 65_536;
/// The weight of a read in the mean time of a block from the disk.
const WEIGHT: f64 = 1.0 / 64.0;

/// The memory of both tiers in the sample.
#[derive(Debug, Clone, Copy)]
pub struct Held {
    /// All of it.
    pub memory: u64,
    /// The page cache's.
    pub page_cache: u64,
    /// The store's.
    pub store: u64,
    /// The most that the store may have.
    pub limit: u64,
    /// Files that the kernel knows.
    pub files: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Aside {
    usefulness: Usefulness,
    is_aside: bool,
    /// Counters of the sample.
    counted: Sample,
    next_s: f64,
    ratio: f64,
    /// Each file stands for so many.
    scale: u64,
}

impl Aside {
    /// A new mount, over content with this ratio.
    pub fn new(ratio: f64, scale: u64) -> Self {
        let counted = Sample { hit_us: 1e6 * time::hit_s(BLOCK), ..Sample::default() };
        Self { usefulness: Usefulness::serving(), is_aside: false, counted, next_s: 0.0, ratio, scale }
    }

    /// True while it is out of the way.
    pub fn is_aside(&self) -> bool {
        self.is_aside
    }

    /// A file was opened.
    pub fn opened(&mut self) {
        self.counted.opens += 1;
    }

    /// Bytes of a piece came from the store.
    pub fn hit(&mut self, bytes: u64) {
        self.counted.hits += bytes.div_ceil(BLOCK);
    }

    /// A run of bytes was read from the disk by the worker, in `seconds`.
    pub fn missed(&mut self, bytes: u64, seconds: f64) {
        let (blocks, counted) = (bytes.div_ceil(BLOCK), &mut self.counted);
        counted.misses += blocks;
        counted.miss_bytes = u32::try_from(bytes / blocks).unwrap_or(u32::MAX);
        let us = 1e6 * seconds / blocks as f64;
        let weight = if counted.miss_us == 0.0 { 1.0 } else { WEIGHT };
        counted.miss_us += (us - counted.miss_us) * weight;
    }

    /// A piece was stored.
    pub fn inserted(&mut self, bytes: u64) {
        self.counted.inserted += bytes.div_ceil(BLOCK);
    }

    /// A piece was evicted from the store.
    pub fn evicted(&mut self, bytes: u64) {
        self.counted.evicted += bytes.div_ceil(BLOCK);
    }

    /// Bytes that the page cache had dropped were read again.
    pub fn refaulted(&mut self, bytes: u64) {
        self.counted.refaulted = Bytes(self.counted.refaulted.0 + bytes);
    }

    /// At this time. Returns the reason if it leaves now, and `Some(None)` if it is back.
    pub fn step(&mut self, now_s: f64, held: impl FnOnce() -> Held) -> Option<Option<Reason>> {
        if now_s < self.next_s {
            return None;
        }
        self.next_s = now_s + TICK_S;
        let now = Duration::from_secs_f64(now_s);
        match self.usefulness.step(self.sample(now, held())) {
            Advice::Stay => None,
            Advice::Leave(reason) => {
                let left = Left { reason, disk_us: 0, disk_bytes: 0, vain: self.usefulness.vain(now) };
                self.usefulness.left(left, now);
                self.is_aside = true;
                Some(Some(reason))
            }
            Advice::Return => {
                self.usefulness.returned(now);
                self.is_aside = false;
                Some(None)
            }
        }
    }

    fn sample(&self, now: Duration, held: Held) -> Sample {
        let (counted, all) = (self.counted, |count: u64| count * self.scale);
        let bytes = |of: u64| Bytes(all(of));
        let free = held.memory.saturating_sub(held.page_cache + held.store);
        Sample {
            now,
            opens: all(counted.opens),
            hits: all(counted.hits),
            misses: all(counted.misses),
            inserted: all(counted.inserted),
            evicted: all(counted.evicted),
            raw: bytes((held.store as f64 * self.ratio) as u64),
            held: bytes(held.store),
            limit: bytes(held.limit),
            files: all(held.files),
            free: bytes(free),
            is_full: free < held.memory / 8,
            available: bytes(held.memory.saturating_sub(held.store)),
            refaulted: bytes(counted.refaulted.0),
            ..counted
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_leaves_where_all_fits_and_returns_when_memory_is_short() {
        let (mut aside, mut seconds) = (Aside::new(2.0, 4), 0..1000);
        let held = Held { memory: 1 << 20, page_cache: 0, store: 1 << 17, limit: 1 << 19, files: 4 };
        let mut step = |aside: &mut Aside, page_cache| {
            let now_s = f64::from(seconds.next().unwrap());
            Some((now_s, aside.step(now_s, || Held { page_cache, ..held })?))
        };
        aside.missed(BLOCK, 0.01);
        let left = (0..1000).find_map(|_| {
            (0..100).for_each(|_| aside.opened());
            step(&mut aside, 1 << 18)
        });
        assert_eq!(left, Some((10.0, Some(Reason::Fits))));
        assert!(aside.is_aside());
        let back = (0..900).find_map(|_| {
            aside.refaulted(16 * BLOCK);
            step(&mut aside, 7 << 17)
        });
        assert!(back.is_some_and(|(_, reason)| reason.is_none()) && !aside.is_aside());
    }
}
