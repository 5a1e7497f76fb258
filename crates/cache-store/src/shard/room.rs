//! How a shard stays within its budget, which is memory as the kernel counts it.

use super::Shard;
use super::slots::{Entry, SlotState, Slots};
use crate::arena::{Address, Drained, Owners, SLAB};
use crate::error::OutOfMemory;
use crate::policy::Slot;
use eke_model::units::Bytes;

/// Slots grow by a quarter, and by at least this many.
const MORE_SLOTS: usize = 64;

/// If more than this share of the slabs is free (one in so many), slabs are compacted before blocks are evicted.
const HOLES_ONE_IN: usize = 20;

/// Clusters that one step of a shrink evicts.
const EVICT_AT_ONCE: usize = 8;

/// The share (one in so many) that draining leaves free in the other slabs: without it every block would need a compaction.
const SLACK_ONE_IN: usize = 32;

impl Shard {
    /// The shard's memory, in bytes.
    pub fn held(&self) -> usize {
        self.arena.held() + self.table_bytes()
    }

    /// The tables' share of it.
    pub fn table_bytes(&self) -> usize {
        self.slots.held_bytes() + self.index.held_bytes() + self.policy.held().0 as usize
    }

    /// Sets the budget. [`Shard::shrink_step`] brings the shard within it.
    pub fn set_budget(&mut self, budget: usize) {
        self.budget = budget;
        self.policy.set_capacity(Bytes(budget as u64));
    }

    /// Evicts one cluster; false if there is none.
    pub fn evict(&mut self) -> bool {
        let victim = self.policy.evict();
        if let Some(leader) = victim {
            // The policy knows the slot's queue until the slot is used again.
            let heat = self.policy.heat(leader);
            self.counts.evictions += self.disband(leader, heat);
        }
        victim.is_some()
    }

    /// A free slot, with room in the tables for its key. Evicts a cluster if there is no memory for more slots. `None`: no
    /// room.
    pub(super) fn make_slot(&mut self) -> Result<Option<Slot>, OutOfMemory> {
        self.index.reserve(1, &self.slots)?;
        if !self.slots.has_free() && self.grow_slots() != Ok(true) && !self.evict() {
            return Ok(None);
        }
        Ok(self.slots.take())
    }

    /// Adds slots, if the budget allows.
    fn grow_slots(&mut self) -> Result<bool, OutOfMemory> {
        let more = MORE_SLOTS.max(self.slots.len() / 4);
        let all = self.slots.len() + more;
        // The other tables may double. Finding that out afterwards would mean evicting what was just admitted.
        let others = self.index.held_bytes() + self.policy.held().0 as usize + more * 32;
        if self.held() + more * size_of::<Entry>() + others > self.budget {
            return Ok(false);
        }
        self.policy.reserve(all)?;
        self.index.reserve(all - self.slots.used(), &self.slots)?;
        self.slots.grow(more)?;
        Ok(true)
    }

    /// Allocates `len` bytes for a slot. If the kernel has no memory, evicts others, as at the limit. `None`: everything was
    /// evicted or is being read.
    ///
    /// # Errors
    /// The kernel has no memory and nothing is stored.
    pub(super) fn allocate(&mut self, len: usize, slot: Slot) -> Result<Option<Address>, OutOfMemory> {
        let mut lacking = false;
        loop {
            if let Some(address) = self.arena.take(len, slot.0) {
                return Ok(Some(address));
            }
            if !lacking && self.held() + self.arena.growth() <= self.budget {
                lacking = self.arena.grow().is_err();
                continue;
            }
            let compacted = self.has_holes() && self.compact(len);
            if !compacted && !self.evict() {
                return if lacking { Err(OutOfMemory) } else { Ok(None) };
            }
        }
    }

    fn has_holes(&self) -> bool {
        self.arena.free() > self.arena.resident() * SLAB / HOLES_ONE_IN
    }

    fn compact(&mut self, len: usize) -> bool {
        self.arena.compact(len, &mut self.slots)
    }

    /// Brings the shard back within the budget after tables grew.
    pub(super) fn settle(&mut self) {
        while self.held() > self.budget && self.shrink_step() {}
    }

    /// A bounded step towards the budget. False: it is reached, or all that is left is being read.
    pub fn shrink_step(&mut self) -> bool {
        if self.held() <= self.budget {
            return false;
        }
        if self.trim_tables() || self.evict_some() {
            return true;
        }
        match self.arena.drain(&mut self.slots) {
            Drained::Slab => true,
            Drained::Left(owner) => self.evict_slot(Slot(owner)),
            Drained::Pinned => false,
        }
    }

    /// Evicts a few clusters, while there is more than would fit after the shrink.
    fn evict_some(&mut self) -> bool {
        let slabs = self.budget.saturating_sub(self.table_bytes()) / SLAB;
        let room = slabs * (SLAB - SLAB / SLACK_ONE_IN);
        let too_many = |shard: &Self| shard.arena.taken() > room || shard.arena.resident() == 0;
        let evicted = (0..EVICT_AT_ONCE).take_while(|_| too_many(self) && self.evict()).count();
        evicted > 0
    }

    fn evict_slot(&mut self, slot: Slot) -> bool {
        self.report_eviction(slot, self.heat(slot));
        self.leave(slot);
        self.retire(slot);
        self.counts.evictions += 1;
        true
    }

    /// Shrinks the tables if less than half of the slots are used: moves blocks to low slots. False: nothing done.
    fn trim_tables(&mut self) -> bool {
        let before = self.table_bytes();
        if self.slots.len() <= 2 * self.slots.used() + MORE_SLOTS {
            return false;
        }
        self.fill_low_slots();
        self.slots.truncate();
        self.policy.shrink(self.slots.len());
        self.index.shrink(&self.slots);
        self.table_bytes() < before
    }

    fn fill_low_slots(&mut self) {
        let (mut low, mut high) = (0, self.slots.len());
        while let Some((to, from)) = self.slots.misplaced(low, high) {
            (low, high) = (to.index() + 1, from.index());
            self.renumber(from, to);
        }
    }

    fn renumber(&mut self, from: Slot, to: Slot) {
        self.slots.renumber(from, to);
        self.index.renumber(from, to, &mut self.slots);
        self.renumber_leader(from, to);
        if let Some(address) = self.slots[to].address {
            self.arena.rename(address, to.0);
        }
    }
}

impl Owners for Slots {
    fn is_pinned(&self, owner: u32) -> bool {
        self[Slot(owner)].pins > 0
    }

    fn moved(&mut self, owner: u32, address: Address) {
        self[Slot(owner)].address = Some(address);
    }
}

impl Slots {
    /// A free slot and the last block that could move to it, between `low` and `high`. `None`: no block is above a free
    /// slot.
    fn misplaced(&self, low: usize, high: usize) -> Option<(Slot, Slot)> {
        let to = (low..high).map(|i| Slot(i as u32)).find(|&s| self[s].state == SlotState::Free)?;
        let movable = |entry: &Entry| entry.state == SlotState::Stored && entry.pins == 0;
        let from = (to.index()..high).rev().map(|i| Slot(i as u32)).find(|&s| movable(&self[s]))?;
        Some((to, from))
    }
}
