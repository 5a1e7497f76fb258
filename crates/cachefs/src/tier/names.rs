//! Files' identities.
//!
//! On the first device that is asked for (the root's), a file's identity is its inode number, so there is nothing to
//! remember. What lies on other devices has numbers of its own with the highest bit set. No two files that exist at the same
//! time have the same, and none ever gets another; that an inode number is used again shows in the file's stamp.

use std::collections::HashMap;

use eke_cache_store::FileId;

use crate::footprint::map;
use crate::sync::{Mutex, lock};

/// Set in what is not simply an inode number.
const OTHER: u64 = 1 << 63;

/// A file without an identity: nothing of it is held.
pub(super) const NOBODY: FileId = FileId(u64::MAX);

/// Files on other devices that get an identity; each costs some 30 bytes for as long as the worker lives.
const MOST: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct Names {
    given: Mutex<Given>,
}

#[derive(Debug, Default)]
struct Given {
    first_dev: Option<u64>,
    others: HashMap<(u64, u64), u64>,
}

impl Names {
    /// The identity of a file by device and inode number.
    pub fn id(&self, dev: u64, ino: u64) -> FileId {
        let mut given = lock(&self.given);
        if *given.first_dev.get_or_insert(dev) == dev && ino & OTHER == 0 {
            return FileId(ino);
        }
        given.other(dev, ino)
    }
}

impl Names {
    /// What it takes, in bytes.
    pub fn memory(&self) -> usize {
        map(lock(&self.given).others.capacity(), size_of::<((u64, u64), u64)>())
    }
}

impl Given {
    fn other(&mut self, dev: u64, ino: u64) -> FileId {
        if let Some(&number) = self.others.get(&(dev, ino)) {
            return FileId(number);
        }
        // Whoever finds no room once finds none later: the answer stays the same.
        if self.others.len() >= MOST || self.others.try_reserve(1).is_err() {
            return NOBODY;
        }
        let number = OTHER | self.others.len() as u64;
        self.others.insert((dev, ino), number);
        FileId(number)
    }
}
