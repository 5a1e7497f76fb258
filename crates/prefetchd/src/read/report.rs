//! What came of a fetch, as data.

use std::path::PathBuf;

use serde::Serialize;

/// Failures that are kept; more are only counted.
const MOST_FAILURES: usize = 32;

/// Why something was not fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// What.
    pub path: PathBuf,
    /// Why, a sentence.
    pub why: String,
}

/// Why it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Everything was done that could be done.
    Done,
    /// Its caller said so.
    Stopped,
    /// What it brought in pushed out what others use.
    Harm,
    /// Others used the disk, or memory was short, for too long.
    Patience,
    /// The disk answers with errors.
    Errors,
    /// As many threads wait for ever as may.
    Hangs,
}

/// What came of a fetch so far. Bytes are of whole pages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Report {
    /// Read from the disk.
    pub fetched_bytes: u64,
    /// Asked for, and in memory already.
    pub resident_bytes: u64,
    /// Asked for, and not brought: refused, failed, or not come to.
    pub left_bytes: u64,
    /// Reads that were made.
    pub pieces: u64,
    /// Directories that were gone through.
    pub directories: u64,
    /// Files whose places were asked for.
    pub located: u64,
    /// How often it waited for others to be done with the disk.
    pub waits_for_disk: u64,
    /// How often it waited for memory.
    pub waits_for_memory: u64,
    /// Threads that it left behind, waiting for file systems that do not answer.
    pub stuck_workers: u64,
    /// Why parts were not fetched: the first so many.
    pub failures: Vec<Failure>,
    /// How many there were in all.
    pub failed: u64,
    /// Of these, those of files that are not what was learned any more.
    pub changed: u64,
    /// What could not be had here and was done otherwise.
    pub notes: Vec<String>,
    /// Why it ended; `None` while it goes on.
    pub ended: Option<Ended>,
}

impl Report {
    /// Counts a failure, and keeps it if there is room.
    pub(crate) fn fail(&mut self, path: PathBuf, why: String) {
        self.failed += 1;
        if self.failures.len() < MOST_FAILURES {
            self.failures.push(Failure { path, why });
        }
    }

    /// Says something once.
    pub(crate) fn note(&mut self, note: &str) {
        if !self.notes.iter().any(|have| have == note) {
            self.notes.push(note.to_owned());
        }
    }

    /// Ends it, unless it ended before.
    pub(crate) fn end(&mut self, ended: Ended) {
        self.ended.get_or_insert(ended);
    }

    /// Both as one; it ended worse if one did.
    #[must_use]
    pub(crate) fn with(mut self, other: &Self) -> Self {
        self.fetched_bytes += other.fetched_bytes;
        self.resident_bytes += other.resident_bytes;
        self.left_bytes += other.left_bytes;
        self.pieces += other.pieces;
        self.directories += other.directories;
        self.located += other.located;
        self.waits_for_disk += other.waits_for_disk;
        self.waits_for_memory += other.waits_for_memory;
        self.stuck_workers += other.stuck_workers;
        self.failed += other.failed;
        self.changed += other.changed;
        let room = MOST_FAILURES.saturating_sub(self.failures.len());
        self.failures.extend(other.failures.iter().take(room).cloned());
        other.notes.iter().for_each(|note| self.note(note));
        self.ended = match (self.ended, other.ended) {
            (Some(Ended::Done), ended) | (ended, Some(Ended::Done)) => ended,
            (None, _) | (_, None) => None,
            (ended, Some(_)) => ended,
        };
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_and_only_some_are_kept() {
        let mut report = Report::default();
        (0..1000).for_each(|n| report.fail(format!("/{n}").into(), "gone".to_owned()));
        assert_eq!((report.failed, report.failures.len()), (1000, MOST_FAILURES));
        let both = report.clone().with(&report);
        assert_eq!((both.failed, both.failures.len()), (2000, MOST_FAILURES));
    }

    #[test]
    fn a_whole_is_over_when_its_parts_are_and_says_the_worse() {
        let ended = |ended| Report { ended, ..Report::default() };
        let both = |one, other| ended(one).with(&ended(other)).ended;
        assert_eq!(both(Some(Ended::Done), Some(Ended::Done)), Some(Ended::Done));
        assert_eq!(both(Some(Ended::Done), Some(Ended::Hangs)), Some(Ended::Hangs));
        assert_eq!(both(Some(Ended::Harm), Some(Ended::Done)), Some(Ended::Harm));
        assert_eq!(both(Some(Ended::Done), None), None);
        assert_eq!(both(None, Some(Ended::Harm)), None);
    }
}
