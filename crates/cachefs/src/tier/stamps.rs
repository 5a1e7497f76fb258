//! The stamps of files when they were last seen, for close-to-open coherence.
//!
//! A file is unchanged if its stamp is, and if the stamp was old enough when noted that any later change shows. Our own
//! writes change the stamp too: if nobody else changed the file before a write, the stamp after it is noted. A change by
//! somebody else *during* our write cannot be distinguished from it, as in NFS.
//!
//! There are two generations instead of a list by age. When the young one is full it becomes the old one, and entries not
//! used since are forgotten. A forgotten file counts as changed at its next open.

use std::collections::HashMap;
use std::io;

use eke_cache_store::FileId;

use eke_cache_spill::SavedFile;

use super::Freshness;
use super::file_ids::FileIds;
use crate::backing::Stamp;
use crate::footprint::map;
use crate::sync::{Mutex, lock};

/// Locks. Each is sometimes held during an fstat(2).
const SHARDS: usize = 16;
/// More for files on other devices than the root's: a server there that does not answer holds up no file of the root's.
const FOREIGN_SHARDS: usize = 64;

#[derive(Debug)]
pub(super) struct Stamps {
    shards: Box<[Mutex<Generations>]>,
    tick_ns: i128,
}

#[derive(Debug)]
struct Generations {
    young: HashMap<FileId, StampEntry>,
    old: HashMap<FileId, StampEntry>,
    /// Per generation.
    most: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct StampEntry {
    stamp: Option<CompactStamp>,
    settled: bool,
    /// Bytes were read that can change without a sign in the stamp.
    doubted: bool,
    /// The stamp was noted by a visit, which the kernel does not know of: its pages may be older.
    unopened: bool,
    /// Our own writes under way.
    writers: u32,
}

/// What an open finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OpenedFile {
    /// Whether the stored blocks are of this content.
    pub blocks: Freshness,
    /// Whether the kernel's pages are.
    pub pages: Freshness,
}

/// A stamp in half the memory: nanoseconds up to the year 2262.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CompactStamp {
    size: u64,
    times_ns: [i64; 3],
}

impl CompactStamp {
    fn of(stamp: Stamp) -> Option<Self> {
        let ns = |time: i128| i64::try_from(time).ok();
        let times_ns = [ns(stamp.modified_ns)?, ns(stamp.changed_ns)?, ns(stamp.born_ns)?];
        Some(Self { size: stamp.size, times_ns })
    }
}

/// A write that has begun; pass it to [`Stamps::end`].
#[derive(Debug)]
#[must_use = "it has to end"]
pub(super) struct OwnWrite {
    /// Somebody else has changed the file since it was last seen.
    pub foreign: bool,
}

impl Stamps {
    /// Remembers at least `most` files. Changes less than `tick_ns` apart can have the same time.
    pub fn new(most: usize, tick_ns: i128) -> Self {
        let generations = |of: usize| {
            let most = (most / of).max(1);
            Mutex::new(Generations { young: HashMap::new(), old: HashMap::new(), most })
        };
        let of_root = (0..SHARDS).map(|_| generations(SHARDS));
        let foreign = (0..FOREIGN_SHARDS).map(|_| generations(FOREIGN_SHARDS));
        Self { shards: of_root.chain(foreign).collect(), tick_ns }
    }

    /// Compares the file's stamp, read at some moment before `now_ns`, with the noted one, and notes it.
    pub fn opened(&self, file: FileId, stamp: Stamp, now_ns: i128) -> OpenedFile {
        let mut shard = lock(self.shard(file));
        let Some(entry) = shard.entry(file) else {
            return OpenedFile { blocks: Freshness::Changed, pages: Freshness::Changed };
        };
        let blocks = entry.compare(stamp, now_ns, self.tick_ns);
        let is_older = std::mem::take(&mut entry.unopened);
        OpenedFile { blocks, pages: if is_older { Freshness::Changed } else { blocks } }
    }

    /// The same for a read that no open of the kernel's began. The next open finds the kernel's pages changed if this does.
    pub fn visited(&self, file: FileId, stamp: Stamp, now_ns: i128) -> Freshness {
        let mut shard = lock(self.shard(file));
        let Some(entry) = shard.entry(file) else { return Freshness::Changed };
        let blocks = entry.compare(stamp, now_ns, self.tick_ns);
        entry.unopened |= blocks == Freshness::Changed;
        blocks
    }

    /// Bytes that are about to be read may change without a sign in the stamp: the file counts as changed at its next open.
    pub fn doubt(&self, file: FileId) {
        let mut shard = lock(self.shard(file));
        let Generations { young, old, .. } = &mut *shard;
        if let Some(entry) = young.get_mut(&file).or_else(|| old.get_mut(&file)) {
            entry.doubted = true;
        }
    }

