//! One shard: a share of the blocks, all under one lock, which is never held while bytes are compressed, decompressed or summed.
//!
//! # Layout
//! - `slots`: the numbered places of the blocks
//! - `index`: from keys and files to slots
//! - `cluster`: blocks that stay and go together
//! - `room`: eviction, growth, compaction, shrinking: everything that keeps within the budget
//! - `dense`: finding and replacing what the dense codec recompresss
//!
//! Nothing here knows of locks: a shard is plain data with rules.

mod cluster;
mod dense;
mod index;
mod room;
mod slots;

use std::ops::Range;

use crate::Key;
use crate::arena::{Arena, RawBytes, rounded};
use crate::block::Form;
use crate::error::OutOfMemory;
use crate::key::FileId;
use crate::policy::{S3Fifo, Slot};
use crate::stats::{Counts, Inserted};

pub(crate) use cluster::MOST as MOST_TOGETHER;
pub(crate) use dense::Candidate;
use index::Index;
use slots::{Entry, Slots, State};

/// A compressed block on its way in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incoming<'a> {
    pub key: Key,
    pub form: Form,
    pub raw_len: usize,
    pub sum: u64,
    /// Empty for [`Form::Zero`].
    pub compressed: &'a [u8],
}

/// A block as it was found. While it is pinned (all but zero blocks), its bytes stay as and where they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub slot: Slot,
    pub key: Key,
    pub form: Form,
    pub raw_len: usize,
    pub sum: u64,
    pub compressed: Option<RawBytes>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Shard {
    slots: Slots,
    index: Index,
    policy: S3Fifo,
    arena: Arena,
    /// The most memory to hold, bytes.
    budget: usize,
    /// The most blocks of a cluster.
    together: usize,
    /// Blocks that came in so far.
    joins: u32,
    /// Where the search for blocks to recompress goes on.
    sweep: u32,
    pub counts: Counts,
}

impl Shard {
    pub fn new(budget: usize, together: usize) -> Self {
        let mut shard = Self {
            slots: Slots::default(),
            index: Index::default(),
            policy: S3Fifo::default(),
            arena: Arena::default(),
            budget: 0,
            together,
            joins: 0,
            sweep: 0,
            counts: Counts::default(),
        };
        shard.set_budget(budget);
        shard
    }

    /// Is the block held? Does not notify the policy.
    pub fn contains(&self, key: Key) -> bool {
        self.index.find(key, &self.slots).is_some()
    }

    /// Finds a block and pins it unless it is zero: [`Shard::unpin`] must follow. Neither counts as a request.
    pub fn find(&mut self, key: Key) -> Option<Found> {
        self.counts.lookups += 1;
        let slot = self.index.find(key, &self.slots)?;
        Some(self.pin(slot))
    }

    /// A block that was found is requested: counts it, and notifies the policy if it is still held.
    pub fn request(&mut self, found: &Found) {
        self.counts.hits += 1;
        let entry = self.slots.get(found.slot);
        if entry.is_some_and(|entry| entry.state == State::Held && entry.key == found.key) {
            self.asked(found.slot);
        }
    }

    fn pin(&mut self, slot: Slot) -> Found {
        let entry = &mut self.slots[slot];
        let compressed = entry.place.map(|place| self.arena.bytes(place, entry.compressed_len as usize));
        entry.pins += u32::from(compressed.is_some());
        let Entry { key, form, raw_len, sum, .. } = *entry;
        Found { slot, key, form, raw_len: raw_len as usize, sum, compressed }
    }

    /// The bytes are no longer read.
    pub fn unpin(&mut self, slot: Slot) {
        let entry = &mut self.slots[slot];
        entry.pins = entry.pins.saturating_sub(1);
        if entry.pins == 0 && entry.state == State::Condemned {
            self.free(slot);
        }
    }

    /// Puts a block in that is not there. Makes room as the policy says.
    pub fn insert(&mut self, new: Incoming<'_>) -> Inserted {
        if self.contains(new.key) {
            return Inserted::Present;
        }
        let outcome = match self.make_slot() {
            Ok(Some(slot)) => self.fill(slot, new),
            Ok(None) => Inserted::NoRoom,
            Err(OutOfMemory) => Inserted::NoMemory,
        };
        self.counts.record_insertion(outcome);
        self.settle();
        outcome
    }

