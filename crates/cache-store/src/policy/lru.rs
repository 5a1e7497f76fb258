//! Least recently used.

use std::collections::TryReserveError;

use eke_model::units::Bytes;

use super::queues::Queues;
use super::{Policy, Slot};

/// LRU: every request moves the block to the newest end. One scan empties it.
#[derive(Debug, Default)]
pub struct Lru {
    queue: Queues<1>,
}

impl Policy for Lru {
    const NAME: &'static str = "lru";

    fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError> {
        self.queue.reserve(slots)
    }

    fn set_capacity(&mut self, _: Bytes) {}

    fn admit(&mut self, slot: Slot, _: u64, weight: u32) {
        self.queue.push(0, slot, 0, weight);
    }

    fn touch(&mut self, slot: Slot) {
        self.queue.renew(0, slot, 1);
    }

    fn reweigh(&mut self, slot: Slot, weight: u32) {
        self.queue.reweigh(slot, weight);
    }

    fn evict(&mut self) -> Option<Slot> {
        let slot = self.queue.oldest(0)?;
        self.queue.unlink(slot);
        Some(slot)
    }

    fn remove(&mut self, slot: Slot) {
        self.queue.unlink(slot);
    }

    fn stays(&self, slot: Slot) -> bool {
        self.queue.marks_of(slot) > 0
    }

    fn held(&self) -> Bytes {
        self.queue.held()
    }

    fn renumber(&mut self, from: Slot, to: Slot) {
        self.queue.renumber(from, to);
    }

    fn shrink(&mut self, slots: usize) {
        self.queue.shrink(slots);
    }
}
