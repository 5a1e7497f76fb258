//! Since when every change of content by other processes has been reported.
//!
//! A file that was written a moment ago may change again within one tick of the file system's clock, so that its times do not show it.
//! But that change is reported, and then the file's stamp is forgotten. So a stamp that is still known a second later is right.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst};

/// The time that a report may take: the pause between rounds (10 ms) and a busy processor.
const DELAY_NS: i128 = 1_000_000_000;

/// Nothing is reported.
const NEVER: i64 = i64::MAX;

/// What the watch has covered so far.
#[derive(Debug)]
pub struct Coverage {
    /// In nanoseconds since 1970.
    since_ns: AtomicI64,
    /// Reports have come that were not passed on yet.
    behind: AtomicBool,
}

impl Default for Coverage {
    fn default() -> Self {
        Self { since_ns: AtomicI64::new(NEVER), behind: AtomicBool::new(false) }
    }
}

impl Coverage {
    /// From `now_ns` on all changes are reported; earlier reports may be lost.
    pub fn begin(&self, now_ns: i128) {
        self.since_ns.store(i64::try_from(now_ns).unwrap_or(NEVER), SeqCst);
    }

    /// From now on no change is reported.
    pub fn end(&self) {
        self.since_ns.store(NEVER, SeqCst);
    }

    /// Reports have come that will be passed on next, or all were.
    pub fn set_behind(&self, behind: bool) {
        self.behind.store(behind, SeqCst);
    }

    /// True if a change at `changed_ns`, or within the same tick, would have been passed on by `now_ns`. Both in nanoseconds since 1970.
    pub fn includes(&self, changed_ns: i128, now_ns: i128) -> bool {
        let since_ns = self.since_ns.load(SeqCst);
        let begun = since_ns != NEVER && changed_ns > i128::from(since_ns);
        begun && now_ns - changed_ns > DELAY_NS && !self.behind.load(SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i128 = 1_000_000_000;

    #[test]
    fn a_change_is_included_a_second_later_if_the_watch_saw_all_since() {
        let coverage = Coverage::default();
        assert!(!coverage.includes(5 * SECOND, 9 * SECOND), "there is no watch");
        coverage.begin(3 * SECOND);
        assert!(coverage.includes(5 * SECOND, 9 * SECOND));
        assert!(!coverage.includes(5 * SECOND, 6 * SECOND), "the report may be on its way");
        assert!(!coverage.includes(3 * SECOND, 9 * SECOND), "before the watch");
        coverage.set_behind(true);
        assert!(!coverage.includes(5 * SECOND, 9 * SECOND), "the report may wait");
        coverage.set_behind(false);
        coverage.begin(6 * SECOND);
        assert!(!coverage.includes(5 * SECOND, 9 * SECOND), "the report may be lost");
        coverage.end();
        assert!(!coverage.includes(7 * SECOND, 9 * SECOND), "the watch has ended");
    }
}
