//! Recompression: finds blocks that stay, and replaces their bytes.

use super::slots::{Entry, SlotState};
use super::{FoundBlock, Shard};
use crate::block::Form;
use crate::policy::Slot;

/// Slots checked at once, so that the lock is held for microseconds.
const SLOTS_AT_ONCE: usize = 256;

/// Recompression must save this share (one in so many) of the fast codec's bytes; otherwise slower hits are not justified.
const SAVES_ONE_IN: usize = 16;

/// The result of a search for a block to recompress.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Candidate {
    /// This block; it is pinned.
    Found(FoundBlock),
    /// None among the slots checked; there are more.
    Continue,
    /// The round has passed the last slot.
    None,
}

impl Shard {
    /// Continues the search for a block that stays, has only the fast codec's form, and is not being read.
    pub fn next_candidate(&mut self) -> Candidate {
        let from = self.sweep as usize;
        let to = (from + SLOTS_AT_ONCE).min(self.slots.len());
        let found = (from..to).map(|i| Slot(i as u32)).find(|&slot| self.is_candidate(slot));
        self.sweep = found.map_or(to as u32, |slot| slot.0 + 1);
        match found {
            Some(slot) => Candidate::Found(self.pin(slot)),
            None if to < self.slots.len() => Candidate::Continue,
            None => {
                self.sweep = 0;
                Candidate::None
            }
        }
    }

    fn is_candidate(&self, slot: Slot) -> bool {
        let Entry { form, state, pins, settled, .. } = self.slots[slot];
        form == Form::Fast && state == SlotState::Stored && pins == 0 && !settled && self.stays(slot)
    }

    /// Unpins a candidate and stores `compressed`, with its checksum, in its place. `None`, or too little saved: the block
    /// stays as it is and is not tried again. True if it was replaced.
    pub fn replace(&mut self, candidate: &FoundBlock, compressed: Option<(&[u8], u64)>) -> bool {
        let slot = candidate.slot;
        let Entry { state, pins, compressed_len, .. } = self.slots[slot];
        let old_len = compressed_len as usize;
        let better =
            compressed.filter(|(compressed, _)| compressed.len() <= old_len - old_len / SAVES_ONE_IN);
        self.slots[slot].settled = better.is_none();
        // Others may be reading the old bytes; then the block waits for another round.
        let replaced = match better {
            Some((compressed, sum)) if state == SlotState::Stored && pins == 1 => {
                self.overwrite(slot, compressed, sum)
            }
            _ => false,
        };
        self.unpin(slot);
        replaced
    }

    /// At the same address: the new bytes are fewer, and only this thread reads the old ones, which it needs no longer.
    fn overwrite(&mut self, slot: Slot, compressed: &[u8], sum: u64) -> bool {
        let Entry { address: Some(address), form, raw_len, compressed_len, .. } = self.slots[slot] else {
            return false;
        };
        self.arena.cut(address, compressed.len());
        self.arena.write(address, compressed);
        self.counts.take(form, raw_len, compressed_len);
        let entry = &mut self.slots[slot];
        (entry.compressed_len, entry.sum, entry.form) = (compressed.len() as u32, sum, Form::Recompressed);
        self.counts.add(Form::Recompressed, raw_len, entry.compressed_len);
        self.counts.recompressions += 1;
        self.weigh(Slot(self.slots[slot].leader));
        true
    }
}
