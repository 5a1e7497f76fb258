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
use crate::backing::Stamp;
use crate::footprint::map;
use crate::sync::{Mutex, lock};

/// Locks. None is held during an fstat(2), which waits as long as a server does not answer.
const SHARDS: usize = 16;
/// Where the times do not show every change (see `backing::tick`), the tick is longer.
const FOREVER_NS: i128 = 3600 * 1_000_000_000;
/// How often a stat is repeated because other writes of our own came between. After that the file counts as changed.
const TRIES: usize = 4;

#[derive(Debug)]
pub(super) struct Stamps {
    shards: Box<[Mutex<Generations>]>,
    tick_ns: i128,
    /// What was noted within this time after a change is looked at once more later; 0: a watch tells when a write has ended.
    recheck_ns: i128,
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
    /// It was noted at the end of a write of our own, and is the same since.
    own: bool,
    /// Bytes were read that can change without a sign in the stamp.
    doubted: bool,
    /// The kernel's pages may be older: the stamp was noted by a visit, which it does not know of, or they were read from dirty ones.
    unopened: bool,
    /// It was noted within [`Stamps::recheck_ns`] after a change by others: the write may have gone on.
    recent: bool,
    /// Threads that drop the blocks of an earlier content.
    dropping: u8,
    /// Our own writes under way.
    writers: u32,
    /// Counts our own writes as they begin. After a wrap a stat may be noted that is too old: then the next open finds a change.
    begun: u8,
}

/// What was noted of a file before a stat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Before {
    stamp: Option<CompactStamp>,
    begun: u8,
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

/// Entries of one of the two generations of a lock, for this many files in all. A map doubles when 7 of its 8 parts are taken, so a power of two of
/// files would double it for the last eighth.
fn in_a_generation(files: usize) -> usize {
    (files / 2 / SHARDS * 7 / 8).max(1)
}

impl Stamps {
    /// Remembers about `most` files. Changes less than `tick_ns` apart can have the same time.
    pub fn new(most: usize, tick_ns: i128, recheck_ns: i128) -> Self {
        let most = in_a_generation(most);
        let generations = || Generations { young: HashMap::new(), old: HashMap::new(), most };
        Self { shards: (0..SHARDS).map(|_| Mutex::new(generations())).collect(), tick_ns, recheck_ns }
    }

    /// From now on remembers about `most` files.
    pub fn remember(&self, most: usize) {
        self.shards.iter().for_each(|shard| lock(shard).most = in_a_generation(most));
    }

    /// True if this stamp is the noted one, which came with a write of our own, and changes in its tick would not show.
    pub fn is_of_own_write(&self, file: FileId, stamp: Stamp) -> bool {
        let shard = lock(self.shard(file));
        let entry = shard.young.get(&file).or_else(|| shard.old.get(&file));
        entry.is_some_and(|entry| entry.own && !entry.settled && entry.stamp == CompactStamp::of(stamp))
    }

    /// Compares the file's stamp, read at some moment before `now_ns`, with the noted one, and notes it. Who finds the blocks changed drops them, and then
    /// calls [`Self::dropped`]. `is_reported`: whether a
    /// write by others in the tick of the noted stamp would have had the file forgotten by now. That counts only after a write of our own:
    /// others may store through mappings, which nobody reports.
    pub fn opened(&self, file: FileId, stamp: Stamp, now_ns: i128, is_reported: bool) -> OpenedFile {
        let mut shard = lock(self.shard(file));
        let Some(entry) = shard.entry(file) else {
            return OpenedFile { blocks: Freshness::Changed, pages: Freshness::Changed };
        };
        if is_reported && entry.own && entry.writers == 0 && self.tick_ns < FOREVER_NS {
            entry.settled = true;
        }
        let blocks = entry.compare(stamp, now_ns, (self.tick_ns, self.recheck_ns));
        let is_older = std::mem::take(&mut entry.unopened);
        OpenedFile { blocks, pages: if is_older { Freshness::Changed } else { blocks } }
    }

