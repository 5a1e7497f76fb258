//! The result of a fetch.

use std::path::PathBuf;

use serde::Serialize;

/// The most failures that are listed; more are only counted.
const MOST_FAILURES: usize = 32;
/// The most changed files that are listed, and the most that are gone. An upgrade changes more; the next fetches find the others.
const MOST_CHANGED: usize = 256;

/// Why a file was not read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The file.
    pub path: PathBuf,
    /// A sentence.
    pub why: String,
}

/// Why a fetch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FetchEnd {
    /// Everything possible was read.
    Done,
    /// The caller stopped it.
    Stopped,
    /// Its pages evicted pages that others use.
    Harm,
    /// The disk was busy, or memory was short, for too long.
    Patience,
    /// The disk returned too many errors.
    Errors,
    /// The limit of stuck workers was reached.
    Hangs,
}

/// The results of a fetch so far. Bytes count whole pages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FetchReport {
    /// Bytes read from the disk.
    pub fetched_bytes: u64,
    /// Requested bytes that were in memory already.
    pub resident_bytes: u64,
    /// Requested bytes that were not read: refused, failed, or not reached.
    pub left_bytes: u64,
    /// Those of them that cannot be read now, of files that are as they were learned: a removed document, a file of another user.
    pub unreadable_bytes: u64,
    /// Reads that were done.
    pub pieces: u64,
    /// Directories that were listed.
    pub directories: u64,
    /// Files whose extents were looked up.
    pub located: u64,
    /// CPU time of its threads, in microseconds.
    pub cpu_us: u64,
    /// Pauses for others' I/O.
    pub waits_for_disk: u64,
    /// Pauses for memory.
    pub waits_for_memory: u64,
    /// Workers stuck on file systems that do not answer.
    pub stuck_workers: u64,
    /// The first failures.
    pub failures: Vec<Failure>,
    /// The number of all failures.
    pub failed: u64,
    /// The first files that have changed since they were learned.
    pub changed: Vec<PathBuf>,
    /// The first files at whose paths nothing is.
    pub gone: Vec<PathBuf>,
    /// Deviations on this machine.
    pub notes: Vec<String>,
    /// Why it ended; `None` while it runs.
    pub ended: Option<FetchEnd>,
}

impl FetchReport {
    /// Whether everything was read that can be.
    pub fn is_whole(&self) -> bool {
        self.ended == Some(FetchEnd::Done) && self.left_bytes <= self.unreadable_bytes
    }

    /// Counts a failure, and lists it if there is room.
    pub(crate) fn fail(&mut self, path: PathBuf, why: String) {
        self.failed += 1;
        if self.failures.len() < MOST_FAILURES {
            self.failures.push(Failure { path, why });
        }
    }

    /// Lists a file that has changed, if there is room.
    pub(crate) fn change(&mut self, path: PathBuf) {
        if self.changed.len() < MOST_CHANGED {
            self.changed.push(path);
        }
    }

    /// Lists a file that is gone, if there is room.
    pub(crate) fn miss(&mut self, path: PathBuf) {
        if self.gone.len() < MOST_CHANGED {
            self.gone.push(path);
        }
    }

    /// Adds a note once.
    pub(crate) fn note(&mut self, note: &str) {
        if !self.notes.iter().any(|have| have == note) {
            self.notes.push(note.to_owned());
        }
    }

    /// Ends it, unless it has ended.
    pub(crate) fn end(&mut self, ended: FetchEnd) {
        self.ended.get_or_insert(ended);
    }

    /// The sum of both; the worse end wins.
    #[must_use]
    pub(crate) fn with(mut self, other: &Self) -> Self {
        self.fetched_bytes += other.fetched_bytes;
        self.resident_bytes += other.resident_bytes;
        self.left_bytes += other.left_bytes;
        self.unreadable_bytes += other.unreadable_bytes;
        self.pieces += other.pieces;
        self.directories += other.directories;
        self.located += other.located;
        self.cpu_us += other.cpu_us;
        self.waits_for_disk += other.waits_for_disk;
        self.waits_for_memory += other.waits_for_memory;
        self.stuck_workers += other.stuck_workers;
        self.failed += other.failed;
        other.changed.iter().for_each(|path| self.change(path.clone()));
        other.gone.iter().for_each(|path| self.miss(path.clone()));
        let room = MOST_FAILURES.saturating_sub(self.failures.len());
        self.failures.extend(other.failures.iter().take(room).cloned());
        other.notes.iter().for_each(|note| self.note(note));
        self.ended = match (self.ended, other.ended) {
            (Some(FetchEnd::Done), ended) | (ended, Some(FetchEnd::Done)) => ended,
            (None, _) | (_, None) => None,
            (ended, Some(_)) => ended,
        };
        self
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn failures_are_counted_and_only_some_are_kept() {
        let mut report = FetchReport::default();
        for n in 0..1000 {
            report.fail(format!("/{n}").into(), "gone".to_owned());
            report.change(format!("/{n}").into());
            report.miss(format!("/{n}").into());
        }
        assert_eq!((report.failed, report.failures.len()), (1000, MOST_FAILURES));
        let both = report.clone().with(&report);
        assert_eq!((both.failed, both.failures.len()), (2000, MOST_FAILURES));
        assert_eq!((report.changed.len(), both.changed.len()), (MOST_CHANGED, MOST_CHANGED));
        assert_eq!((report.gone.len(), both.gone.len()), (MOST_CHANGED, MOST_CHANGED));
        let (one, other) = (&["/a".into()], &["/b".into()]);
        let changed = |paths: &[PathBuf]| FetchReport { changed: paths.to_vec(), ..FetchReport::default() };
        assert_eq!(changed(one).with(&changed(other)).changed, [Path::new("/a"), Path::new("/b")]);
        let gone = |paths: &[PathBuf]| FetchReport { gone: paths.to_vec(), ..FetchReport::default() };
        assert_eq!(gone(one).with(&gone(other)).gone, [Path::new("/a"), Path::new("/b")]);
    }

    #[test]
    fn a_sum_is_over_when_its_parts_are_and_has_the_worse_end() {
        let ended = |ended| FetchReport { ended, ..FetchReport::default() };
        let both = |one, other| ended(one).with(&ended(other)).ended;
        assert_eq!(both(Some(FetchEnd::Done), Some(FetchEnd::Done)), Some(FetchEnd::Done));
        assert_eq!(both(Some(FetchEnd::Done), Some(FetchEnd::Hangs)), Some(FetchEnd::Hangs));
        assert_eq!(both(Some(FetchEnd::Harm), Some(FetchEnd::Done)), Some(FetchEnd::Harm));
        assert_eq!(both(Some(FetchEnd::Done), None), None);
        assert_eq!(both(None, Some(FetchEnd::Harm)), None);
    }
}
