//! Descriptors of nodes that the kernel has forgotten, kept for its next lookup.
//!
//! Under memory pressure the kernel forgets nodes within seconds, and then the inodes of backing files that nobody has open.
//! Opening a file whose blocks are all stored would then wait for the disk. A descriptor keeps the inode and its name in
//! memory.

use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::fs::{AtFlags, StatxFlags, statx};

use super::Inode;
use crate::backing::{is_of_removed_subvolume, is_removed};
use crate::footprint::{allocated, map};
use crate::sync::lock;

type Key = (u64, u64);

/// A bounded number of descriptors; the oldest is closed first.
#[derive(Debug, Default)]
pub(super) struct Forgotten {
    most: usize,
    /// The only mount that they may be on. On another one, even of the same file system, they would prevent its unmounting.
    mount: Option<u64>,
    kept: Mutex<KeptPaths>,
}

#[derive(Debug, Default)]
struct KeptPaths {
    paths: HashMap<Key, KeptPath>,
    /// In the order of arrival, with their numbers. Some have been taken since.
    order: VecDeque<(Key, u64)>,
    puts: u64,
}

#[derive(Debug)]
struct KeptPath {
    inode: Inode,
    number: u64,
    path: Arc<OwnedFd>,
}

fn key(inode: &Inode) -> Key {
    (inode.dev, inode.ino)
}

/// The mount of an open file (`STATX_MNT_ID`, Linux 5.8). `None`: the kernel does not report it.
pub(super) fn mount_of(path: &OwnedFd) -> Option<u64> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let found = statx(path, c"", flags, StatxFlags::MNT_ID).ok()?;
    (found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id)
}

impl Forgotten {
    /// Keeps descriptors of up to `most` inodes on this mount; of none if it is unknown.
    pub fn new(most: usize, mount: Option<u64>) -> Self {
        Self { most: if mount.is_some() { most } else { 0 }, mount, kept: Mutex::default() }
    }

    fn kept(&self) -> MutexGuard<'_, KeptPaths> {
        lock(&self.kept)
    }

    /// The number of descriptors, and the memory of the tables in bytes.
    pub fn footprint(&self) -> (usize, usize) {
        let kept = self.kept();
        let tables = map(kept.paths.capacity(), size_of::<(Key, KeptPath)>())
            + kept.order.capacity() * size_of::<(Key, u64)>()
            + kept.paths.len() * allocated(size_of::<OwnedFd>() + 16);
        (kept.paths.len(), tables)
    }

    /// Keeps a descriptor of an inode that the kernel has forgotten.
    pub fn put(&self, inode: &Inode, path: Arc<OwnedFd>) {
        if self.most == 0 || mount_of(&path) != self.mount {
            return;
        }
        let mut kept = self.kept();
        kept.puts += 1;
        let number = kept.puts;
        let before = kept.paths.insert(key(inode), KeptPath { inode: *inode, number, path });
        kept.order.push_back((key(inode), number));
        let oldest = if kept.order.len() > self.most { kept.give_up_oldest() } else { None };
        drop(kept);
        // Without the lock: closing the last descriptor of an unlinked file may take long.
        drop((before, oldest));
    }

    /// Takes the descriptor of an inode that the kernel looks up again.
    pub fn take(&self, inode: &Inode) -> Option<Arc<OwnedFd>> {
        let taken = self.kept().paths.remove(&key(inode))?;
        let is_it = taken.inode.is(inode) && !is_of_removed_subvolume(&taken.path);
        is_it.then_some(taken.path)
    }

    /// Closes the descriptors of files that others have unlinked, or whose subvolume they have removed, so that their space is freed.
    pub fn close_removed(&self) {
        let all: Vec<_> =
            self.kept().paths.iter().map(|(key, kept)| (*key, Arc::clone(&kept.path))).collect();
        for (key, path) in all.into_iter().filter(|(_, path)| is_removed(path)) {
            let removed = self.kept().paths.remove(&key);
            drop((removed, path));
        }
    }
}

impl KeptPaths {
    /// Removes the oldest, if it was neither taken nor put again since.
    fn give_up_oldest(&mut self) -> Option<KeptPath> {
        let (key, number) = self.order.pop_front()?;
        let is_it = self.paths.get(&key).is_some_and(|path| path.number == number);
        if is_it { self.paths.remove(&key) } else { None }
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

    fn forgotten(most: usize, path: &OwnedFd) -> Forgotten {
        Forgotten::new(most, mount_of(path))
    }

    #[test]
    fn the_oldest_are_closed_and_a_taken_one_is_gone() {
        let (_file, path) = file();
        let forgotten = forgotten(2, &path);
        (1..=3).for_each(|ino| forgotten.put(&inode(ino), Arc::clone(&path)));
        let found = [1, 2, 3, 3].map(|ino| forgotten.take(&inode(ino)).is_some());
        assert_eq!(found, [false, true, true, false]);
        assert_eq!(Arc::strong_count(&path), 1);
    }

    #[test]
    fn a_node_put_again_is_not_the_oldest() {
        let (_file, path) = file();
        let forgotten = forgotten(3, &path);
        forgotten.put(&inode(1), Arc::clone(&path));
        for _ in 0..3 {
            assert!(forgotten.take(&inode(1)).is_some());
            forgotten.put(&inode(1), Arc::clone(&path));
        }
        assert!(forgotten.take(&inode(1)).is_some());
    }

    #[test]
    fn nothing_is_kept_from_another_mount_or_without_room() {
        let (_file, path) = file();
        for forgotten in [Forgotten::default(), forgotten(0, &path), Forgotten::new(9, Some(u64::MAX))] {
            forgotten.put(&inode(1), Arc::clone(&path));
            assert!(forgotten.take(&inode(1)).is_none());
        }
    }

    #[test]
    fn another_file_with_the_same_number_is_another() {
        let (_file, path) = file();
        let forgotten = forgotten(9, &path);
        forgotten.put(&Inode { born_ns: 5, ..inode(1) }, path);
        assert!(forgotten.take(&Inode { born_ns: 6, ..inode(1) }).is_none());
    }

    #[test]
    fn descriptors_of_files_that_others_unlink_are_closed() {
        let ((file, path), (_other, kept)) = (file(), file());
        let forgotten = forgotten(9, &path);
        forgotten.put(&inode(1), Arc::clone(&path));
        forgotten.put(&inode(2), kept);
        drop(file);
        forgotten.close_removed();
        assert!(Arc::strong_count(&path) == 1 && forgotten.take(&inode(2)).is_some());
    }
}
