//! The tier's counters and costs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use eke_cache_spill::decide;
use eke_cache_store::Admitted;

use super::Measures;

/// The unit of running averages, in bytes.
const BLOCK: usize = 64 << 10;

/// The most stored blocks that are read again between missing ones.
const LONGEST_GAP: usize = 8;

/// The weight of a new value in a running average.
const WEIGHT: f64 = 1.0 / 32.0;

/// Reads of the backing file up to these lengths in bytes are one class each; longer ones are the last class.
const CLASSES: [usize; 3] = [64 << 10, 128 << 10, 256 << 10];

/// The tier's counters since its start.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TierReport {
    /// Requested blocks that came from the store.
    pub hits: u64,
    /// Requested blocks that came from the recent ones.
    pub recent_hits: u64,
    /// Requested blocks that were read from the backing file.
    pub misses: u64,
    /// Waits for a block that another thread was reading.
    pub waits: u64,
    /// Requested blocks that came from the spill.
    pub spill_hits: u64,
    /// Bytes of replies that came from memory.
    pub bytes_from_store: u64,
    /// Bytes of replies that came from the spill.
    pub bytes_from_spill: u64,
    /// Bytes of replies that came from the shared tier.
    pub bytes_from_shared: u64,
    /// Bytes read from the backing file.
    pub bytes_from_backing: u64,
    /// Bytes read from the backing file that nobody had requested, to have their blocks in the store.
    pub bytes_warmed: u64,
    /// Bytes written to the backing file.
    pub bytes_written: u64,
    /// Blocks read and not admitted: the queue was full, or there was no room.
    pub not_admitted: u64,
    /// Blocks read from files that the policy declines.
    pub declined: u64,
    /// Files found new or changed by others, at an open or a write.
    pub changed: u64,
    /// Microseconds to decompress 64 KiB, running average; 0 before the first.
    pub hit_us: f64,
    /// Microseconds to read and decompress 64 KiB from the spill, running average; 0 before the first.
    pub spill_us: f64,
    /// Microseconds to get 64 KiB from the shared tier, running average; 0 before the first.
    pub shared_us: f64,
    /// Microseconds to read 64 KiB from the backing file, running averages for reads up to 64, 128, 256 KiB, and longer.
    pub backing_us: [f64; 4],
    /// Microseconds to compress 64 KiB, running average, by readers (sync) or workers (async).
    pub compress_us: f64,
}

/// A running average of microseconds per 64 KiB. A part of a block counts as a whole one, as in the admission policy: a
/// short read takes a whole seek. A concurrent update may be lost.
#[derive(Debug, Default)]
pub(super) struct Average(AtomicU64);

impl Average {
    pub fn note(&self, bytes: usize, took: Duration) {
        if bytes == 0 {
            return;
        }
        let new = took.as_secs_f64() * 1e6 / bytes.div_ceil(BLOCK) as f64;
        let old = self.us();
        let next = if old == 0.0 { new } else { old + (new - old) * WEIGHT };
        self.0.store(next.to_bits(), Ordering::Relaxed);
    }

    pub fn us(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}

/// A counter that only grows.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters that threads update.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub hits: Count,
    pub recent_hits: Count,
    pub misses: Count,
    pub waits: Count,
    pub spill_hits: Count,
    /// Missing blocks that are in the spill.
    pub spill_finds: Count,
    pub bytes_from_store: Count,
    pub bytes_from_spill: Count,
    pub bytes_from_shared: Count,
    /// Reads that could ask the shared tier.
    pub shared_finds: Count,
    pub bytes_from_backing: Count,
    pub bytes_warmed: Count,
    pub bytes_written: Count,
    pub not_admitted: Count,
    pub declined: Count,
    pub changed: Count,
    pub hit: Average,
    pub spill: Average,
    pub shared: Average,
    pub backing: [Average; 4],
    pub compress: Average,
}

impl Counters {
    /// A read of a few bytes alone does not tell what blocks take.
    pub fn note_backing_read(&self, bytes: usize, took: Duration, of: Measures) {
        self.bytes_from_backing.add(bytes);
        if of == Measures::Blocks {
            self.backing[class(bytes)].note(bytes, took);
        }
    }

