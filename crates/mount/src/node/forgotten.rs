//! Descriptors of nodes that the kernel has forgotten, kept for when it asks again.
//!
//! Where memory is short the kernel forgets nodes within seconds, and, as soon as nobody has a file below open, its inode
//! too: to open a file whose every block is held would mean to wait for the disk. A descriptor keeps the inode, and its name,
//! in memory.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, StatxFlags, statx};

use super::Inode;

type Key = (u64, u64);

/// A bounded number of them, the oldest given up first.
#[derive(Debug, Default)]
pub(super) struct Forgotten {
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    paths: HashMap<Key, Arc<OwnedFd>>,
    /// In the order in which they came; some have gone since.
    order: VecDeque<Key>,
}

fn key(inode: &Inode) -> Key {
    (inode.dev, inode.ino)
}

impl Forgotten {
    pub fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel has forgotten this inode.
    pub fn put(&self, inode: &Inode, path: Arc<OwnedFd>) {
        let mut kept = self.kept();
        kept.paths.insert(key(inode), path);
        kept.order.push_back(key(inode));
        while kept.order.len() > self.most {
            let oldest = kept.order.pop_front();
            oldest.and_then(|oldest| kept.paths.remove(&oldest));
        }
    }

    /// The kernel asks for it again. While its descriptor was kept no other inode could have its number.
    pub fn take(&self, inode: &Inode) -> Option<Arc<OwnedFd>> {
        self.kept().paths.remove(&key(inode))
    }

    /// Closes those that others have unlinked, so that their space is free.
    pub fn close_unlinked(&self) {
        let unlinked = |path: &Arc<OwnedFd>| {
            let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
            statx(path, c"", flags, StatxFlags::NLINK).is_ok_and(|found| found.stx_nlink == 0)
        };
        let all: Vec<_> = self.kept().paths.iter().map(|(key, path)| (*key, Arc::clone(path))).collect();
        for (key, _) in all.iter().filter(|(_, path)| unlinked(path)) {
            self.kept().paths.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::NamedTempFile, Arc<OwnedFd>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = Arc::new(OwnedFd::from(file.reopen().unwrap()));
        (file, path)
    }

    fn inode(ino: u64) -> Inode {
        Inode { dev: 1, ino, born_ns: 0 }
    }

    #[test]
    fn the_oldest_are_given_up_and_what_is_taken_is_gone() {
        let (forgotten, (_file, path)) = (Forgotten::new(2), file());
        (1..=3).for_each(|ino| forgotten.put(&inode(ino), Arc::clone(&path)));
        let there = [1, 2, 3, 3].map(|ino| forgotten.take(&inode(ino)).is_some());
        assert_eq!(there, [false, true, true, false]);
        assert_eq!(Arc::strong_count(&path), 1);
    }

    #[test]
    fn with_room_for_none_none_is_kept() {
        let (forgotten, (_file, path)) = (Forgotten::default(), file());
        forgotten.put(&inode(1), path);
        assert!(forgotten.take(&inode(1)).is_none());
    }

    #[test]
    fn what_others_unlink_is_closed() {
        let (forgotten, (file, path), (_other, kept)) = (Forgotten::new(9), file(), file());
        forgotten.put(&inode(1), Arc::clone(&path));
        forgotten.put(&inode(2), kept);
        drop(file);
        forgotten.close_unlinked();
        assert!(Arc::strong_count(&path) == 1 && forgotten.take(&inode(2)).is_some());
    }
}
