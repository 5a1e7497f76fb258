//! One shard: a share of the blocks under one lock. The lock is never held while bytes are compressed, decompressed or
//! summed.
//!
//! # Layout
//! - `slots`: the numbered entries of the blocks
//! - `index`: from keys and files to slots
//! - `cluster`: blocks that stay and leave together
//! - `room`: eviction, growth, compaction, shrinking: all that keeps the shard within its budget
//! - `recompress`: finding blocks that stay, and replacing their bytes
//! - `leave`: what the listener gets
//!
//! A shard is plain data with rules; it knows nothing of locks.

mod cluster;
mod index;
mod leave;
mod recompress;
mod room;
mod slots;

use std::ops::Range;
use std::sync::Arc;

use crate::Key;
use crate::arena::{Arena, RawBytes, rounded};
use crate::block::Form;
use crate::error::OutOfMemory;
use crate::evicted::EvictionListener;
use crate::key::FileId;
use crate::policy::{Entrance, Heat, S3Fifo, Slot};
use crate::stats::{Counts, Inserted};

pub(crate) use cluster::MOST as MAX_CLUSTER;
use index::Index;
pub(crate) use recompress::Candidate;
use slots::{Entry, SlotState, Slots};

/// A compressed block to be inserted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incoming<'a> {
    pub key: Key,
    pub form: Form,
    pub raw_len: usize,
    pub sum: u64,
    /// Empty for [`Form::Zero`].
    pub compressed: &'a [u8],
    pub entrance: Entrance,
}

/// A block that was found. While it is pinned (all but zero blocks), its bytes neither change nor move.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundBlock {
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
    /// The limit of the shard's memory, in bytes.
    budget: usize,
    /// The most blocks of a cluster.
    together: usize,
    /// Blocks admitted so far.
    joins: u32,
    /// The slot where the search for blocks to recompress continues.
    sweep: u32,
    listener: Option<Arc<dyn EvictionListener>>,
    pub counts: Counts,
}

impl Shard {
    pub fn new(budget: usize, together: usize, listener: Option<Arc<dyn EvictionListener>>) -> Self {
        let mut shard = Self {
            slots: Slots::default(),
            index: Index::default(),
            policy: S3Fifo::default(),
            arena: Arena::default(),
            budget: 0,
            together,
            joins: 0,
            sweep: 0,
            listener,
            counts: Counts::default(),
        };
        shard.set_budget(budget);
        shard
    }

    /// True if the block is stored. Does not notify the policy.
    pub fn contains(&self, key: Key) -> bool {
        self.index.find(key, &self.slots).is_some()
    }

    /// Lets a stored block stay; true if there is one.
    pub fn keep(&mut self, key: Key) -> bool {
        let found = self.index.find(key, &self.slots);
        found.into_iter().for_each(|slot| self.promote(slot));
        found.is_some()
    }

    /// Calls `visit` for each stored block.
    pub fn each(&self, mut visit: impl FnMut(Key, Heat)) {
        let stored = self.slots.iter().filter(|(_, entry)| entry.state == SlotState::Stored);
        stored.for_each(|(slot, entry)| visit(entry.key, self.heat(slot)));
    }

    /// Finds a block and pins it unless it is zero: [`Shard::unpin`] must follow. Neither counts as a request.
    pub fn find(&mut self, key: Key) -> Option<FoundBlock> {
        self.counts.lookups += 1;
        let slot = self.index.find(key, &self.slots)?;
        Some(self.pin(slot))
    }

    /// Requests a block that was found: counts it, and notifies the policy if the block is still stored.
    pub fn request(&mut self, found: &FoundBlock) {
        self.counts.hits += 1;
        let entry = self.slots.get(found.slot);
        if entry.is_some_and(|entry| entry.state == SlotState::Stored && entry.key == found.key) {
            self.asked(found.slot);
        }
    }

    fn pin(&mut self, slot: Slot) -> FoundBlock {
        let entry = &mut self.slots[slot];
        let compressed =
            entry.address.map(|address| self.arena.bytes(address, entry.compressed_len as usize));
        entry.pins += u32::from(compressed.is_some());
        let Entry { key, form, raw_len, sum, .. } = *entry;
        FoundBlock { slot, key, form, raw_len: raw_len as usize, sum, compressed }
    }

