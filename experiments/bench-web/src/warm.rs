//! When are the caches full? Pure.

use std::time::Duration;

use super::content::Content;
use super::plan::{Run, Variant};

/// What is read before the caches are taken to be full, by what they can hold: some of it comes twice on the way.
const SPARE: f64 = 1.2;
/// A disk that nothing was read from for so long has nothing more to give.
const QUIET: Duration = Duration::from_secs(3);

/// Knows how far a warm-up is.
#[derive(Debug, Clone, PartialEq)]
pub struct Warmth {
    wanted: f64,
    last: (u64, Duration),
}

impl Warmth {
    /// Of a run. What its caches hold, in bytes of the disk: the page cache what is in memory, a store more by the ratio, and of a
    /// file system that is packed on the disk as much less as it is packed. Never more than there is.
    pub fn new(content: &Content, run: &Run) -> Self {
        let c = &run.conditions;
        let memory = run.variant.memory(c.memory).0 as f64;
        let share = if run.variant.is_ours() { f64::from(c.share) / 100.0 } else { 0.0 };
        let held = memory * (1.0 + share * (content.seen.ratio - 1.0).max(0.0));
        let total = content.total() as f64;
        let on_disk =
            content.taken(run.variant.file_system()).map_or(total, |taken| taken.0 as f64).min(total);
        let packed =
            if run.variant.file_system() == Variant::Ext4.file_system() { 1.0 } else { on_disk / total };
        Self { wanted: (held * packed * SPARE).min(total * packed), last: (0, Duration::ZERO) }
    }

    /// In percent, when so many bytes were read at this time: 100 is enough.
    pub fn share(&mut self, read: u64, at: Duration) -> f64 {
        if read > self.last.0 {
            self.last = (read, at);
        }
        let is_quiet = read > 0 && at.saturating_sub(self.last.1) >= QUIET;
        if is_quiet { 100.0 } else { (100.0 * read as f64 / self.wanted.max(1.0)).min(100.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(share: &mut Warmth, read: u64, second: u64) -> f64 {
        share.share(read, Duration::from_secs(second))
    }

    #[test]
    fn enough_was_read_or_nothing_more_comes() {
        let mut warmth = Warmth { wanted: 200.0, last: (0, Duration::ZERO) };
        assert_eq!(at(&mut warmth, 0, 10), 0.0, "a server that has not begun");
        assert_eq!(at(&mut warmth, 50, 11), 25.0);
        assert_eq!(at(&mut warmth, 50, 13), 25.0);
        assert_eq!(at(&mut warmth, 50, 14), 100.0, "quiet");
        assert_eq!(at(&mut warmth, 60, 15), 30.0);
        assert_eq!(at(&mut warmth, 500, 16), 100.0);
    }
}
