//! OthersTracker' I/O on a disk: its counters without our own reads.
//!
//! The kernel counts a thread's reads at submission (`read_bytes` in `/proc/PID/task/TID/io`, CONFIG_TASK_IO_ACCOUNTING), and a disk's reads at
//! completion. So a sample is exact while none of our reads is in flight, and samples are taken then. Otherwise, and for metadata that the kernel
//! reads ahead in our name, others' I/O is only the excess over the previous maximum.

use eke_prefetch_disk::counters::Counters;

/// The smallest request.
const LEAST_REQUEST_BYTES: u64 = 4096;
/// With a page cache in between, the disk may read this many times the requested bytes: it reads ahead.
const READ_AHEAD: u64 = 4;
/// A request that is not done after this many samples is not in flight any more.
const FORGIVEN: u32 = 3;

/// OthersTracker' I/O between two samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OthersIo {
    /// Completed requests, at most: each counts as the smallest possible request.
    pub requests: u64,
    /// Their bytes, at least.
    pub bytes: u64,
    /// Requests in flight that cannot be ours.
    pub in_flight: u64,
}

/// Our own I/O in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnIo {
    /// Bytes that our threads requested from the disk.
    pub read_bytes: u64,
    /// The most requests that our threads can have in flight now; 0 if none reads.
    pub most_in_flight: u64,
    /// The most bytes of these.
    pub most_in_flight_bytes: u64,
}

/// Separates others' reads from ours, sample by sample.
#[derive(Debug, Clone)]
pub struct OthersTracker {
    before: Counters,
    own_before: u64,
    /// The disk's bytes minus ours; `most` is its maximum.
    surplus: i128,
    most: i128,
    /// Exact samples in a row below the maximum.
    behind: u32,
    weight: u64,
}

impl OthersTracker {
    /// Starts from these counters. `cached_between`: a page cache lies between us and the disk.
    pub fn new(now: Counters, own: OwnIo, cached_between: bool) -> Self {
        let weight = if cached_between { READ_AHEAD } else { 1 };
        Self { before: now, own_before: own.read_bytes, surplus: 0, most: 0, behind: 0, weight }
    }

    /// OthersTracker' I/O since the previous sample.
    pub fn sample(&mut self, now: Counters, own: OwnIo) -> OthersIo {
        let did = now.since(self.before);
        let own_bytes = own.read_bytes.saturating_sub(self.own_before).saturating_mul(self.weight);
        self.surplus += i128::from(did.read_bytes) - i128::from(own_bytes);
        self.before = now;
        self.own_before = own.read_bytes;
        let bytes = u64::try_from(self.surplus - self.most).unwrap_or(0);
        self.raise(own);
        let reads = did.reads.min(bytes.div_ceil(LEAST_REQUEST_BYTES));
        OthersIo {
            requests: reads + did.writes,
            bytes: bytes + did.written_bytes,
            in_flight: now.in_flight.saturating_sub(own.most_in_flight),
        }
    }