    /// The bytes are no longer read.
    pub fn unpin(&mut self, slot: Slot) {
        let entry = &mut self.slots[slot];
        entry.pins = entry.pins.saturating_sub(1);
        if entry.pins == 0 && entry.state == SlotState::Condemned {
            self.free(slot);
        }
    }

    /// Inserts a block unless it is present. Evicts others for room.
    pub fn insert(&mut self, new: Incoming<'_>) -> Inserted {
        if let Some(slot) = self.index.find(new.key, &self.slots) {
            if new.entrance == Entrance::Main {
                self.promote(slot);
            }
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

    /// Fills a slot that was just taken. Gives it back if there is no room for the bytes.
    fn fill(&mut self, slot: Slot, new: Incoming<'_>) -> Inserted {
        let mut address = None;
        if !new.compressed.is_empty() {
            address = match self.allocate(new.compressed.len(), slot) {
                Ok(Some(address)) => Some(address),
                Ok(None) => return self.refuse(slot, Inserted::NoRoom),
                Err(OutOfMemory) => return self.refuse(slot, Inserted::NoMemory),
            };
        }
        if let Some(address) = address {
            self.arena.write(address, new.compressed);
        }
        let entry = &mut self.slots[slot];
        (entry.key, entry.form, entry.sum, entry.address) = (new.key, new.form, new.sum, address);
        (entry.raw_len, entry.compressed_len) = (new.raw_len as u32, new.compressed.len() as u32);
        entry.state = SlotState::Stored;
        self.counts.add(entry.form, entry.raw_len, entry.compressed_len);
        self.index.insert(slot, &mut self.slots);
        self.join(slot, new.entrance);
        Inserted::Done
    }

    fn refuse(&mut self, slot: Slot, why: Inserted) -> Inserted {
        self.slots.give(slot);
        why
    }

    /// Drops a block, here and from the listener; true if there was one here.
    pub fn remove(&mut self, key: Key) -> bool {
        self.report_drop(key.file, &(key.block..key.block.saturating_add(1)));
        let found = self.index.find(key, &self.slots);
        found.is_some_and(|slot| self.remove_slot(slot))
    }

    /// Drops the block in a slot that the caller has pinned. False if that was done already.
    pub fn remove_slot(&mut self, slot: Slot) -> bool {
        let held = self.slots[slot].state == SlotState::Stored;
        if held {
            self.leave(slot);
            self.retire(slot);
            self.counts.drops += 1;
        }
        held
    }

    /// Drops a file's blocks with numbers in `blocks`, here and from the listener. Returns how many. Visits all blocks of the file in
    /// this shard.
    pub fn remove_file(&mut self, file: FileId, blocks: &Range<u64>) -> u64 {
        self.report_drop(file, blocks);
        let (mut removed, mut next) = (0, self.index.newest(file, &self.slots));
        while let Some(slot) = next {
            next = Some(self.slots[slot].older).filter(|&s| s != slots::NONE).map(Slot);
            if blocks.contains(&self.slots[slot].key.block) {
                removed += u64::from(self.remove_slot(slot));
            }
        }
        removed
    }

    /// Removes a block, which has left the policy, from the tables. Its memory is freed now, or by the last reader.
    fn retire(&mut self, slot: Slot) {
        self.index.remove(slot, &mut self.slots);
        let entry = &mut self.slots[slot];
        self.counts.take(entry.form, entry.raw_len, entry.compressed_len);
        if entry.pins > 0 {
            entry.state = SlotState::Condemned;
        } else {
            self.free(slot);
        }
    }

    fn free(&mut self, slot: Slot) {
        if let Some(address) = self.slots[slot].address {
            self.arena.give(address);
        }
        self.slots.give(slot);
    }

    /// Flips a bit of a block's stored bytes. For tests. False if there are none.
    pub fn damage(&mut self, key: Key) -> bool {
        let Some(slot) = self.index.find(key, &self.slots) else { return false };
        let Entry { address: Some(address), compressed_len, pins: 0, .. } = self.slots[slot] else {
            return false;
        };
        self.arena.flip_bit(address, compressed_len as usize / 2);
        true
    }

    /// Checks that lists, tables, counts and memory agree, and that the budget holds. For tests.
    pub fn check(&self) -> Result<(), String> {
        let held = self.slots.iter().filter(|(_, e)| e.state == SlotState::Stored);
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
            .filter(|(_, e)| e.address.is_some())
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

/// The most memory of a shard without blocks: small tables that it did not give back.
const EMPTY_SHARD: usize = 16 << 10;