    /// The same for a read that no open of the kernel's began. The next open finds the kernel's pages changed if this does.
    pub fn visited(&self, file: FileId, stamp: Stamp, now_ns: i128) -> Freshness {
        let mut shard = lock(self.shard(file));
        let Some(entry) = shard.entry(file) else { return Freshness::Changed };
        let blocks = entry.compare(stamp, now_ns, (self.tick_ns, self.recheck_ns));
        entry.unopened |= blocks == Freshness::Changed;
        blocks
    }

    /// The blocks of an earlier content, which an open, a visit or a write found changed, are dropped now. Until then all find it changed.
    pub fn dropped(&self, file: FileId) {
        let mut shard = lock(self.shard(file));
        let Generations { young, old, .. } = &mut *shard;
        if let Some(entry) = young.get_mut(&file).or_else(|| old.get_mut(&file)) {
            entry.dropping = entry.dropping.saturating_sub(1);
        }
    }

    /// Bytes that are about to be read, only for the kernel's pages, may change without a sign in the stamp: the next open finds these
    /// changed, and the blocks as they are.
    pub fn pages_may_be_old(&self, file: FileId) {
        let mut shard = lock(self.shard(file));
        let Generations { young, old, .. } = &mut *shard;
        if let Some(entry) = young.get_mut(&file).or_else(|| old.get_mut(&file)) {
            entry.unopened = true;
        }
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
    pub fn begin(&self, file: FileId, stat: impl Fn() -> io::Result<Stamp>) -> OwnWrite {
        let mut seen = None;
        for _ in 0..TRIES {
            match self.try_begin(file, seen) {
                Ok(begun) => return begun,
                Err(before) => seen = Some((before, stat().ok().and_then(CompactStamp::of))),
            }
        }
        // The last stat counts, whatever came between.
        let now = seen.and_then(|(_, now)| now);
        let mut shard = lock(self.shard(file));
        let Some(entry) = shard.entry(file) else { return OwnWrite { foreign: false } };
        entry.begin(entry.stamp.is_some() && entry.stamp != now)
    }

    /// Begins a write, with what was noted before a stat, and that stat. `Err`: a stat is needed, with what is noted now.
    fn try_begin(
        &self,
        file: FileId,
        seen: Option<(Before, Option<CompactStamp>)>,
    ) -> Result<OwnWrite, Before> {
        let mut shard = lock(self.shard(file));
        let Some(entry) = shard.entry(file) else { return Ok(OwnWrite { foreign: false }) };
        if entry.writers > 0 || entry.stamp.is_none() {
            return Ok(entry.begin(false));
        }
        match seen {
            Some((_, now)) if now == entry.stamp => Ok(entry.begin(false)),
            Some((before, _)) if before == entry.before() => Ok(entry.begin(true)),
            _ => Err(entry.before()),
        }
    }

    /// The write has ended. Calls `stat` if no other is under way; until then this one counts as under way.
    pub fn end(
        &self,
        file: FileId,
        own: OwnWrite,
        stat: impl Fn() -> io::Result<Stamp>,
        now_ns: impl Fn() -> i128,
    ) {
        let mut seen = None;
        for _ in 0..TRIES {
            let Some(begun) = self.try_end(file, seen) else { return };
            // The time first: what changes after the stat is later than it.
            seen = Some((begun, now_ns(), stat().ok()));
        }
        if self.try_end(file, seen).is_some() {
            self.end_unseen(file, own);
        }
    }

    /// The write has ended, without a stat: the file counts as changed at its next open, and until then its writes need none.
    pub fn end_unseen(&self, file: FileId, _: OwnWrite) {
        let mut shard = lock(self.shard(file));
        if let Some(entry) = shard.entry(file).filter(|entry| entry.writers > 0) {
            entry.writers -= 1;
            entry.stamp = None;
        }
    }

    /// Ends a write, with the writes that had begun before a stat, the time, and that stat. `Some`: a stat is needed, with the writes
    /// that have begun now.
    fn try_end(&self, file: FileId, seen: Option<(u8, i128, Option<Stamp>)>) -> Option<u8> {
        let mut shard = lock(self.shard(file));
        let entry = shard.entry(file).filter(|entry| entry.writers > 0)?;
        if entry.writers == 1 && entry.stamp.is_some() {
            let seen = seen.filter(|(begun, ..)| *begun == entry.begun);
            let Some((_, now_ns, stamp)) = seen else { return Some(entry.begun) };
            match stamp {
                Some(stamp) => {
                    entry.note(stamp, now_ns, self.tick_ns);
                    entry.own = true;
                }
                None => entry.stamp = None,
            }
        }
        entry.writers -= 1;
        None
    }

    /// The file's version, if every later change of it will show.
    pub fn version(&self, file: FileId) -> Option<SavedFile> {
        let shard = lock(self.shard(file));
        let entry = shard.young.get(&file).or_else(|| shard.old.get(&file))?;
        let stamp = entry.stamp.filter(|_| entry.settled && !entry.doubted && entry.writers == 0)?;
        Some(SavedFile { file: file.0, size: stamp.size, times_ns: stamp.times_ns })
    }

    /// The file's size when it was last seen.
    pub fn size(&self, file: FileId) -> Option<u64> {
        let shard = lock(self.shard(file));
        let entry = shard.young.get(&file).or_else(|| shard.old.get(&file))?;
        entry.stamp.map(|stamp| stamp.size)
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

    /// The memory of the table, in bytes.
    pub fn memory(&self) -> usize {
        let of = |entries: &HashMap<FileId, StampEntry>| {
            map(entries.capacity(), size_of::<(FileId, StampEntry)>())
        };
        let both = |shard: &Generations| of(&shard.young) + of(&shard.old);
        self.shards.iter().map(|shard| both(&lock(shard))).sum()
    }

    /// Forgets the file.
    pub fn forget(&self, file: FileId) {
        let mut shard = lock(self.shard(file));
        shard.young.remove(&file);
        shard.old.remove(&file);
    }

    fn shard(&self, file: FileId) -> &Mutex<Generations> {
        &self.shards[(file.hash() % SHARDS as u64) as usize]
    }
}

impl StampEntry {
    fn before(&self) -> Before {
        Before { stamp: self.stamp, begun: self.begun }
    }

    /// Counts a write that begins.
    fn begin(&mut self, foreign: bool) -> OwnWrite {
        self.writers += 1;
        self.begun = self.begun.wrapping_add(1);
        if foreign {
            self.stamp = None;
            self.dropping = self.dropping.saturating_add(1);
        }
        OwnWrite { foreign }
    }

    /// Compares with the noted stamp, and notes this one.
    fn compare(&mut self, stamp: Stamp, now_ns: i128, (tick_ns, recheck_ns): (i128, i128)) -> Freshness {
        let compact = CompactStamp::of(stamp);
        let own = self.own && self.stamp == compact;
        let is_recent = now_ns - stamp.changed_ns < recheck_ns;
        let may_have_gone_on = self.recent && !is_recent;
        let same = compact.is_some() && self.stamp == compact && self.settled && !self.doubted;
        let same = same && !may_have_gone_on && self.dropping == 0;
        self.doubted = false;
        self.note(stamp, now_ns, tick_ns);
        (self.own, self.recent) = (own, is_recent && !own);
        if same {
            return Freshness::Unchanged;
        }
        self.dropping = self.dropping.saturating_add(1);
        Freshness::Changed
    }

    fn note(&mut self, stamp: Stamp, now_ns: i128, tick_ns: i128) {
        self.stamp = CompactStamp::of(stamp);
        self.settled = stamp.is_settled(now_ns, tick_ns);
        (self.own, self.recent) = (false, false);
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
