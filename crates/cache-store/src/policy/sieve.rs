//! SIEVE: one queue and a hand that walks from old to new, sparing what was asked for since it last came by.

use std::collections::TryReserveError;

use eke_model::units::Bytes;

use super::queues::Queues;
use super::{Policy, Slot};

/// SIEVE. Blocks that are spared stay where they are, which is what tells it from CLOCK.
#[derive(Debug, Default)]
pub struct Sieve {
    queue: Queues<1>,
    /// Where the hand goes on; `None`: at the oldest.
    hand: Option<Slot>,
}

impl Sieve {
    fn take_out(&mut self, slot: Slot) {
        if self.hand == Some(slot) {
            self.hand = self.queue.newer_than(slot);
        }
        self.queue.unlink(slot);
    }
}

impl Policy for Sieve {
    const NAME: &'static str = "sieve";

    fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError> {
        self.queue.reserve(slots)
    }

    fn set_capacity(&mut self, _: Bytes) {}

    fn admit(&mut self, slot: Slot, _: u64, weight: u32) {
        self.queue.push(0, slot, 0, weight);
    }

    fn touch(&mut self, slot: Slot) {
        *self.queue.marks(slot) = 1;
    }

    fn reweigh(&mut self, slot: Slot, weight: u32) {
        self.queue.reweigh(slot, weight);
    }

    fn evict(&mut self) -> Option<Slot> {
        loop {
            let slot = self.hand.or_else(|| self.queue.oldest(0))?;
            if std::mem::take(self.queue.marks(slot)) == 0 {
                self.hand = Some(slot);
                self.take_out(slot);
                return Some(slot);
            }
            self.hand = self.queue.newer_than(slot);
        }
    }

    fn remove(&mut self, slot: Slot) {
        self.take_out(slot);
    }

    fn stays(&self, slot: Slot) -> bool {
        self.queue.marks_of(slot) > 0
    }

    fn held(&self) -> Bytes {
        self.queue.held()
    }

    fn renumber(&mut self, from: Slot, to: Slot) {
        self.queue.renumber(from, to);
        if self.hand == Some(from) {
            self.hand = Some(to);
        }
    }

    fn shrink(&mut self, slots: usize) {
        self.queue.shrink(slots);
    }
}
