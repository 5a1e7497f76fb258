//! Decisions, all pure: whether a read asks, how long it waits, how many bytes may be offered.

use std::time::Duration;

/// One read in so many asks though that did not pay lately, because that changes; fewer where an ask takes longer than the origin, so that tries cost no more
/// than this part of its time, down to the second number.
const TRY_ONE_IN: u64 = 32;
const TRY_AT_LEAST: u64 = 1024;

/// A read waits at most this share (one in so many) of what the origin takes for the same blocks: so a tier that never answers makes the reads
/// before the breaker opens half as long again, and none after.
const WAIT_ONE_IN: f64 = 2.0;

/// The least and the longest wait, and that before the origin was measured, in µs.
const WAIT_US: (f64, f64) = (1_000.0, 100_000.0);
const UNKNOWN_US: f64 = 20_000.0;

/// A file that changed so recently is not shared, in nanoseconds. Two changes may have one time; clocks of nodes and origin differ by up to
/// ten seconds; and on an NFS server a process with a shared mapping changes a page without a new time until the kernel writes it back.
/// That takes 35 seconds (`vm.dirty_expire_centisecs` and `vm.dirty_writeback_centisecs` of proc_sys_vm(5), by default) and the write.
pub const SETTLED_NS: i128 = 60_000_000_000;

/// The weight of a new ask in the running averages: of one that was expected to pay, and of one that only tries. The tries are few, so each counts more: a
/// tier that has become good is used after some of them.
const WEIGHT: (f64, f64) = (1.0 / 32.0, 1.0 / 4.0);

/// What asks of the tier took and brought lately. An answer "not there" takes as long as a block, and the origin is read after it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asking {
    /// µs for each 64 KiB asked for, found or not; 0: not known yet.
    us: f64,
    /// The share that was found.
    found: f64,
}

impl Default for Asking {
    fn default() -> Self {
        Self { us: 0.0, found: 1.0 }
    }
}

impl Asking {
    /// Whether a read is faster with the tier, by the origin's cost of 64 KiB in µs (0: not known yet). An ask that takes no more than one in
    /// [`TRY_ONE_IN`] of the origin is always made: it costs no more than the tries do.
    fn pays(&self, origin_us: f64) -> bool {
        let saved = self.found.max(1.0 / TRY_ONE_IN as f64) * origin_us;
        self.us == 0.0 || origin_us == 0.0 || self.us <= saved
    }

    /// Whether a read asks. `nth` counts reads that could ask.
    pub fn asks(&self, origin_us: f64, nth: u64) -> bool {
        let longer = (self.us / origin_us).ceil().max(1.0) as u64;
        self.pays(origin_us) || nth % TRY_ONE_IN.saturating_mul(longer).min(TRY_AT_LEAST) == 0
    }

    /// An ask took `us` for each 64 KiB, and brought this share of its blocks. Before the origin was measured reads wait longer than later, so that tells
    /// nothing.
    pub fn note(&mut self, us: f64, found: f64, origin_us: f64) {
        if origin_us == 0.0 {
            return;
        }
        let weight = if self.pays(origin_us) { WEIGHT.0 } else { WEIGHT.1 };
        self.us = if self.us == 0.0 { us } else { self.us + (us - self.us) * weight };
        self.found += (found - self.found) * weight;
    }
}

/// How long a read waits, by the origin's cost for all its blocks in µs (0: not known yet).
pub fn wait(origin_us: f64) -> Duration {
    let us = if origin_us > 0.0 { origin_us / WAIT_ONE_IN } else { UNKNOWN_US };
    Duration::from_micros(us.clamp(WAIT_US.0, WAIT_US.1) as u64)
}

/// A bound of bytes a second. Unused bytes of at most a second are kept.
#[derive(Debug, Clone, Copy)]
pub struct Bandwidth {
    bytes_a_second: u64,
    left: u64,
    at_us: u64,
}

impl Bandwidth {
    /// So many bytes a second.
    pub fn new(bytes_a_second: u64) -> Self {
        Self { bytes_a_second, left: bytes_a_second, at_us: 0 }
    }