    /// Stored blocks between missing ones that are read again, because that takes no longer than another read. A read of one block takes one seek
    /// and one transfer, a long one little but transfers: so their ratio, less one, is a seek in blocks.
    pub fn gap(&self) -> usize {
        let [one, .., long] = self.backing.each_ref().map(Average::us);
        if long > 0.0 { ((one / long) as usize).saturating_sub(1).min(LONGEST_GAP) } else { 0 }
    }

    /// True if a block that is in the spill should be read from there. The disk below is compared by its longest reads, which cost least.
    pub fn reads_spill(&self) -> bool {
        let known = self.backing.iter().map(Average::us).filter(|&us| us > 0.0);
        let (backing_us, nth) = (known.reduce(f64::min).unwrap_or(0.0), self.spill_finds.get());
        self.spill_finds.add(1);
        decide::reads_spill(self.spill.us(), backing_us, nth)
    }

    /// What the origin takes for a read of so many bytes in µs, for each 64 KiB; 0: not known yet.
    pub fn origin_us(&self, bytes: usize) -> f64 {
        let all = self.backing.each_ref().map(Average::us);
        let of_class = all.get(class(bytes)).copied().filter(|&us| us > 0.0);
        of_class.or_else(|| all.into_iter().find(|&us| us > 0.0)).unwrap_or(0.0)
    }

    /// The number of this read, of those that could ask the shared tier.
    pub fn next_shared(&self) -> u64 {
        self.shared_finds.add(1);
        self.shared_finds.get()
    }

    pub fn note_admitted(&self, admitted: Admitted) {
        if matches!(admitted, Admitted::Overrun | Admitted::NoRoom | Admitted::NoMemory) {
            self.not_admitted.add(1);
        }
    }

    pub fn report(&self) -> TierReport {
        TierReport {
            hits: self.hits.get(),
            recent_hits: self.recent_hits.get(),
            misses: self.misses.get(),
            waits: self.waits.get(),
            spill_hits: self.spill_hits.get(),
            bytes_from_store: self.bytes_from_store.get(),
            bytes_from_spill: self.bytes_from_spill.get(),
            bytes_from_shared: self.bytes_from_shared.get(),
            bytes_from_backing: self.bytes_from_backing.get(),
            bytes_warmed: self.bytes_warmed.get(),
            bytes_written: self.bytes_written.get(),
            not_admitted: self.not_admitted.get(),
            declined: self.declined.get(),
            changed: self.changed.get(),
            hit_us: self.hit.us(),
            spill_us: self.spill.us(),
            shared_us: self.shared.us(),
            backing_us: self.backing.each_ref().map(Average::us),
            compress_us: self.compress.us(),
        }
    }
}

fn class(bytes: usize) -> usize {
    CLASSES.iter().position(|&most| bytes <= most).unwrap_or(CLASSES.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_is_by_64_kib_and_follows_slowly() {
        let average = Average::default();
        assert_eq!(average.us(), 0.0);
        average.note(128 << 10, Duration::from_micros(200));
        assert_eq!(average.us(), 100.0);
        average.note(64 << 10, Duration::from_micros(132));
        assert_eq!(average.us(), 101.0);
        average.note(0, Duration::from_secs(1));
        assert_eq!(average.us(), 101.0);
    }

    #[test]
    fn a_short_read_is_one_block() {
        let average = Average::default();
        average.note(30, Duration::from_millis(7));
        assert_eq!(average.us(), 7000.0);
        let average = Average::default();
        average.note((64 << 10) + 1, Duration::from_micros(200));
        assert_eq!(average.us(), 100.0);
    }

    #[test]
    fn a_gap_is_a_seek_in_blocks() {
        let gap = |one_us: u64, long_us: u64| {
            let counters = Counters::default();
            counters.note_backing_read(BLOCK, Duration::from_micros(one_us), Measures::Blocks);
            counters.note_backing_read(16 * BLOCK, Duration::from_micros(16 * long_us), Measures::Blocks);
            counters.gap()
        };
        assert_eq!([gap(9500, 2000), gap(80, 40), gap(40, 40), gap(90_000, 1000)], [3, 1, 0, LONGEST_GAP]);
        assert_eq!(Counters::default().gap(), 0);
    }

    #[test]
    fn reads_of_the_backing_file_have_a_class_by_length() {
        assert_eq!([1, 64 << 10, 65_537, 256 << 10, 1 << 20].map(class), [0, 0, 1, 2, 3]);
    }
}
