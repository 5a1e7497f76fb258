//! Where each block is. Entries are in the order in which they were written, so those of the oldest segment are the first. The tables
//! have numbers of entries only; the keys are in the entries.

use std::collections::VecDeque;
use std::ops::Range;

use eke_cache_store::{FileId, Key, OutOfMemory};
use hashbrown::HashTable;

use crate::place::Place;

const NONE: u32 = u32::MAX;

/// A block's memory here, in bytes: its entry, and its share of the tables.
pub(crate) const ENTRY: usize = size_of::<Entry>() + 16;

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: Key,
    place: Place,
    /// The blocks of the file that came after and before this one.
    newer: u32,
    older: u32,
    /// It was not dropped since.
    live: bool,
}

/// Places by key. The blocks of a file form a chain that begins with the newest.
#[derive(Debug, Default)]
pub(crate) struct Index {
    entries: VecDeque<Entry>,
    /// The number of the first entry. Numbers wrap.
    first: u32,
    keys: HashTable<u32>,
    files: HashTable<u32>,
}

fn at(first: u32, number: u32) -> usize {
    number.wrapping_sub(first) as usize
}

impl Index {
    /// Blocks, with those that were dropped but whose segment is still there.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Blocks.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Its memory, in bytes.
    pub fn memory(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.keys.allocation_size()
            + self.files.allocation_size()
    }

    fn find_number(&self, key: Key) -> Option<u32> {
        let (entries, first) = (&self.entries, self.first);
        self.keys.find(key.hash(), |&number| entries[at(first, number)].key == key).copied()
    }

    /// Where the block is.
    pub fn find(&self, key: Key) -> Option<Place> {
        self.find_number(key).map(|number| self.entries[at(self.first, number)].place)
    }

    fn newest(&self, file: FileId) -> Option<u32> {
        let (entries, first) = (&self.entries, self.first);
        self.files.find(file.hash(), |&number| entries[at(first, number)].key.file == file).copied()
    }

    /// Adds a block, which is in the newest segment, instead of an earlier copy.
    ///
    /// # Errors
    /// There is no memory. Then nothing has changed.
    pub fn insert(&mut self, key: Key, place: Place) -> Result<(), OutOfMemory> {
        let (entries, first) = (&self.entries, self.first);
        self.keys.try_reserve(1, |&number| entries[at(first, number)].key.hash())?;
        self.files.try_reserve(1, |&number| entries[at(first, number)].key.file.hash())?;
        self.entries.try_reserve(2)?;
        self.remove(key);
        let mut number = self.first.wrapping_add(self.entries.len() as u32);
        if number == NONE {
            // No entry has this number.
            self.entries.push_back(Entry { key, place, newer: NONE, older: NONE, live: false });
            number = number.wrapping_add(1);
        }
        let newest = self.newest(key.file);
        self.entries.push_back(Entry { key, place, newer: NONE, older: newest.unwrap_or(NONE), live: true });
        let (entries, first) = (&mut self.entries, self.first);
        match newest {
            Some(newest) => {
                entries[at(first, newest)].newer = number;
                if let Some(head) = self.files.find_mut(key.file.hash(), |&n| n == newest) {
                    *head = number;
                }
            }
            None => {
                self.files.insert_unique(key.file.hash(), number, |&n| entries[at(first, n)].key.file.hash());
            }
        }
        self.keys.insert_unique(key.hash(), number, |&n| entries[at(first, n)].key.hash());
        Ok(())
    }

    /// Removes a block; true if there was one.
    pub fn remove(&mut self, key: Key) -> bool {
        let found = self.find_number(key);
        found.into_iter().for_each(|number| self.remove_number(number));
        found.is_some()
    }

    fn remove_number(&mut self, number: u32) {
        let first = self.first;
        let entry = &mut self.entries[at(first, number)];
        entry.live = false;
        let Entry { key, newer, older, .. } = *entry;
        if let Ok(found) = self.keys.find_entry(key.hash(), |&n| n == number) {
            found.remove();
        }
        if older != NONE {
            self.entries[at(first, older)].newer = newer;
        }
        if newer != NONE {
            self.entries[at(first, newer)].older = older;
        } else if let Ok(mut head) = self.files.find_entry(key.file.hash(), |&n| n == number) {
            if older == NONE {
                head.remove();
            } else {
                *head.get_mut() = older;
            }
        }
    }

