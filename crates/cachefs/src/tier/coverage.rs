//! Which writes, truncations and closes after writing by other processes have been reported.
//!
//! A file that was written a moment ago may change again within one tick of the file system's clock, so that its times do not show it.
//! But that change is reported, and then the file's stamp is forgotten. So a stamp that is still known a second later is right.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use super::clock::{Clock, SystemClock};

/// From the time that a write gives a file to its report, which comes at its end.
const DELAY_NS: i128 = 1_000_000_000;

/// Times in whole seconds, or in two, stand for all that time.
const COARSE_NS: i128 = 2_000_000_000;

const NEVER: i64 = i64::MAX;

/// What the watch has passed on so far. Times are in nanoseconds since 1970.
pub struct Coverage {
    clock: Arc<dyn Clock>,
    /// From here on, or [`NEVER`].
    since_ns: AtomicI64,
    /// Up to here; [`i64::MAX`]: all, it waits for more.
    through_ns: AtomicI64,
}

impl fmt::Debug for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Coverage").field("since_ns", &self.since_ns).finish_non_exhaustive()
    }
}

impl Default for Coverage {
    fn default() -> Self {
        Self::by(Arc::new(SystemClock))
    }
}

impl Coverage {
    /// Nothing is reported yet.
    pub fn by(clock: Arc<dyn Clock>) -> Self {
        Self { clock, since_ns: AtomicI64::new(NEVER), through_ns: AtomicI64::new(0) }
    }

    /// From now on all changes are reported; earlier reports may be lost.
    pub fn begin(&self) {
        self.since_ns.store(self.now_ns(), SeqCst);
    }

    /// From now on no change is reported.
    pub fn end(&self) {
        self.since_ns.store(NEVER, SeqCst);
    }

    /// No report waits, so the watch begins to wait.
    pub fn waits(&self) {
        self.through_ns.store(i64::MAX, SeqCst);
    }

    /// Reports came, or it has something else to do. What happened before this moment is in the queue.
    pub fn works(&self) -> i64 {
        let now_ns = self.now_ns();
        let _ = self.through_ns.compare_exchange(i64::MAX, now_ns, SeqCst, SeqCst);
        now_ns
    }

    /// All that was in the queue at this moment was passed on.
    pub fn passed_on(&self, through_ns: i64) {
        self.through_ns.store(through_ns, SeqCst);
    }

    /// True if a change at `changed_ns`, or within the same tick, would have been passed on.
    pub fn includes(&self, changed_ns: i128) -> bool {
        let since_ns = self.since_ns.load(SeqCst);
        let through_ns = self.now_ns().min(self.through_ns.load(SeqCst));
        let within_ns = if changed_ns % 1_000_000_000 == 0 { COARSE_NS } else { 0 };
        let begun = since_ns != NEVER && changed_ns > i128::from(since_ns);
        begun && i128::from(through_ns) - changed_ns > within_ns + DELAY_NS
    }

    fn now_ns(&self) -> i64 {
        i64::try_from(self.clock.wall_ns()).unwrap_or(NEVER)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    const SECOND: i64 = 1_000_000_000;
    /// Not a whole second.
    const AT: i128 = 5 * SECOND as i128 + 7;

    #[derive(Default)]
    struct Wall(AtomicI64);

    impl Clock for Wall {
        fn now(&self) -> Instant {
            Instant::now()
        }

        fn wall_ns(&self) -> i128 {
            self.0.load(SeqCst).into()
        }
    }

    /// Begun at 3 s, and waiting.
    fn waiting() -> (Coverage, Arc<Wall>) {
        let wall = Arc::new(Wall(AtomicI64::new(3 * SECOND)));
        let coverage = Coverage::by(wall.clone());
        coverage.begin();
        coverage.waits();
        (coverage, wall)
    }

    #[test]
    fn a_change_is_included_a_second_later_if_the_watch_saw_all_since() {
        let (coverage, wall) = waiting();
        wall.0.store(6 * SECOND, SeqCst);
        assert!(!coverage.includes(AT), "the report may be on its way");
        wall.0.store(7 * SECOND, SeqCst);
        assert!(coverage.includes(AT));
        assert!(!coverage.includes(5 * i128::from(SECOND)), "it may have changed two seconds later");
        assert!(!coverage.includes(2 * i128::from(SECOND)), "before the watch");
        coverage.begin();
        assert!(!coverage.includes(AT), "the report may be lost");
        wall.0.store(9 * SECOND, SeqCst);
        coverage.end();
        assert!(!coverage.includes(8 * i128::from(SECOND) + 7), "the watch has ended");
        assert!(!Coverage::by(wall).includes(AT), "there was none");
    }

    #[test]
    fn while_the_watch_works_what_came_meanwhile_is_not_included() {
        let (coverage, wall) = waiting();
        wall.0.store(5 * SECOND, SeqCst);
        let came = coverage.works();
        wall.0.store(9 * SECOND, SeqCst);
        assert!(!coverage.includes(AT), "the report may be in the queue");
        coverage.passed_on(came);
        assert!(!coverage.includes(AT));
        let came = coverage.works();
        assert!(!coverage.includes(AT), "it is being read");
        coverage.passed_on(came);
        assert!(coverage.includes(AT), "also if more have come since");
    }
}
