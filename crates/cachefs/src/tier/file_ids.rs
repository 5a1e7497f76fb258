//! The ids of files.
//!
//! On the first device that is used (the root's), a file's id is its inode number, so nothing is stored. Files on other
//! devices get numbers with the highest bit set. No two files that exist at the same time have the same id, and an id never
//! changes. A reused inode number shows in the file's stamp.

use std::collections::HashMap;

use eke_cache_store::FileId;

use crate::footprint::map;
use crate::sync::{Mutex, lock};

/// Set in ids that are not inode numbers.
const OTHER: u64 = 1 << 63;

/// A file without an id: none of its blocks is stored.
pub(super) const NO_FILE: FileId = FileId(u64::MAX);

/// Files on other devices that get an id. Each costs about 30 bytes while the worker lives.
const MOST: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct FileIds {
    table: Mutex<IdTable>,
}

#[derive(Debug, Default)]
struct IdTable {
    first_dev: Option<u64>,
    others: HashMap<(u64, u64), u64>,
}

impl FileIds {
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

    /// The memory of the table, in bytes.
    pub fn memory(&self) -> usize {
        map(lock(&self.table).others.capacity(), size_of::<((u64, u64), u64)>())
    }
}

impl IdTable {
    fn other(&mut self, dev: u64, ino: u64) -> FileId {
        if let Some(&number) = self.others.get(&(dev, ino)) {
            return FileId(number);
        }
        // A file that finds no room finds none later either, so its id does not change.
        if self.others.len() >= MOST || self.others.try_reserve(1).is_err() {
            return NO_FILE;
        }
        let number = OTHER | self.others.len() as u64;
        self.others.insert((dev, ino), number);
        FileId(number)
    }
}
