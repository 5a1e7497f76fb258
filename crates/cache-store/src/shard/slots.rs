//! The numbered entries of a shard's blocks.

use std::ops::{Index, IndexMut};

use crate::Key;
use crate::arena::{Address, rounded};
use crate::block::Form;
use crate::error::OutOfMemory;
use crate::key::FileId;
use crate::policy::Slot;

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// The state of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotState {
    Free,
    /// In the tables, and in the policy by its cluster.
    Stored,
    /// In neither, but still being read; the last reader frees it.
    Condemned,
}

/// What a cluster has besides its blocks. Its leader stores it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cluster {
    /// The position in the stretch of the block that was requested last.
    pub(super) asked: u8,
    /// The shard's count of admissions at the cluster's last one.
    pub(super) joined: u32,
}

/// One block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub key: Key,
    /// The checksum of the compressed bytes.
    pub sum: u64,
    /// `None`: all zero, no bytes are stored.
    pub address: Option<Address>,
    pub raw_len: u32,
    pub compressed_len: u32,
    /// Readers of the compressed bytes that have no lock.
    pub pins: u32,
    /// The blocks of the file that were admitted after and before this one. For a free slot, `older` is the next free one.
    pub newer: u32,
    pub older: u32,
    /// The slot that represents its cluster in the policy: its own, if it is alone.
    pub leader: u32,
    /// Valid if this block leads.
    pub cluster: Cluster,
    pub form: Form,
    pub state: SlotState,
    /// The high-ratio codec was tried and did not pay.
    pub settled: bool,
}

impl Entry {
    /// The block's weight in the policy: its granules, and its part of the tables.
    pub fn weight(&self) -> u32 {
        const TABLES: usize = size_of::<Entry>() + 32;
        u32::try_from(rounded(self.compressed_len as usize) + TABLES).unwrap_or(u32::MAX)
    }
}

const EMPTY: Entry = Entry {
    key: Key::new(FileId(0), 0),
    sum: 0,
    address: None,
    raw_len: 0,
    compressed_len: 0,
    pins: 0,
    newer: NONE,
    older: NONE,
    leader: NONE,
    cluster: Cluster { asked: 0, joined: 0 },
    form: Form::Zero,
    state: SlotState::Free,
    settled: false,
};

/// Slots by number, and the list of free ones.
#[derive(Debug)]
pub(super) struct Slots {
    entries: Vec<Entry>,
    free: u32,
    used: usize,
}

impl Default for Slots {
    fn default() -> Self {
        Self { entries: Vec::new(), free: NONE, used: 0 }
    }
}

impl Slots {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The number of slots that are not free.
    pub fn used(&self) -> usize {
        self.used
    }

    pub fn has_free(&self) -> bool {
        self.free != NONE
    }

    pub fn held_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// Adds `more` free slots.
    pub fn grow(&mut self, more: usize) -> Result<(), OutOfMemory> {
        self.entries.try_reserve_exact(more)?;
        self.entries.resize(self.entries.len() + more, EMPTY);
        self.relink_free();
        Ok(())
    }

    /// Takes a free slot.
    pub fn take(&mut self) -> Option<Slot> {
        let slot = Some(self.free).filter(|&s| s != NONE).map(Slot)?;
        self.free = self[slot].older;
        self.used += 1;
        Some(slot)
    }

    /// Frees a slot.
    pub fn give(&mut self, slot: Slot) {
        self[slot] = Entry { older: self.free, ..EMPTY };
        self.free = slot.0;
        self.used -= 1;
    }

    pub fn get(&self, slot: Slot) -> Option<&Entry> {
        self.entries.get(slot.index())
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Slot, &Entry)> {
        self.entries.iter().enumerate().map(|(index, entry)| (Slot(index as u32), entry))
    }

    /// Moves the block in `from` to the free slot `to`.
    pub fn renumber(&mut self, from: Slot, to: Slot) {
        self[to] = self[from];
        self[from] = EMPTY;
    }

    /// Removes free slots at the end and their memory. Call it after [`Slots::renumber`].
    pub fn truncate(&mut self) {
        let end = self.entries.iter().rposition(|e| e.state != SlotState::Free).map_or(0, |last| last + 1);
        self.entries.truncate(end);
        self.entries.shrink_to_fit();
        self.relink_free();
    }

    /// Rebuilds the list of free slots, the lowest first.
    fn relink_free(&mut self) {
        self.free = NONE;
        for (index, entry) in
            self.entries.iter_mut().enumerate().rev().filter(|(_, e)| e.state == SlotState::Free)
        {
            entry.older = std::mem::replace(&mut self.free, index as u32);
        }
    }
}

impl Index<Slot> for Slots {
    type Output = Entry;
    fn index(&self, slot: Slot) -> &Entry {
        &self.entries[slot.index()]
    }
}

impl IndexMut<Slot> for Slots {
    fn index_mut(&mut self, slot: Slot) -> &mut Entry {
        &mut self.entries[slot.index()]
    }
}
