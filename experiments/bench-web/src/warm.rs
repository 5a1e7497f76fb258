//! Decides when the caches are full. Pure.

use std::time::Duration;

use super::content::Content;
use super::plan::{Run, Variant};

/// The caches count as full after this multiple of their capacity was read: some blocks are read twice on the way.
const SPARE: f64 = 1.2;
/// The caches also count as full when nothing was read from the disk for so long.
const QUIET: Duration = Duration::from_secs(3);
/// All variants wait so long after that. eke's mount looks for ten seconds before it leaves a directory where all fits.
const SETTLED: Duration = Duration::from_secs(15);

/// The progress of a warm-up.
#[derive(Debug, Clone, PartialEq)]
pub struct WarmUp {
    /// The bytes to read from the disk.
    target: f64,
    last: (u64, Duration),
    /// The server has begun: when nothing is read, nothing is missing.
    has_begun: bool,
    full_since: Option<Duration>,
}

impl WarmUp {
    /// The warm-up of a run. Its target is the capacity of the run's caches in bytes of the disk: the memory, more by the compression ratio
    /// for the store's share, less by the ratio of a file system that is compressed on the disk, and at most the content.
    pub fn new(content: &Content, run: &Run) -> Self {
        Self::with_share(
            content,
            run,
            if run.variant.uses_eke() { f64::from(run.conditions.share) / 100.0 } else { 0.0 },
        )
    }

    /// The same for a mount that stands aside since then.
    pub fn aside(content: &Content, run: &Run, since: Duration) -> Self {
        Self { has_begun: true, last: (0, since), ..Self::with_share(content, run, 0.0) }
    }

    fn with_share(content: &Content, run: &Run, share: f64) -> Self {
        let memory = run.variant.memory(run.conditions.memory).0 as f64;
        let capacity = memory * (1.0 + share * (content.properties.ratio - 1.0).max(0.0));
        let total = content.total() as f64;
        let on_disk =
            content.taken(run.variant.file_system()).map_or(total, |taken| taken.0 as f64).min(total);
        let compressed =
            if run.variant.file_system() == Variant::Ext4.file_system() { 1.0 } else { on_disk / total };
        let target = (capacity * compressed * SPARE).min(total * compressed);
        Self { target, last: (0, Duration::ZERO), has_begun: false, full_since: None }
    }

    /// The progress in percent when `read` bytes were read at time `at`. 100 is full.
    pub fn percent(&mut self, read: u64, at: Duration) -> f64 {
        if read > self.last.0 {
            (self.last, self.has_begun) = ((read, at), true);
        }
        let is_quiet = self.has_begun && at.saturating_sub(self.last.1) >= QUIET;
        let percent = if is_quiet { 100.0 } else { (100.0 * read as f64 / self.target.max(1.0)).min(100.0) };
        self.full_since = (percent >= 100.0).then(|| self.full_since.unwrap_or(at));
        percent
    }

    /// True if the caches have been full for long enough at this time.
    pub fn is_over(&self, at: Duration) -> bool {
        self.full_since.is_some_and(|since| at.saturating_sub(since) >= SETTLED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(warm_up: &mut WarmUp, read: u64, second: u64) -> f64 {
        warm_up.percent(read, Duration::from_secs(second))
    }

    #[test]
    fn caches_are_full_after_the_target_or_when_reads_stop() {
        let mut warm_up =
            WarmUp { target: 200.0, last: (0, Duration::ZERO), has_begun: false, full_since: None };
        assert_eq!(at(&mut warm_up, 0, 10), 0.0, "a server that has not begun");
        assert_eq!(at(&mut warm_up, 50, 11), 25.0);
        assert_eq!(at(&mut warm_up, 50, 13), 25.0);
        assert_eq!(at(&mut warm_up, 50, 14), 100.0, "quiet");
        assert_eq!(at(&mut warm_up, 60, 15), 30.0);
        assert!(!warm_up.is_over(Duration::from_secs(15)));
        assert_eq!(at(&mut warm_up, 500, 16), 100.0);
        let over = |second| warm_up.is_over(Duration::from_secs(second));
        assert_eq!((over(16), over(30), over(31)), (false, false, true));
        let since = Duration::from_secs(20);
        let mut aside = WarmUp { target: 200.0, last: (0, since), has_begun: true, full_since: None };
        assert_eq!((at(&mut aside, 0, 21), at(&mut aside, 0, 23)), (0.0, 100.0), "all was handed over");
    }
}
