//! The paths of files whose blocks were read, below the backing directory. The kernel forgets names long before the store forgets blocks,
//! and the list of what was hot needs both.
//!
//! A path is a hint: the file may have another one by now. The table is bounded; without room it forgets nothing and learns nothing, until
//! [`KnownPaths::retain`] makes room.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use eke_cache_store::FileId;

use crate::footprint::{allocated, map};
use crate::sync::lock;

/// The table.
#[derive(Debug)]
pub(super) struct KnownPaths {
    paths: Mutex<Paths>,
    /// The most bytes of names.
    most: usize,
}

#[derive(Debug, Default)]
struct Paths {
    of: HashMap<FileId, Box<[u8]>>,
    bytes: usize,
}

impl KnownPaths {
    /// Keeps paths of `most` bytes; none with 0.
    pub fn new(most: usize) -> Self {
        Self { paths: Mutex::default(), most }
    }

    fn lock(&self) -> MutexGuard<'_, Paths> {
        lock(&self.paths)
    }

    /// Notes the file's path, unless one is noted.
    pub fn note(&self, file: FileId, path: impl FnOnce() -> Option<PathBuf>) {
        if self.most == 0 || self.lock().of.contains_key(&file) {
            return;
        }
        let Some(path) = path() else { return };
        let mut paths = self.lock();
        let bytes = allocated(path.as_os_str().len());
        if paths.bytes + bytes <= self.most && paths.of.try_reserve(1).is_ok() {
            let before = paths.of.insert(file, path.as_os_str().as_bytes().into());
            paths.bytes += bytes;
            paths.bytes -= before.map_or(0, |before| allocated(before.len()));
        }
    }

    /// The noted path.
    pub fn get(&self, file: FileId) -> Option<PathBuf> {
        self.lock().of.get(&file).map(|path| Path::new(OsStr::from_bytes(path)).to_owned())
    }

    /// Forgets all other files.
    pub fn retain(&self, files: &HashSet<FileId>) {
        let mut paths = self.lock();
        paths.of.retain(|file, _| files.contains(file));
        paths.bytes = paths.of.values().map(|path| allocated(path.len())).sum();
        paths.of.shrink_to_fit();
    }

    /// The table's memory, in bytes.
    pub fn memory(&self) -> usize {
        let paths = self.lock();
        paths.bytes + map(paths.of.capacity(), size_of::<(FileId, Box<[u8]>)>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_noted_once_and_within_bounds() {
        let known = KnownPaths::new(200);
        known.note(FileId(1), || Some("a/b".into()));
        known.note(FileId(1), || panic!("it is noted"));
        known.note(FileId(2), || None);
        (3..100).for_each(|file| known.note(FileId(file), || Some("some/name".into())));
        assert_eq!((known.get(FileId(1)), known.get(FileId(2))), (Some("a/b".into()), None));
        assert_eq!((known.get(FileId(3)), known.get(FileId(99))), (Some("some/name".into()), None));
        known.retain(&HashSet::from([FileId(3)]));
        assert_eq!((known.get(FileId(1)), known.get(FileId(3))), (None, Some("some/name".into())));
        known.note(FileId(99), || Some("x".into()));
        assert!(known.get(FileId(99)).is_some() && known.memory() > 0);
        let none = KnownPaths::new(0);
        none.note(FileId(1), || panic!("it keeps nothing"));
    }
}