    /// A write of our own begins. Calls `stat` if it is the only one.
    pub fn begin(&self, file: FileId, stat: impl FnOnce() -> io::Result<Stamp>) -> OwnWrite {
        let mut shard = lock(self.shard(file));
        let Some(entry) = shard.entry(file) else { return OwnWrite { foreign: false } };
        entry.writers += 1;
        let foreign = entry.writers == 1
            && entry.stamp.is_some()
            && stat().map_or(true, |stamp| entry.stamp != CompactStamp::of(stamp));
        if foreign {
            entry.stamp = None;
        }
        OwnWrite { foreign }
    }

    /// The write has ended. Calls `stat` if no other is under way.
    pub fn end(
        &self,
        file: FileId,
        _: OwnWrite,
        stat: impl FnOnce() -> io::Result<Stamp>,
        now_ns: impl FnOnce() -> i128,
    ) {
        let mut shard = lock(self.shard(file));
        let Some(entry) = shard.entry(file).filter(|entry| entry.writers > 0) else { return };
        entry.writers -= 1;
        if entry.writers > 0 || entry.stamp.is_none() {
            return;
        }
        // The time first: what changes after the stat is later than it.
        let now_ns = now_ns();
        match stat() {
            Ok(stamp) => entry.note(stamp, now_ns, self.tick_ns),
            Err(_) => entry.stamp = None,
        }
    }

    /// The file's version, if every later change of it will show.
    pub fn version(&self, file: FileId) -> Option<SavedFile> {
        let shard = lock(self.shard(file));
        let entry = shard.young.get(&file).or_else(|| shard.old.get(&file))?;
        let stamp = entry.stamp.filter(|_| entry.settled && !entry.doubted && entry.writers == 0)?;
        Some(SavedFile { file: file.0, size: stamp.size, times_ns: stamp.times_ns })
    }

    /// The file's version, if it is that of `stamp`, read at some moment after `now_ns`, and was at least `settled_ns` old then.
    pub fn settled_version(
        &self,
        file: FileId,
        stamp: Stamp,
        (now_ns, settled_ns): (i128, i128),
    ) -> Option<SavedFile> {
        let noted = self.version(file)?;
        let now = CompactStamp::of(stamp)?;
        let is_same = now == CompactStamp { size: noted.size, times_ns: noted.times_ns };
        let is_old = stamp.is_settled(now_ns, self.tick_ns.max(settled_ns));
        (is_same && is_old).then_some(noted)
    }

    /// Notes a version of a file from before this worker, of which there are blocks. The kernel has no pages of it.
    pub fn restore(&self, saved: SavedFile) {
        let file = FileId(saved.file);
        let stamp = Some(CompactStamp { size: saved.size, times_ns: saved.times_ns });
        if let Some(entry) = lock(self.shard(file)).entry(file) {
            *entry = StampEntry { stamp, settled: true, unopened: true, ..StampEntry::default() };
        }
    }

    /// The memory of the table, in bytes, without parts of it for foreign files that are in use now.
    pub fn memory(&self) -> usize {
        let of = |entries: &HashMap<FileId, StampEntry>| {
            map(entries.capacity(), size_of::<(FileId, StampEntry)>())
        };
        let both = |shard: &Generations| of(&shard.young) + of(&shard.old);
        let (root, foreign) = self.shards.split_at(SHARDS);
        let root: usize = root.iter().map(|shard| both(&lock(shard))).sum();
        let foreign = foreign.iter().filter_map(|shard| shard.try_lock().ok());
        root + foreign.map(|shard| both(&shard)).sum::<usize>()
    }

    /// Forgets the file.
    pub fn forget(&self, file: FileId) {
        let mut shard = lock(self.shard(file));
        shard.young.remove(&file);
        shard.old.remove(&file);
    }

    fn shard(&self, file: FileId) -> &Mutex<Generations> {
        let (first, of) = if FileIds::is_inode(file.0) { (0, SHARDS) } else { (SHARDS, FOREIGN_SHARDS) };
        &self.shards[first + (file.hash() % of as u64) as usize]
    }
}

impl StampEntry {
    /// Compares with the noted stamp, and notes this one.
    fn compare(&mut self, stamp: Stamp, now_ns: i128, tick_ns: i128) -> Freshness {
        let compact = CompactStamp::of(stamp);
        let same = compact.is_some() && self.stamp == compact && self.settled && !self.doubted;
        self.doubted = false;
        self.note(stamp, now_ns, tick_ns);
        if same { Freshness::Unchanged } else { Freshness::Changed }
    }

    fn note(&mut self, stamp: Stamp, now_ns: i128, tick_ns: i128) {
        self.stamp = CompactStamp::of(stamp);
        self.settled = stamp.is_settled(now_ns, tick_ns);
    }
}

impl Generations {
    /// The file's entry, new if necessary. `None`: there is no memory.
    fn entry(&mut self, file: FileId) -> Option<&mut StampEntry> {
        if !self.young.contains_key(&file) {
            if self.young.len() >= self.most {
                self.old = std::mem::take(&mut self.young);
            }
            if self.young.try_reserve(1).is_err() {
                self.old.remove(&file);
                return None;
            }
            let entry = self.old.remove(&file).unwrap_or_default();
            self.young.insert(file, entry);
        }
        self.young.get_mut(&file)
    }
}
