//! What files were when they were last seen: close-to-open.
//!
//! A file is the same as before if its stamp is, and if that stamp was old enough when it was noted for any later change to
//! show. Our own writes change it too: if nobody else changed the file before a write, the stamp after it becomes the known
//! one. What somebody else changes *while* our own write runs cannot be told from it, here as in NFS.
//!
//! Two generations instead of a list by age: when the young one is full, it becomes the old one, and what was there and not
//! asked for since is forgotten. A forgotten file is taken for changed at its next open.

use std::collections::HashMap;
use std::io;

use eke_cache_store::FileId;

use super::Seen;
use crate::backing::Stamp;
use crate::footprint::map;
use crate::sync::{Mutex, lock};

/// Locks: each is held over an fstat(2) now and then.
const SHARDS: usize = 16;

#[derive(Debug)]
pub(super) struct Known {
    shards: Box<[Mutex<Generations>]>,
    tick_ns: i128,
}

#[derive(Debug)]
struct Generations {
    young: HashMap<FileId, Entry>,
    old: HashMap<FileId, Entry>,
    /// In each generation.
    most: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    short: Option<Short>,
    settled: bool,
    /// Something was read that can change without a sign in the stamp.
    doubted: bool,
    /// Own writes under way.
    writers: u32,
}

/// A stamp in half the room: nanoseconds up to the year 2262.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Short {
    size: u64,
    times_ns: [i64; 3],
}

impl Short {
    fn of(stamp: Stamp) -> Option<Self> {
        let ns = |time: i128| i64::try_from(time).ok();
        let times_ns = [ns(stamp.modified_ns)?, ns(stamp.changed_ns)?, ns(stamp.born_ns)?];
        Some(Self { size: stamp.size, times_ns })
    }
}

/// A write that has begun; [`Known::end`] takes it back.
#[derive(Debug)]
#[must_use = "it has to end"]
pub(super) struct Begun {
    /// Somebody else has changed the file since it was last seen.
    pub foreign: bool,
}

impl Known {
    /// Remembers up to `most` files at least; changes less than `tick_ns` apart can have the same time.
    pub fn new(most: usize, tick_ns: i128) -> Self {
        let generations = || {
            let most = (most / SHARDS).max(1);
            Mutex::new(Generations { young: HashMap::new(), old: HashMap::new(), most })
        };
        Self { shards: (0..SHARDS).map(|_| generations()).collect(), tick_ns }
    }

    /// The file is this now, as was seen at some moment before `now_ns`; is it what it was?
    pub fn opened(&self, file: FileId, stamp: Stamp, now_ns: i128) -> Seen {
        let mut shard = lock(self.shard(file));
        let Some(entry) = shard.entry(file) else { return Seen::Changed };
        let short = Short::of(stamp);
        let same = short.is_some() && entry.short == short && entry.settled && !entry.doubted;
        entry.doubted = false;
        entry.note(stamp, now_ns, self.tick_ns);
        if same { Seen::Same } else { Seen::Changed }
    }

    /// What is about to be read of the file may change without a sign in its stamp: at the next open it counts as changed.
    pub fn doubt(&self, file: FileId) {
        let mut shard = lock(self.shard(file));
        let Generations { young, old, .. } = &mut *shard;
        if let Some(entry) = young.get_mut(&file).or_else(|| old.get_mut(&file)) {
            entry.doubted = true;
        }
    }

    /// A write of our own is about to begin. `look` is called if it is the only one.
    pub fn begin(&self, file: FileId, look: impl FnOnce() -> io::Result<Stamp>) -> Begun {
        let mut shard = lock(self.shard(file));
        let Some(entry) = shard.entry(file) else { return Begun { foreign: false } };
        entry.writers += 1;
        let foreign = entry.writers == 1
            && entry.short.is_some()
            && look().map_or(true, |stamp| entry.short != Short::of(stamp));
        if foreign {
            entry.short = None;
        }
        Begun { foreign }
    }

    /// The write has ended. `look` is called if no other is under way.
    pub fn end(
        &self,
        file: FileId,
        _: Begun,
        look: impl FnOnce() -> io::Result<Stamp>,
        now_ns: impl FnOnce() -> i128,
    ) {
        let mut shard = lock(self.shard(file));
        let Some(entry) = shard.entry(file).filter(|entry| entry.writers > 0) else { return };
        entry.writers -= 1;
        if entry.writers > 0 || entry.short.is_none() {
            return;
        }
        // The time first: what changes after the look is later than it.
        let now_ns = now_ns();
        match look() {
            Ok(stamp) => entry.note(stamp, now_ns, self.tick_ns),
            Err(_) => entry.short = None,
        }
    }

    /// What it takes, in bytes.
    pub fn memory(&self) -> usize {
        let of = |entries: &HashMap<FileId, Entry>| map(entries.capacity(), size_of::<(FileId, Entry)>());
        self.shards
            .iter()
            .map(|shard| {
                let shard = lock(shard);
                of(&shard.young) + of(&shard.old)
            })
            .sum()
    }

    /// Nothing is known of the file.
    pub fn forget(&self, file: FileId) {
        let mut shard = lock(self.shard(file));
        shard.young.remove(&file);
        shard.old.remove(&file);
    }

    fn shard(&self, file: FileId) -> &Mutex<Generations> {
        &self.shards[(file.hash() % SHARDS as u64) as usize]
    }
}

impl Entry {
    fn note(&mut self, stamp: Stamp, now_ns: i128, tick_ns: i128) {
        self.short = Short::of(stamp);
        self.settled = stamp.is_settled(now_ns, tick_ns);
    }
}

impl Generations {
    /// The file's entry, new if need be; `None`: there is no memory.
    fn entry(&mut self, file: FileId) -> Option<&mut Entry> {
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
