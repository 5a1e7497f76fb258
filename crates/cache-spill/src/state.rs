//! All that is under the spill's lock. Nothing here reads or writes the disk, and nothing takes long: at most one block is copied.

use std::sync::Arc;

use eke_cache_store::{CompressedBlock, Heat, Key};
use eke_model::units::Bytes;

use crate::day::Day;
use crate::decide::{self, Earlier, Worth};
use crate::index::Index;
use crate::place::Place;
use crate::record;
use crate::ring::Ring;
use crate::stats::Stats;
use crate::{SEGMENT, Saved};

/// After a failed write nothing is written for so many seconds.
const REST_S: u64 = 60;

/// A segment that is complete and not yet on the disk.
#[derive(Debug)]
pub(crate) struct Sealed {
    pub number: u64,
    pub slot: u32,
    pub bytes: Vec<u8>,
    /// The day with this segment's bytes.
    pub day: Day,
}

/// Where a block's bytes are.
pub(crate) enum Source {
    /// They were copied.
    Copied,
    /// In this slot of the file.
    Slot(u32),
}

/// The limits of a spill.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub size: Bytes,
    pub day: Bytes,
    pub blocks: usize,
}

#[derive(Debug)]
pub(crate) struct State {
    limits: Limits,
    index: Index,
    ring: Ring,
    /// The segment that is being filled. It gets the ring's next number.
    filling: Vec<u8>,
    pub sealed: Option<Arc<Sealed>>,
    /// The buffer that is neither filled nor written.
    spare: Option<Vec<u8>>,
    day: Day,
    /// There is room for the file to grow.
    pub may_grow: bool,
    /// Nothing is written before this time, in seconds.
    rests_until: u64,
    /// Nothing more is put in.
    pub closed: bool,
    /// Nothing is left to write.
    pub ended: bool,
    pub stats: Stats,
}

impl State {
    /// An empty one, or one with the blocks of an earlier mount.
    pub fn new(limits: Limits, day: Day, next: u64, saved: Option<&Saved>) -> Self {
        let most = u32::try_from(limits.size.0 / SEGMENT as u64).unwrap_or(u32::MAX);
        let mut state = Self {
            limits,
            index: Index::default(),
            ring: Ring::new(next, most),
            filling: Vec::new(),
            sealed: None,
            spare: Some(Vec::new()),
            day,
            may_grow: false,
            rests_until: 0,
            closed: false,
            ended: false,
            stats: Stats::default(),
        };
        let restored =
            saved.and_then(|saved| Some((Ring::restored(saved.slots.clone(), saved.next, most)?, saved)));
        if let Some((ring, saved)) = restored {
            state.ring = ring;
            // The newest, if memory is scarcer than it was.
            let older = saved.blocks.len().saturating_sub(limits.blocks);
            let kept = |&&(key, place): &&(Key, Place)| state.index.insert(key, place).is_ok();
            state.stats.restored = saved.blocks.iter().skip(older).take_while(kept).count() as u64;
        }
        state
    }

    /// A block was evicted. True if a segment was sealed.
    pub fn evicted(&mut self, block: &CompressedBlock<'_>, heat: Heat, now_s: u64) -> bool {
        match decide::worth(heat, self.earlier(block.key)) {
            Worth::Unrequested => self.stats.unrequested += 1,
            Worth::Present => self.stats.present += 1,
            Worth::Write => return self.put(block, now_s),
        }
        false
    }

    fn earlier(&self, key: Key) -> Earlier {
        let Some(place) = self.index.find(key) else { return Earlier::None };
        let younger = usize::try_from(place.segment.saturating_sub(self.ring.oldest())).unwrap_or(usize::MAX);
        let younger = self.ring.len().saturating_sub(younger.saturating_add(1));
        let is_full = self.ring.is_full() || !self.may_grow;
        let is_on_disk = place.segment < self.ring.next();
        if is_on_disk && decide::goes_soon(younger, self.ring.len(), is_full) {
            Earlier::GoesSoon
        } else {
            Earlier::Kept
        }
    }

    fn put(&mut self, block: &CompressedBlock<'_>, now_s: u64) -> bool {
        let len = record::HEAD + block.compressed.len();
        let is_resting = self.closed || now_s < self.rests_until || len > SEGMENT;
        if is_resting || !self.index_has_room() || !self.has_buffer() {
            self.stats.no_room += 1;
            return false;
        }
        let seals = self.filling.len() + len > SEGMENT;
        if seals && !self.seal(now_s) {
            return false;
        }
        if !self.has_buffer() {
            self.stats.no_room += 1;
            return seals;
        }
        let place = Place { segment: self.ring.next(), offset: self.filling.len() as u32, len: len as u32 };
        if self.index.insert(block.key, place).is_ok() {
            record::append(&mut self.filling, place.segment, block);
            self.stats.written += 1;
        } else {
            self.stats.no_room += 1;
        }
        seals
    }

    /// Has the oldest segments make room in a full index. False: all its blocks are of the one that is being filled.
    fn index_has_room(&mut self) -> bool {
        while self.index.entries() >= self.limits.blocks {
            let Some(oldest) = self.index.oldest_segment().filter(|&oldest| oldest < self.ring.next()) else {
                return false;
            };
            self.index.remove_segment(oldest);
        }
        true
    }

    /// The file grows only while no segment in it is without blocks and the index has room.
    fn grows(&self) -> bool {
        let has_room = self.index.entries() < self.limits.blocks - self.limits.blocks / 16;
        let in_use = self.index.oldest_segment().is_some_and(|oldest| oldest <= self.ring.oldest());
        self.may_grow && (self.ring.len() == 0 || (has_room && in_use))
    }