    /// Removes a file's blocks with numbers in `blocks`. Returns how many. Visits all blocks of the file, unless it is one block.
    pub fn remove_range(&mut self, file: FileId, blocks: &Range<u64>) -> u64 {
        if blocks.end.saturating_sub(blocks.start) <= 1 {
            return u64::from(!blocks.is_empty() && self.remove(Key::new(file, blocks.start)));
        }
        let (mut removed, mut next) = (0, self.newest(file));
        while let Some(number) = next {
            let Entry { key, older, .. } = self.entries[at(self.first, number)];
            next = Some(older).filter(|&older| older != NONE);
            if blocks.contains(&key.block) {
                self.remove_number(number);
                removed += 1;
            }
        }
        removed
    }

    /// The segment of the oldest block, of which nothing may be left but its place in the table.
    pub fn oldest_segment(&self) -> Option<u64> {
        self.entries.front().map(|entry| entry.place.segment)
    }

    /// Removes the blocks of a segment. Returns how many.
    pub fn remove_segment(&mut self, number: u64) -> u64 {
        let from = self.entries.partition_point(|entry| entry.place.segment < number);
        let to = self.entries.partition_point(|entry| entry.place.segment <= number);
        let mut removed = 0;
        for position in from..to {
            if self.entries[position].live {
                self.remove_number(self.first.wrapping_add(position as u32));
                removed += 1;
            }
        }
        while self.entries.front().is_some_and(|entry| entry.place.segment <= number && !entry.live) {
            self.entries.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        removed
    }

    /// All blocks in the order in which they were written.
    pub fn all(&self) -> impl Iterator<Item = (Key, Place)> + '_ {
        self.entries.iter().filter(|entry| entry.live).map(|entry| (entry.key, entry.place))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Op {
        Insert(u64, u64),
        Remove(u64, u64),
        Range(u64, Range<u64>),
        Seal,
        Recycle,
        Fail(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        let (file, block) = (0..4_u64, 0..6_u64);
        prop_oneof![
            8 => (file.clone(), block.clone()).prop_map(|(file, block)| Op::Insert(file, block)),
            2 => (file.clone(), block.clone()).prop_map(|(file, block)| Op::Remove(file, block)),
            1 => (file, block.clone(), block).prop_map(|(file, a, b)| Op::Range(file, a..b)),
            3 => Just(Op::Seal),
            2 => Just(Op::Recycle),
            1 => (0..4_u64).prop_map(Op::Fail),
        ]
    }

    /// The index, a model of it, and the numbers of the oldest and the newest segment.
    struct Pair {
        index: Index,
        model: BTreeMap<(u64, u64), Place>,
        oldest: u64,
        newest: u64,
    }

    impl Pair {
        fn apply(&mut self, op: Op, nth: u32) {
            let Self { index, model, oldest, newest } = self;
            match op {
                Op::Insert(file, block) => {
                    let place = Place { segment: *newest, offset: nth, len: 1 };
                    index.insert(Key::new(FileId(file), block), place).unwrap();
                    model.insert((file, block), place);
                }
                Op::Remove(file, block) => {
                    let removed = index.remove(Key::new(FileId(file), block));
                    assert_eq!(removed, model.remove(&(file, block)).is_some());
                }
                Op::Range(file, blocks) => {
                    let before = model.len();
                    model.retain(|key, _| key.0 != file || !blocks.contains(&key.1));
                    let removed = index.remove_range(FileId(file), &blocks);
                    assert_eq!(removed as usize, before - model.len());
                }
                Op::Seal => *newest += 1,
                Op::Recycle if oldest < newest => {
                    index.remove_segment(*oldest);
                    model.retain(|_, place| place.segment != *oldest);
                    *oldest += 1;
                }
                Op::Fail(back) => {
                    let number = newest.saturating_sub(back).max(*oldest);
                    index.remove_segment(number);
                    model.retain(|_, place| place.segment != number);
                }
                Op::Recycle => {}
            }
        }
    }

    proptest! {
        #[test]
        fn it_is_a_map_whatever_happens(
            ops in prop::collection::vec(op(), 0..300),
            first in prop_oneof![Just(0), Just(u32::MAX - 20), any::<u32>()],
        ) {
            let index = Index { first, ..Index::default() };
            let mut pair = Pair { index, model: BTreeMap::new(), oldest: 0, newest: 0 };
            for (nth, op) in ops.into_iter().enumerate() {
                pair.apply(op, nth as u32);
                let all: BTreeMap<_, _> = pair.index.all().map(|(key, place)| ((key.file.0, key.block), place)).collect();
                prop_assert_eq!(&all, &pair.model);
                prop_assert_eq!(pair.index.len(), all.len());
                for (&(file, block), &place) in &all {
                    prop_assert_eq!(pair.index.find(Key::new(FileId(file), block)), Some(place));
                }
            }
        }
    }
}