    /// The surplus may drop by what is in flight. A longer or larger drop means that we got data that others had requested; others' bytes must not
    /// hide behind that.
    fn raise(&mut self, own: OwnIo) {
        if self.surplus >= self.most {
            self.most = self.surplus;
            self.behind = 0;
        } else if own.most_in_flight > 0 {
            let lowest = self.surplus + i128::from(own.most_in_flight_bytes.saturating_mul(self.weight));
            self.most = self.most.min(lowest);
        } else {
            self.behind += 1;
            if self.behind >= FORGIVEN {
                self.most = self.surplus;
                self.behind = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn disk(reads: u64, read_bytes: u64, writes: u64, in_flight: u64) -> Counters {
        Counters { dev: 8, reads, read_bytes, read_ms: 0, writes, written_bytes: writes * 4096, in_flight }
    }

    fn busy(read_bytes: u64) -> OwnIo {
        OwnIo { read_bytes, most_in_flight: 8, most_in_flight_bytes: MIB }
    }

    fn idle(read_bytes: u64) -> OwnIo {
        OwnIo { read_bytes, ..OwnIo::default() }
    }

    #[test]
    fn our_own_reads_never_count_as_others() {
        let mut others = OthersTracker::new(disk(0, 0, 0, 0), idle(0), false);
        for nth in 1..50u64 {
            // Submitted, half done, done.
            let half = disk(2 * nth - 1, nth * MIB - MIB / 2, 0, 1);
            assert_eq!(others.sample(half, busy(nth * MIB)), OthersIo::default());
            assert_eq!(others.sample(disk(2 * nth, nth * MIB, 0, 0), busy(nth * MIB)), OthersIo::default());
        }
    }

    #[test]
    fn a_small_reader_beside_us_is_detected() {
        let mut others = OthersTracker::new(disk(0, 0, 0, 0), idle(0), false);
        others.sample(disk(1, MIB, 0, 0), busy(MIB));
        let did = others.sample(disk(2 + 5, 2 * MIB + 5 * 4096, 0, 1), busy(2 * MIB));
        assert_eq!(did, OthersIo { requests: 5, bytes: 5 * 4096, in_flight: 0 });
    }

    #[test]
    fn all_io_is_others_while_we_read_nothing() {
        let mut others = OthersTracker::new(disk(0, 0, 0, 0), idle(0), false);
        let did = others.sample(disk(3, 3 * MIB, 2, 4), idle(0));
        assert_eq!(did, OthersIo { requests: 5, bytes: 3 * MIB + 8192, in_flight: 4 });
    }

    #[test]
    fn others_do_not_hide_forever_behind_reads_that_were_not_ours() {
        let mut others = OthersTracker::new(disk(0, 0, 0, 0), idle(0), false);
        // We requested 100 MiB, none of it from this disk.
        others.sample(disk(0, 0, 0, 0), busy(100 * MIB));
        others.sample(disk(10, 2 * MIB, 0, 0), busy(100 * MIB));
        assert!(
            others.sample(disk(20, 4 * MIB, 0, 0), busy(100 * MIB)).bytes >= MIB,
            "at most what is under way hides"
        );
        // None of our reads is in flight: after three samples nothing hides.
        for _ in 0..3 {
            others.sample(disk(20, 4 * MIB, 0, 0), idle(100 * MIB));
        }
        assert_eq!(others.sample(disk(21, 4 * MIB + 4096, 0, 0), idle(100 * MIB)).bytes, 4096);
    }

    #[test]
    fn between_our_reads_a_sample_is_exact() {
        let mut others = OthersTracker::new(disk(0, 0, 0, 0), idle(0), false);
        for nth in 1..50u64 {
            let did = others.sample(disk(2 * nth, nth * (MIB + 4096), 0, 1), idle(nth * MIB));
            assert_eq!(did, OthersIo { requests: 1, bytes: 4096, in_flight: 1 });
        }
    }

    #[test]
    fn metadata_that_is_read_a_little_later_is_ours() {
        let mut others = OthersTracker::new(disk(0, 0, 0, 0), idle(0), false);
        assert_eq!(others.sample(disk(1, MIB, 0, 1), idle(MIB + 65_536)).bytes, 0);
        assert_eq!(others.sample(disk(2, MIB + 65_536, 0, 0), idle(MIB + 65_536)).bytes, 0);
        assert_eq!(others.sample(disk(3, MIB + 65_536 + 4096, 0, 0), idle(MIB + 65_536)).bytes, 4096);
    }

    #[test]
    fn read_ahead_below_a_page_cache_is_ours() {
        let mut others = OthersTracker::new(disk(0, 0, 0, 0), idle(0), true);
        assert_eq!(others.sample(disk(3, 3 * MIB, 0, 0), busy(MIB)), OthersIo::default());
        assert_eq!(others.sample(disk(30, 9 * MIB, 0, 0), busy(MIB)).bytes, 5 * MIB);
    }

    proptest::proptest! {
        /// In any order of events, the sum of others' reads is found in the end, and never exceeded.
        #[test]
        fn nothing_is_lost_and_nothing_made_up(steps in proptest::collection::vec((0u64..4, 0u64..4, 0u64..3), 1..60)) {
            let mut others = OthersTracker::new(disk(0, 0, 0, 0), idle(0), false);
            let (mut submitted, mut done, mut theirs, mut seen) = (0, 0, 0, 0);
            for (submit, finish, their) in steps {
                // At most the MiB that may be in flight.
                submitted = (submitted + submit * MIB / 4).min(done + MIB);
                done = (done + finish * MIB / 4).min(submitted);
                theirs += their * 4096;
                seen += others.sample(disk(1000, done + theirs, 0, 0), busy(submitted)).bytes;
                proptest::prop_assert!(seen <= theirs, "{seen} of {theirs}");
            }
            seen += others.sample(disk(1000, submitted + theirs, 0, 0), idle(submitted)).bytes;
            proptest::prop_assert!(seen <= theirs && theirs - seen <= MIB);
        }
    }
}
