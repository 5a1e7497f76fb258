//! What stays is recompressed: finding it, and putting the denser bytes in its place.

use super::slots::{Entry, State};
use super::{Found, Shard};
use crate::block::Form;
use crate::policy::Slot;

/// Slots looked at in one go, so that the lock is held for microseconds.
const LOOK_AT: usize = 256;

/// Compressing again must save this share (one in so many) of what the fast codec left; else it is not worth slower hits.
const SAVES_ONE_IN: usize = 16;

/// What a look for a block to recompress came to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Candidate {
    /// This one; it is pinned.
    Found(Found),
    /// None among those looked at; there are more.
    LookOn,
    /// The round is over: none was found since slot 0.
    None,
}

impl Shard {
    /// Looks on for a block that stays, was compressed by the fast codec only, and is not being read.
    pub fn next_candidate(&mut self) -> Candidate {
        let from = self.sweep as usize;
        let to = (from + LOOK_AT).min(self.slots.len());
        let found = (from..to).map(|i| Slot(i as u32)).find(|&slot| self.is_candidate(slot));
        self.sweep = found.map_or(to as u32, |slot| slot.0 + 1);
        match found {
            Some(slot) => Candidate::Found(self.pin(slot)),
            None if to < self.slots.len() => Candidate::LookOn,
            None => {
                self.sweep = 0;
                Candidate::None
            }
        }
    }

    fn is_candidate(&self, slot: Slot) -> bool {
        let Entry { form, state, pins, settled, .. } = self.slots[slot];
        form == Form::Fast && state == State::Held && pins == 0 && !settled && self.stays(slot)
    }

    /// Unpins a candidate and puts `compressed` in its place, with its checksum; `None`, or not enough saved: it stays as it is,
    /// and is not tried again. Was it replaced?
    pub fn replace(&mut self, candidate: &Found, compressed: Option<(&[u8], u64)>) -> bool {
        let slot = candidate.slot;
        let Entry { state, pins, compressed_len, .. } = self.slots[slot];
        let old_len = compressed_len as usize;
        let better =
            compressed.filter(|(compressed, _)| compressed.len() <= old_len - old_len / SAVES_ONE_IN);
        self.slots[slot].settled = better.is_none();
        // Others may be reading the old bytes; then it can wait for another round.
        let replaced = match better {
            Some((compressed, sum)) if state == State::Held && pins == 1 => {
                self.put_denser(slot, compressed, sum)
            }
            _ => false,
        };
        self.unpin(slot);
        replaced
    }

    /// In the same place: the new bytes are fewer, and only this thread reads the old ones, which it no longer needs.
    fn put_denser(&mut self, slot: Slot, compressed: &[u8], sum: u64) -> bool {
        let Entry { place: Some(place), form, raw_len, compressed_len, .. } = self.slots[slot] else {
            return false;
        };
        self.arena.cut(place, compressed.len());
        self.arena.write(place, compressed);
        self.counts.take(form, raw_len, compressed_len);
        let entry = &mut self.slots[slot];
        (entry.compressed_len, entry.sum, entry.form) = (compressed.len() as u32, sum, Form::Dense);
        self.counts.add(Form::Dense, raw_len, entry.compressed_len);
        self.counts.denser += 1;
        self.weigh(Slot(self.slots[slot].leader));
        true
    }
}
