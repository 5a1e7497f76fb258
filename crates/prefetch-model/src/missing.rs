//! What a launch still read from the disk itself, although eke had read for it.

use std::cmp::Reverse;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::file_set::{FileSet, Kind};
use crate::pages::{PAGE_BYTES, Pages};

/// The most files that are named, those with the most bytes.
const FILES: usize = 64;
/// The most runs of pages that are named for each.
const SPANS: usize = 16;

/// Pages of a file that a launch read from the disk and used.
#[derive(Debug, Clone, PartialEq)]
pub struct ColdFile {
    /// Its path.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// Those pages.
    pub pages: Pages,
}

/// What a launch read itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Its begin, in seconds since 1970.
    pub at_s: i64,
    /// Its duration in milliseconds.
    pub took_ms: u64,
    /// Bytes that eke had chosen for it ahead, or read at its exec.
    pub read_bytes: u64,
    /// Bytes that it read itself.
    pub bytes: u64,
    /// Those of them that earlier launches had used.
    pub known_bytes: u64,
    /// The number of files with such pages.
    pub in_files: usize,
    /// These, at most [`FILES`], those with the most bytes first.
    pub files: Vec<MissingFile>,
}

/// What a launch read itself of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingFile {
    /// Its path.
    #[serde(with = "eke_model::path_text")]
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// Bytes of these pages.
    pub bytes: u64,
    /// Those of them that earlier launches had used.
    pub known_bytes: u64,
    /// The first of these pages.
    pub pages: Pages,
}

/// A launch's begin in seconds since 1970, its duration, and the bytes that eke had read for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadFor {
    /// Seconds since 1970.
    pub at_s: i64,
    /// Milliseconds.
    pub took_ms: u64,
    /// Bytes.
    pub read_bytes: u64,
}

/// What the launch read itself; `known` are the program's files as they were learned before.
pub fn missing(launch: ReadFor, cold: &[ColdFile], known: &FileSet) -> Missing {
    let mut files: Vec<MissingFile> = cold.iter().map(|cold| missing_file(cold, known)).collect();
    files.sort_by_key(|file| Reverse(file.bytes));
    let sum = |of: fn(&MissingFile) -> u64| files.iter().map(of).sum();
    let (bytes, known_bytes, in_files) = (sum(|file| file.bytes), sum(|file| file.known_bytes), files.len());
    files.truncate(FILES);
    let ReadFor { at_s, took_ms, read_bytes } = launch;
    Missing { at_s, took_ms, read_bytes, bytes, known_bytes, in_files, files }
}

fn missing_file(cold: &ColdFile, known: &FileSet) -> MissingFile {
    let is_it = |file: &&crate::file_set::Touched| file.kind == cold.kind && file.path == cold.path;
    let learned = known.files.iter().find(is_it).map(|file| file.pages.both(&cold.pages).count());
    MissingFile {
        path: cold.path.clone(),
        kind: cold.kind,
        bytes: cold.pages.bytes(),
        known_bytes: learned.unwrap_or(0) * PAGE_BYTES,
        pages: cold.pages.spans().iter().take(SPANS).copied().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file_set::{Stamp, Touched, UsedBy};
    use crate::pages::Span;

    fn pages(first: u64, end: u64) -> Pages {
        Span::new(first, end).into_iter().collect()
    }

    fn cold(path: &str, pages: Pages) -> ColdFile {
        ColdFile { path: path.into(), kind: Kind::File, pages }
    }

    #[test]
    fn what_is_known_is_told_from_what_is_new_and_the_largest_come_first() {
        let learned = Touched {
            path: "/usr/lib/a".into(),
            kind: Kind::File,
            stamp: Stamp::default(),
            pages: pages(0, 10),
            stale: Pages::default(),
            weight: 1.0,
            used_by: UsedBy::Unknown,
        };
        let launch = ReadFor { at_s: 5, took_ms: 700, read_bytes: 1 << 20 };
        let all = [cold("/usr/lib/a", pages(8, 12)), cold("/usr/lib/b", pages(0, 100))];
        let found = missing(launch, &all, &FileSet { files: vec![learned] });
        assert_eq!((found.bytes, found.known_bytes, found.in_files), (104 << 12, 2 << 12, 2));
        let names: Vec<_> = found.files.iter().map(|f| (f.path.to_str().unwrap(), f.known_bytes)).collect();
        assert_eq!(names, [("/usr/lib/b", 0), ("/usr/lib/a", 2 << 12)]);
    }

    #[test]
    fn names_are_bounded_and_sums_are_not() {
        let scattered: Pages = (0..100).filter_map(|n| Span::new(2 * n, 2 * n + 1)).collect();
        let all: Vec<ColdFile> = (0..100).map(|n| cold(&format!("/{n}"), scattered.clone())).collect();
        let launch = ReadFor { at_s: 0, took_ms: 0, read_bytes: 1 };
        let found = missing(launch, &all, &FileSet::default());
        assert_eq!((found.in_files, found.files.len(), found.bytes), (100, FILES, 100 * 100 * PAGE_BYTES));
        assert_eq!(found.files[0].pages.spans().len(), SPANS);
    }
}
