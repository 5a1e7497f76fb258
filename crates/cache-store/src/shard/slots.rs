//! The numbered places of a shard's blocks.

use std::ops::{Index, IndexMut};

use crate::Key;
use crate::arena::{Place, rounded};
use crate::block::Form;
use crate::error::OutOfMemory;
use crate::key::FileId;
use crate::policy::Slot;

/// No slot.
pub(super) const NONE: u32 = u32::MAX;

/// What a slot is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Free,
    /// In the tables, and by its cluster in the policy.
    Held,
    /// Out of both, but still being read: whoever reads it last frees it.
    Condemned,
}

/// What a cluster is besides its blocks; its leader has it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cluster {
    /// The block that was asked for last, by its place in the stretch.
    pub(super) asked: u8,
    /// The shard's count of insertions at the last one into it.
    pub(super) joined: u32,
}

/// One block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub key: Key,
    /// Of the compressed bytes.
    pub sum: u64,
    /// `None`: nothing is kept, it is all zero.
    pub place: Option<Place>,
    pub raw_len: u32,
    pub compressed_len: u32,
    /// Readers at work on the compressed bytes without the lock.
    pub pins: u32,
    /// The file's block that came in after this one, and before it. For a free slot, `older` is the next free one.
    pub newer: u32,
    pub older: u32,
    /// The block that its cluster has in the policy: itself, if it is alone.
    pub leader: u32,
    /// If it leads.
    pub cluster: Cluster,
    pub form: Form,
    pub state: State,
    /// The dense codec was tried and did not pay.
    pub settled: bool,
}

impl Entry {
    /// What the block weighs for the policy: its granules, and its part of the tables.
    pub fn weight(&self) -> u32 {
        const TABLES: usize = size_of::<Entry>() + 32;
        u32::try_from(rounded(self.compressed_len as usize) + TABLES).unwrap_or(u32::MAX)
    }
}

const EMPTY: Entry = Entry {
    key: Key::new(FileId(0), 0),
    sum: 0,
    place: None,
    raw_len: 0,
    compressed_len: 0,
    pins: 0,
    newer: NONE,
    older: NONE,
    leader: NONE,
    cluster: Cluster { asked: 0, joined: 0 },
    form: Form::Zero,
    state: State::Free,
    settled: false,
};

/// Slots by number, and which are free.
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

    /// Slots that are not free.
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

    /// Moves what `from` holds to the free slot `to`.
    pub fn renumber(&mut self, from: Slot, to: Slot) {
        self[to] = self[from];
        self[from] = EMPTY;
    }

    /// Forgets free slots at the end, and the room for them. To be called after [`Slots::renumber`].
    pub fn truncate(&mut self) {
        let end = self.entries.iter().rposition(|e| e.state != State::Free).map_or(0, |last| last + 1);
        self.entries.truncate(end);
        self.entries.shrink_to_fit();
        self.relink_free();
    }

    /// Makes the list of free slots anew, the lowest first.
    fn relink_free(&mut self) {
        self.free = NONE;
        for (index, entry) in
            self.entries.iter_mut().enumerate().rev().filter(|(_, e)| e.state == State::Free)
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
