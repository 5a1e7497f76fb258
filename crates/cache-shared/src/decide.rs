//! Decisions, all pure: whether a read asks, how long it waits, how many bytes may be offered.

use std::time::Duration;

/// One read in so many asks though the origin was faster lately, because that changes.
const TRY_ONE_IN: u64 = 32;

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

/// Whether a read asks the tier, by the running costs of a block there and at the origin in µs (0: not known yet). `nth` counts reads that
/// could ask.
pub fn asks(shared_us: f64, origin_us: f64, nth: u64) -> bool {
    shared_us <= origin_us || shared_us == 0.0 || origin_us == 0.0 || nth % TRY_ONE_IN == 0
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

    #[test]
    fn a_tier_slower_than_the_origin_is_tried_now_and_then() {
        assert!(asks(0.0, 100.0, 1) && asks(100.0, 0.0, 1) && asks(80.0, 5000.0, 1));
        assert_eq!((1..=320).filter(|&nth| asks(5000.0, 80.0, nth)).count(), 10);
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
