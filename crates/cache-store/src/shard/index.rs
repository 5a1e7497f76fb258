//! From keys and files to slots. The tables have slot numbers only; the keys are in the slots.

use hashbrown::HashTable;

use super::slots::{NONE, Slots};
use crate::Key;
use crate::error::OutOfMemory;
use crate::key::FileId;
use crate::policy::Slot;

/// Blocks by key. The blocks of a file form a chain that begins with the newest.
#[derive(Debug, Default)]
pub(super) struct Index {
    keys: HashTable<u32>,
    files: HashTable<u32>,
}

impl Index {
    pub fn held_bytes(&self) -> usize {
        self.keys.allocation_size() + self.files.allocation_size()
    }

    /// Room for `more` blocks, each of a file of its own.
    pub fn reserve(&mut self, more: usize, slots: &Slots) -> Result<(), OutOfMemory> {
        self.keys.try_reserve(more, |&s| slots[Slot(s)].key.hash())?;
        Ok(self.files.try_reserve(1, |&s| slots[Slot(s)].key.file.hash())?)
    }

    pub fn shrink(&mut self, slots: &Slots) {
        self.keys.shrink_to_fit(|&s| slots[Slot(s)].key.hash());
        self.files.shrink_to_fit(|&s| slots[Slot(s)].key.file.hash());
    }

    pub fn find(&self, key: Key, slots: &Slots) -> Option<Slot> {
        self.keys.find(key.hash(), |&s| slots[Slot(s)].key == key).copied().map(Slot)
    }

    /// The newest block of a file.
    pub fn newest(&self, file: FileId, slots: &Slots) -> Option<Slot> {
        self.files.find(file.hash(), |&s| slots[Slot(s)].key.file == file).copied().map(Slot)
    }

    /// Inserts a slot, whose key is set and unique. There is room.
    pub fn insert(&mut self, slot: Slot, slots: &mut Slots) {
        let key = slots[slot].key;
        self.keys.insert_unique(key.hash(), slot.0, |&s| slots[Slot(s)].key.hash());
        let newest = self.newest(key.file, slots);
        slots[slot].newer = NONE;
        slots[slot].older = newest.map_or(NONE, |s| s.0);
        match newest {
            Some(newest) => {
                slots[newest].newer = slot.0;
                self.set_newest(key.file, newest, slot);
            }
            None => {
                self.files.insert_unique(key.file.hash(), slot.0, |&s| slots[Slot(s)].key.file.hash());
            }
        }
    }

    pub fn remove(&mut self, slot: Slot, slots: &mut Slots) {
        let entry = slots[slot];
        if let Ok(found) = self.keys.find_entry(entry.key.hash(), |&s| s == slot.0) {
            found.remove();
        }
        if entry.older != NONE {
            slots[Slot(entry.older)].newer = entry.newer;
        }
        match (entry.newer, entry.older) {
            (NONE, NONE) => self.forget_file(entry.key.file, slot),
            (NONE, older) => self.set_newest(entry.key.file, slot, Slot(older)),
            (newer, older) => slots[Slot(newer)].older = older,
        }
    }

    /// The block in `from` is in `to` now; its entry was already moved.
    pub fn renumber(&mut self, from: Slot, to: Slot, slots: &mut Slots) {
        let entry = slots[to];
        if let Some(number) = self.keys.find_mut(entry.key.hash(), |&s| s == from.0) {
            *number = to.0;
        }
        if entry.older != NONE {
            slots[Slot(entry.older)].newer = to.0;
        }
        match entry.newer {
            NONE => self.set_newest(entry.key.file, from, to),
            newer => slots[Slot(newer)].older = to.0,
        }
    }

    /// True if the neighbours in the file's chain link to this slot. For tests.
    pub fn is_chained(&self, slot: Slot, slots: &Slots) -> bool {
        let entry = slots[slot];
        let from_newer = match entry.newer {
            NONE => self.newest(entry.key.file, slots).map(|s| s.0),
            newer => Some(slots[Slot(newer)].older),
        };
        from_newer == Some(slot.0) && (entry.older == NONE || slots[Slot(entry.older)].newer == slot.0)
    }

    fn set_newest(&mut self, file: FileId, was: Slot, is: Slot) {
        if let Some(newest) = self.files.find_mut(file.hash(), |&s| s == was.0) {
            *newest = is.0;
        }
    }

    fn forget_file(&mut self, file: FileId, slot: Slot) {
        if let Ok(found) = self.files.find_entry(file.hash(), |&s| s == slot.0) {
            found.remove();
        }
    }
}
