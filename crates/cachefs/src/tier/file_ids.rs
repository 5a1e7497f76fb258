//! The ids of files.
//!
//! On the first device that is used (the root's), a file's id is its inode number, so nothing is stored. Files on other
//! devices get numbers with the highest bit set. No two files that exist at the same time have the same id, and no number is given
//! twice. When the table is nearly full, files that nobody uses lose their ids, and get others when they are used again. A reused
//! inode number shows in the file's stamp.

use std::collections::HashMap;

use eke_cache_store::FileId;

use crate::footprint::map;
use crate::sync::{Mutex, lock};

/// Set in ids that are not inode numbers.
const OTHER: u64 = 1 << 63;

/// A file without an id: none of its blocks is stored.
pub(super) const NO_FILE: FileId = FileId(u64::MAX);

/// Files on other devices that have an id at the same time. Each costs about 30 bytes.
const MOST: usize = 1 << 20;
/// Cleanings without a search after one that found few: about a minute.
const PAUSE: u32 = 6;

#[derive(Debug)]
pub(super) struct FileIds {
    table: Mutex<IdTable>,
}

#[derive(Debug)]
struct IdTable {
    first_dev: Option<u64>,
    others: HashMap<(u64, u64), u64>,
    /// The number of the next.
    next: u64,
    most: usize,
    /// How many times it is not looked for unused ids: the last search, which takes time for a million files, found few.
    pause: u32,
}

impl Default for FileIds {
    fn default() -> Self {
        Self::new(MOST)
    }
}

impl FileIds {
    /// With ids for up to `most` files on other devices.
    pub fn new(most: usize) -> Self {
        Self { table: Mutex::new(IdTable::new(most)) }
    }

    /// True if the id is an inode number, and so the same in every worker.
    pub fn is_inode(file: u64) -> bool {
        file & OTHER == 0
    }

    /// The id of a file by device and inode number.
    pub fn id(&self, dev: u64, ino: u64) -> FileId {
        let mut table = lock(&self.table);
        if *table.first_dev.get_or_insert(dev) == dev && ino & OTHER == 0 {
            return FileId(ino);
        }
        table.other(dev, ino)
    }
}

impl FileIds {
    /// The same, if the file has one: a change of a file that nobody asked for gives it none.
    pub fn known(&self, dev: u64, ino: u64) -> Option<FileId> {
        let table = lock(&self.table);
        if table.first_dev == Some(dev) && ino & OTHER == 0 {
            return Some(FileId(ino));
        }
        table.others.get(&(dev, ino)).map(|number| FileId(*number))
    }

    /// The files on other devices by device and inode number, with their ids, if the table is nearly full and it is time to look for unused ones.
    pub fn nearly_full(&self) -> Option<Vec<((u64, u64), FileId)>> {
        lock(&self.table).nearly_full()
    }

    /// Takes these files' ids away.
    pub fn forget(&self, files: &[(u64, u64)]) {
        lock(&self.table).forget(files);
    }

    /// The memory of the table, in bytes.
    pub fn memory(&self) -> usize {
        map(lock(&self.table).others.capacity(), size_of::<((u64, u64), u64)>())
    }
}

impl IdTable {
    fn new(most: usize) -> Self {
        Self { first_dev: None, others: HashMap::new(), next: 0, most, pause: 0 }
    }

    fn nearly_full(&mut self) -> Option<Vec<((u64, u64), FileId)>> {
        let is_nearly_full = self.others.len() >= self.most - self.most / 8;
        self.pause = self.pause.saturating_sub(1);
        let all = || self.others.iter().map(|(file, number)| (*file, FileId(*number))).collect();
        (is_nearly_full && self.pause == 0).then(all)
    }

    fn forget(&mut self, files: &[(u64, u64)]) {
        self.pause = if files.len() < self.most / 32 { PAUSE } else { 0 };
        for file in files {
            self.others.remove(file);
        }
        if self.others.len() < self.others.capacity() / 8 {
            self.others.shrink_to(self.others.len() * 2);
        }
    }

    fn other(&mut self, dev: u64, ino: u64) -> FileId {
        if let Some(&number) = self.others.get(&(dev, ino)) {
            return FileId(number);
        }
        if self.others.len() >= self.most || self.others.try_reserve(1).is_err() {
            return NO_FILE;
        }
        let number = OTHER | self.next;
        self.next += 1;
        self.others.insert((dev, ino), number);
        FileId(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_of_used_files_is_searched_once_a_minute() {
        let mut ids = IdTable::new(64);
        (0..64).for_each(|ino| _ = ids.other(9, ino));
        let mut searches = 0;
        for _ in 0..12 {
            if ids.nearly_full().is_some() {
                searches += 1;
                ids.forget(&[]);
            }
        }
        assert_eq!(searches, 2);
        ids.forget(&[(9, 1), (9, 2)]);
        (64..66).for_each(|ino| _ = ids.other(9, ino));
        assert!(ids.nearly_full().is_some(), "the last one found some");
    }

    #[test]
    fn a_full_table_has_room_again_and_gives_no_number_twice() {
        let mut table = IdTable::new(3);
        let [a, b, c] = [1, 2, 3].map(|ino| table.other(9, ino));
        assert_eq!((table.other(9, 4), table.other(9, 2)), (NO_FILE, b));
        table.forget(&[(9, 1), (9, 3)]);
        let [d, e] = [4, 1].map(|ino| table.other(9, ino));
        assert_eq!((table.other(9, 3), table.other(9, 2)), (NO_FILE, b));
        let mut all = [a, b, c, d, e].map(|id| id.0);
        all.sort_unstable();
        assert!(all.windows(2).all(|two| two[0] < two[1]), "{all:?}");
    }
}