    fn has_buffer(&mut self) -> bool {
        let more = SEGMENT - self.filling.capacity().min(SEGMENT);
        more == 0 || self.filling.try_reserve_exact(SEGMENT - self.filling.len()).is_ok()
    }

    /// Completes the segment, for the writer. False: it is not written now.
    pub fn seal(&mut self, now_s: u64) -> bool {
        let Some(spare) = self.spare.take_if(|_| self.sealed.is_none()) else {
            self.stats.behind += 1;
            return false;
        };
        let (number, grows) = (self.ring.next(), self.grows());
        if !grows && self.ring.len() == 0 {
            self.spare = Some(spare);
            self.stats.no_room += 1;
            return false;
        }
        if !self.day.spend(now_s, self.filling.len() as u64, self.limits.day.0) {
            self.spare = Some(spare);
            self.stats.over_day += 1;
            return false;
        }
        let Some(advance) = self.ring.advance(grows) else {
            self.spare = Some(spare);
            self.stats.no_room += 1;
            return false;
        };
        advance.recycled.into_iter().for_each(|oldest| _ = self.index.remove_segment(oldest));
        let bytes = std::mem::replace(&mut self.filling, spare);
        self.sealed = Some(Arc::new(Sealed { number, slot: advance.slot, bytes, day: self.day }));
        true
    }

    /// The writer has written the sealed segment, or failed to.
    pub fn written(&mut self, segment: Arc<Sealed>, done: bool, now_s: u64) {
        self.sealed = None;
        if done {
            self.stats.bytes_written += segment.bytes.len() as u64;
        } else {
            self.stats.errors += 1;
            self.index.remove_segment(segment.number);
            self.rests_until = now_s + REST_S;
        }
        let mut buffer = Arc::into_inner(segment).map(|segment| segment.bytes).unwrap_or_default();
        buffer.clear();
        self.spare = Some(buffer);
    }

    /// True if the segment being filled has blocks.
    pub fn is_filling(&self) -> bool {
        !self.filling.is_empty()
    }

    /// Finds a block. Copies its bytes if they are in memory.
    pub fn find(&self, key: Key, out: &mut Vec<u8>) -> Option<(Place, Source)> {
        let place = self.index.find(key)?;
        out.clear();
        out.try_reserve_exact(place.len as usize).ok()?;
        let sealed = self.sealed.as_ref().filter(|sealed| sealed.number == place.segment);
        let in_memory =
            if place.segment == self.ring.next() { Some(&self.filling) } else { sealed.map(|s| &s.bytes) };
        let Some(bytes) = in_memory else {
            return Some((place, Source::Slot(self.ring.slot(place.segment)?)));
        };
        out.extend_from_slice(bytes.get(place.range())?);
        Some((place, Source::Copied))
    }

    /// True if the block is there.
    pub fn contains(&self, key: Key) -> bool {
        self.index.find(key).is_some()
    }

    /// True if the block is at this place.
    pub fn is_at(&self, key: Key, place: Place) -> bool {
        self.index.find(key) == Some(place)
    }

    /// Drops blocks whose file has changed.
    pub fn dropped(&mut self, file: eke_cache_store::FileId, blocks: &std::ops::Range<u64>) {
        self.stats.drops += self.index.remove_range(file, blocks);
    }

    /// The block's bytes were not those that were written.
    pub fn is_corrupted(&mut self, key: Key, place: Place) {
        if self.is_at(key, place) {
            self.index.remove(key);
            self.stats.corrupted += 1;
        }
    }

    /// The segment cannot be read.
    pub fn cannot_be_read(&mut self, segment: u64) {
        self.stats.errors += 1;
        self.index.remove_segment(segment);
    }

    /// The files that have blocks, by number.
    pub fn files(&self) -> Vec<u64> {
        let mut files: Vec<u64> = Vec::new();
        if files.try_reserve_exact(self.index.len()).is_ok() {
            files.extend(self.index.all().map(|(key, _)| key.file.0));
            files.sort_unstable();
            files.dedup();
        }
        files
    }

    /// Puts segments and blocks of these files, which are sorted, into `saved`. False: there is no memory for it.
    pub fn save(&self, saved: &mut Saved) -> bool {
        let Saved { files, blocks, slots, .. } = saved;
        if blocks.try_reserve_exact(self.index.len()).is_err() || slots.try_reserve(self.ring.len()).is_err()
        {
            return false;
        }
        let is_saved = |key: &Key| files.binary_search_by_key(&key.file.0, |file| file.file).is_ok();
        // What is still in memory is lost.
        let is_on_disk = |place: &Place| place.segment < self.ring.next();
        blocks.extend(self.index.all().filter(|(key, place)| is_saved(key) && is_on_disk(place)));
        slots.extend(self.ring.slots());
        saved.next = self.ring.next();
        true
    }

    /// The memory of the tables and segments, in bytes.
    pub fn memory(&self) -> usize {
        let sealed = self.sealed.as_ref().map_or(0, |sealed| sealed.bytes.capacity());
        let spare = self.spare.as_ref().map_or(0, Vec::capacity);
        self.index.memory() + self.ring.memory() + self.filling.capacity() + sealed + spare
    }

    pub fn stats(&self, now_s: u64) -> Stats {
        Stats {
            limit: self.limits.size,
            held: Bytes(self.ring.len() as u64 * SEGMENT as u64),
            day_limit: self.limits.day,
            day_written: Bytes(self.day.written_at(now_s)),
            memory: Bytes(self.memory() as u64),
            blocks: self.index.len() as u64,
            ..self.stats
        }
    }
}
