//! The pace at exec: at most so fast that others wait at most twice as long as beside the program alone.
//!
//! A disk with an arm serves one request at a time, so another reader waits for all that are in flight. Beside the program alone these are one. Reads in
//! batches, with a gap after each, let the others in between them. At the same mean wait they are faster than a few requests in flight all the time: those of
//! a batch lie in a row on the disk.

use std::time::Duration;

use crate::read::Pace;

/// The pace while others read. The other reader of `eke bench startup` then waited 25 ms instead of 13, and gedit started in 3.7 s (docs/prefetch.md). With
/// one read at a time it waited 21 ms, and gedit started in 6.9 s, later than without eke; with twelve and a gap of their whole time 23 ms and 4.1 s.
const BESIDE_OTHERS: Pace = Pace { batch: 8, read_bytes: 128 << 10, gap_percent: 50 };
/// Others read until they have read nothing for this long. A reader that waits for each of its reads comes again within it.
const QUIET: Duration = Duration::from_millis(200);
/// A fetch begins as if others had just read, but not for long.
const FIRST: Duration = Duration::from_millis(60);

/// Decides sample by sample.
#[derive(Debug, Clone)]
pub(super) struct AtExecPace {
    /// Others' reads at the latest sample.
    before: u64,
    /// Until when others count as reading.
    until: Duration,
}

impl AtExecPace {
    /// Starts at `at`, with others' reads so far.
    pub(super) fn new(at: Duration, others_reads: u64) -> Self {
        Self { before: others_reads, until: at + FIRST }
    }

    /// The pace after a sample of others' reads so far.
    pub(super) fn sample(&mut self, at: Duration, others_reads: u64) -> Pace {
        if others_reads != self.before {
            (self.before, self.until) = (others_reads, at + QUIET);
        }
        if at < self.until { BESIDE_OTHERS } else { Pace::FREE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether it reads beside others at each of these milliseconds, with others' reads so far.
    fn is_beside(samples: &[(u64, u64)]) -> Vec<bool> {
        let mut pace = AtExecPace::new(Duration::ZERO, 7);
        let each = samples.iter().map(|(at, reads)| pace.sample(Duration::from_millis(*at), *reads));
        each.map(|pace| pace != Pace::FREE).collect()
    }

    #[test]
    fn alone_it_is_free_after_a_moment() {
        assert_eq!(is_beside(&[(0, 7), (40, 7), (60, 7), (2_000, 7)]), [true, true, false, false]);
    }

    #[test]
    fn one_read_of_others_holds_it_back_for_a_while() {
        let samples = [(0, 7), (80, 7), (100, 8), (120, 8), (299, 8), (300, 8), (320, 9)];
        assert_eq!(is_beside(&samples), [true, false, true, true, true, false, true]);
    }

    #[test]
    fn a_reader_that_comes_again_holds_it_back_all_the_time() {
        let samples: Vec<(u64, u64)> = (0..100).map(|n| (n * 20, 7 + n / 3)).collect();
        assert!(is_beside(&samples).iter().all(|beside| *beside));
    }

    #[test]
    fn a_count_that_begins_anew_is_a_read() {
        assert_eq!(is_beside(&[(80, 7), (100, 0), (120, 0), (400, 0)]), [false, true, true, false]);
    }
}