    /// Puts a block into a slot that was just taken, which is given back if there is no room for the bytes.
    fn fill(&mut self, slot: Slot, new: Incoming<'_>) -> Inserted {
        let mut place = None;
        if !new.compressed.is_empty() {
            place = match self.make_place(new.compressed.len(), slot) {
                Ok(Some(place)) => Some(place),
                Ok(None) => return self.refuse(slot, Inserted::NoRoom),
                Err(OutOfMemory) => return self.refuse(slot, Inserted::NoMemory),
            };
        }
        if let Some(place) = place {
            self.arena.write(place, new.compressed);
        }
        let entry = &mut self.slots[slot];
        (entry.key, entry.form, entry.sum, entry.place) = (new.key, new.form, new.sum, place);
        (entry.raw_len, entry.compressed_len) = (new.raw_len as u32, new.compressed.len() as u32);
        entry.state = State::Held;
        self.counts.add(entry.form, entry.raw_len, entry.compressed_len);
        self.index.insert(slot, &mut self.slots);
        self.join(slot);
        Inserted::Done
    }

    fn refuse(&mut self, slot: Slot, why: Inserted) -> Inserted {
        self.slots.give(slot);
        why
    }

    /// Drops a block; was there one?
    pub fn remove(&mut self, key: Key) -> bool {
        let found = self.index.find(key, &self.slots);
        found.is_some_and(|slot| self.remove_slot(slot))
    }

    /// Drops the block in a slot that its caller has pinned; false if that was done already.
    pub fn remove_slot(&mut self, slot: Slot) -> bool {
        let held = self.slots[slot].state == State::Held;
        if held {
            self.leave(slot);
            self.retire(slot);
            self.counts.drops += 1;
        }
        held
    }

    /// Drops a file's blocks with numbers in `blocks`; how many. Takes the time of all the blocks of the file held here.
    pub fn remove_file(&mut self, file: FileId, blocks: &Range<u64>) -> u64 {
        let (mut removed, mut next) = (0, self.index.newest(file, &self.slots));
        while let Some(slot) = next {
            next = Some(self.slots[slot].older).filter(|&s| s != slots::NONE).map(Slot);
            if blocks.contains(&self.slots[slot].key.block) {
                removed += u64::from(self.remove_slot(slot));
            }
        }
        removed
    }

    /// Takes a block that the policy has let go out of the tables; its memory goes now, or with the last reader.
    fn retire(&mut self, slot: Slot) {
        self.index.remove(slot, &mut self.slots);
        let entry = &mut self.slots[slot];
        self.counts.take(entry.form, entry.raw_len, entry.compressed_len);
        if entry.pins > 0 {
            entry.state = State::Condemned;
        } else {
            self.free(slot);
        }
    }

    fn free(&mut self, slot: Slot) {
        if let Some(place) = self.slots[slot].place {
            self.arena.give(place);
        }
        self.slots.give(slot);
    }

    /// Flips a bit of a block's compressed bytes, for tests of what follows; false if there are none.
    pub fn damage(&mut self, key: Key) -> bool {
        let Some(slot) = self.index.find(key, &self.slots) else { return false };
        let Entry { place: Some(place), compressed_len, pins: 0, .. } = self.slots[slot] else {
            return false;
        };
        self.arena.flip_bit(place, compressed_len as usize / 2);
        true
    }

    /// Lists, tables, counts and memory agree, and the budget holds: for tests.
    pub fn check(&self) -> Result<(), String> {
        let held = self.slots.iter().filter(|(_, e)| e.state == State::Held);
        let (mut blocks, mut compressed) = (0, 0);
        for (slot, entry) in held {
            blocks += 1;
            compressed += u64::from(entry.compressed_len);
            if self.index.find(entry.key, &self.slots) != Some(slot) {
                return Err(format!("{slot:?} is not found by its key"));
            }
            if !self.index.is_chained(slot, &self.slots) {
                return Err(format!("{slot:?} is not in its file's chain"));
            }
        }
        let taken: usize = self
            .slots
            .iter()
            .filter(|(_, e)| e.place.is_some())
            .map(|(_, e)| rounded(e.compressed_len as usize))
            .sum();
        let pinned = self.slots.iter().any(|(_, e)| e.pins > 0);
        let facts = [
            (blocks == self.counts.blocks(), "blocks held"),
            (compressed == self.counts.compressed, "compressed bytes held"),
            (taken == self.arena.taken(), "bytes taken in slabs"),
            (self.arena.is_consistent(), "slabs"),
            (self.clusters_agree(), "clusters"),
            (pinned || self.held() <= self.budget.max(EMPTY_SHARD), "budget"),
        ];
        let wrong = facts.iter().find(|(fact, _)| !fact);
        wrong.map_or(Ok(()), |(_, what)| Err(format!("wrong: {what}")))
    }
}

/// What a shard without blocks may take: small tables that it did not give back.
const EMPTY_SHARD: usize = 16 << 10;