    /// Takes bytes if they are left.
    pub fn take(&mut self, bytes: u64, now_us: u64) -> bool {
        let passed = now_us.saturating_sub(self.at_us).min(1_000_000);
        let more = u128::from(self.bytes_a_second) * u128::from(passed) / 1_000_000;
        if more > 0 {
            self.left = self.left.saturating_add(more as u64).min(self.bytes_a_second);
            self.at_us = now_us;
        }
        let fits = bytes <= self.left;
        self.left -= if fits { bytes } else { 0 };
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After so many asks that each took `us` and found this share.
    fn after(asks: usize, us: f64, found: f64) -> Asking {
        let mut asking = Asking::default();
        (0..asks).for_each(|_| asking.note(us, found, 1e9));
        asking
    }

    fn asked(asking: &Asking, origin_us: f64) -> usize {
        (1..=320).filter(|&nth| asking.asks(origin_us, nth)).count()
    }

    #[test]
    fn a_tier_slower_than_the_origin_is_tried_now_and_then() {
        assert!(Asking::default().asks(100.0, 1) && after(1, 100.0, 1.0).asks(0.0, 1));
        let mut unknown = Asking::default();
        unknown.note(20_000.0, 0.0, 0.0);
        assert_eq!(unknown, Asking::default());
        let cases = [(80.0, 5000.0), (90.0, 80.0), (400.0, 80.0), (1e9, 1e-9)];
        assert_eq!(cases.map(|(us, of)| asked(&after(9, us, 1.0), of)), [320, 5, 2, 0]);
        assert!(after(9, 1e9, 1.0).asks(1e-9, TRY_AT_LEAST));
    }

    #[test]
    fn a_tier_that_has_too_little_is_tried_now_and_then() {
        // It saves 500 µs of 1000 in half of the reads, and takes 700 in all.
        assert_eq!([0.0, 0.5, 0.8].map(|found| asked(&after(300, 700.0, found), 1000.0)), [10, 10, 320]);
        assert_eq!(asked(&after(300, 150.0, 0.0), 5000.0), 320, "it takes next to nothing beside the origin");
    }

    #[test]
    fn a_tier_that_has_become_good_is_used_after_a_few_tries() {
        let mut asking = after(300, 700.0, 0.0);
        let tries = (1..).take_while(|_| {
            let is_left_alone = !asking.asks(1000.0, 1);
            asking.note(700.0, 1.0, 1000.0);
            is_left_alone
        });
        assert_eq!(tries.count(), 5);
    }

    /// The reads' time with a tier is at most 5 % above that without, whatever share of the blocks it has, once that is known; and that beside one that
    /// asks always.
    #[test]
    fn no_share_of_found_blocks_makes_reads_much_slower() {
        for (origin, trip) in [(100.0, 250.0), (300.0, 150.0), (1000.0, 700.0), (5000.0, 200.0)] {
            for percent in [0_u64, 2, 10, 30, 60, 90, 100] {
                let (mut asking, mut us) = (after(300, trip, 0.0), 0.0);
                for nth in 1..=20_000_u64 {
                    let is_found = nth * 7919 % 100 < percent;
                    let asks = asking.asks(origin, nth);
                    us += if asks { trip } else { 0.0 } + if asks && is_found { 0.0 } else { origin };
                    if asks {
                        asking.note(trip, f64::from(u8::from(is_found)), origin);
                    }
                }
                let (with, always) = (us / 20_000.0, trip + origin * (100 - percent) as f64 / 100.0);
                let best = always.min(origin);
                assert!(with <= origin * 1.05, "{origin} {trip} {percent}: {with}");
                assert!(with <= best * 1.25, "{origin} {trip} {percent}: {with}, best {best}");
            }
        }
    }

    #[test]
    fn a_read_waits_less_than_the_origin_takes() {
        let ms = Duration::from_millis;
        assert_eq!([0.0, 20_000.0, 1.0, 1e12].map(wait), [ms(20), ms(10), ms(1), ms(100)]);
    }

    #[test]
    fn a_version_is_shared_only_when_no_page_of_it_can_be_dirty_any_more() {
        let [expires, flusher_sleeps, clocks_differ] = [30, 5, 10];
        assert!(SETTLED_NS > (expires + flusher_sleeps + clocks_differ) * 1_000_000_000);
    }

    #[test]
    fn no_more_than_a_second_of_bytes_is_kept() {
        let mut bandwidth = Bandwidth::new(1000);
        assert!(bandwidth.take(1000, 0) && !bandwidth.take(1, 0));
        assert!(!bandwidth.take(101, 100_000) && bandwidth.take(100, 100_000));
        assert!(!bandwidth.take(1001, 900_000_000) && bandwidth.take(1000, 900_000_000));
        assert!(!bandwidth.take(1, 900_000_000) && !bandwidth.take(1, 900_000_001));
    }
}
