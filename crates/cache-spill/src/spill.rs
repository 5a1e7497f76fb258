//! The spill: evictions, reads, and the thread that writes. Its lock is the last one: no other is taken under it.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eke_cache_store::{CompressedBlock, EvictionListener, FileId, Heat, Key};
use eke_model::units::Bytes;

use crate::day::{Day, PAGE};
use crate::decide;
use crate::medium::Medium;
use crate::place::Place;
use crate::record;
use crate::state::{Limits, Sealed, Source, State};
use crate::stats::Stats;
use crate::{SEGMENT, Saved};

/// A block that was read and is what was evicted.
#[derive(Debug)]
pub struct Spilled<'b> {
    /// The block.
    pub block: CompressedBlock<'b>,
    /// Where it was.
    pub place: Place,
}

/// The options of a spill.
#[derive(Debug, Clone, Copy)]
pub struct SpillOptions {
    /// The most bytes on the disk.
    pub size: Bytes,
    /// The most bytes that are written in a day.
    pub day: Bytes,
    /// The most blocks in the index.
    pub blocks: usize,
}

/// Seconds since 1970.
type Clock = Box<dyn Fn() -> u64 + Send + Sync>;

/// See the crate.
pub struct Spill {
    state: Mutex<State>,
    /// A segment was sealed or written, or the spill closed.
    changed: Condvar,
    medium: Box<dyn Medium>,
    now_s: Clock,
    hits: AtomicU64,
}

impl std::fmt::Debug for Spill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spill").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

/// Numbers of segments that a second of the clock has, so that no two lives of a spill use the same ones.
const NUMBERS_A_SECOND: u64 = 1 << 24;

/// How often it looks whether a full disk has room again.
const LOOKS_EVERY: Duration = Duration::from_secs(60);

impl Spill {
    /// With the blocks of an earlier mount, if there are some. Reads the page of the day.
    pub fn new(medium: Box<dyn Medium>, options: SpillOptions, saved: Option<&Saved>, now_s: Clock) -> Self {
        let mut page = [0; PAGE];
        let day = medium.read(&mut page, 0).ok().and_then(|()| Day::parse(&page)).unwrap_or_default();
        let limits = Limits { size: options.size, day: options.day, blocks: options.blocks };
        let next = now_s().saturating_mul(NUMBERS_A_SECOND);
        let spill = Self {
            state: Mutex::new(State::new(limits, day, next, saved)),
            changed: Condvar::new(),
            medium,
            now_s,
            hits: AtomicU64::new(0),
        };
        let may_grow = spill.has_room();
        spill.lock().may_grow = may_grow;
        spill
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self) -> bool {
        self.medium.room().is_ok_and(|room| decide::may_grow(room.free, room.all))
    }

    /// Writes segments as they are sealed, until [`Spill::close`]. The body of a thread.
    pub fn run(&self) {
        loop {
            let mut state = self.lock();
            while state.sealed.is_none() {
                if state.ended {
                    return;
                }
                if state.may_grow {
                    state = self.wait(state);
                    continue;
                }
                // Somebody may make room on the disk.
                state =
                    self.changed.wait_timeout(state, LOOKS_EVERY).unwrap_or_else(PoisonError::into_inner).0;
                drop(state);
                self.look_for_room();
                state = self.lock();
            }
            drop(state);
            self.write_sealed();
        }
    }

    /// Looks again whether the file may grow, if it may not.
    pub fn look_for_room(&self) {
        if !self.lock().may_grow && self.has_room() {
            self.lock().may_grow = true;
        }
    }

    /// Writes the sealed segment. False: there is none.
    pub fn write_sealed(&self) -> bool {
        let Some(sealed) = self.lock().sealed.clone() else { return false };
        let done = self.write(&sealed).is_ok();
        let may_grow = self.has_room();
        let mut state = self.lock();
        state.written(sealed, done, (self.now_s)());
        state.may_grow = may_grow;
        drop(state);
        self.changed.notify_all();
        true
    }

    /// Counts before it writes, so that a crash does not make a day longer.
    fn write(&self, sealed: &Sealed) -> std::io::Result<()> {
        self.medium.write(&sealed.day.page(), 0)?;
        self.medium.write(&sealed.bytes, offset(sealed.slot))?;
        self.medium.sync()
    }

    /// Has [`Spill::run`] write what is in memory, and waits for that. From now on nothing is put in.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        while state.sealed.is_some() {
            state = self.wait(state);
        }
        let seals = state.is_filling() && state.seal((self.now_s)());
        self.changed.notify_all();
        while seals && state.sealed.is_some() {
            state = self.wait(state);
        }
        state.ended = true;
        self.changed.notify_all();
    }

    /// Reads a block into `buffer`. `None`: it is not there any more, cannot be read, or has other bytes.
    pub fn read<'b>(&self, key: Key, buffer: &'b mut Vec<u8>) -> Option<Spilled<'b>> {
        let (place, source) = self.lock().find(key, buffer)?;
        if let Source::Slot(slot) = source {
            buffer.resize(place.len as usize, 0);
            if self.medium.read(buffer, offset(slot) + u64::from(place.offset)).is_err() {
                self.lock().cannot_be_read(place.segment);
                return None;
            }
        }
        let found = record::parse(buffer);
        match found.filter(|(segment, block)| *segment == place.segment && block.key == key) {
            Some((_, block)) => {
                self.hits.fetch_add(1, Ordering::Relaxed);
                Some(Spilled { block, place })
            }
            // Unless the segment was overwritten meanwhile: then the block is at this place no longer.
            None => {
                self.lock().is_corrupted(key, place);
                None
            }
        }
    }

    /// True if the block can be read.
    pub fn contains(&self, key: Key) -> bool {
        self.lock().contains(key)
    }

    /// True if the block is still where it was read.
    pub fn is_at(&self, key: Key, place: Place) -> bool {
        self.lock().is_at(key, place)
    }

    /// The files that have blocks, by number. With [`Spill::save`] for the versions of these files, which must be taken in between: then
    /// no block is newer than its file's version.
    pub fn files(&self) -> Vec<u64> {
        self.lock().files()
    }

    /// Completes `saved`, which has the files. False: there is no memory for it.
    pub fn save(&self, saved: &mut Saved) -> bool {
        self.lock().save(saved)
    }

    /// The memory of the tables and segments, in bytes.
    pub fn memory(&self) -> usize {
        self.lock().memory()
    }

    /// The counters.
    pub fn stats(&self) -> Stats {
        let stats = self.lock().stats((self.now_s)());
        Stats { hits: self.hits.load(Ordering::Relaxed), ..stats }
    }
}

/// Where a slot begins. Before the first one is the page of the day.
fn offset(slot: u32) -> u64 {
    (u64::from(slot) + 1) * SEGMENT as u64
}

impl EvictionListener for Spill {
    fn evicted(&self, block: &CompressedBlock<'_>, heat: Heat) {
        if self.lock().evicted(block, heat, (self.now_s)()) {
            self.changed.notify_all();
        }
    }

    fn dropped(&self, file: FileId, blocks: &Range<u64>) {
        self.lock().dropped(file, blocks);
    }
}
