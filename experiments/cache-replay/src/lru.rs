//! Least recently used.

use std::collections::TryReserveError;

use eke_cache_store::policy::Slot;
use eke_model::units::Bytes;

use crate::Policy;
use crate::order::Order;

/// LRU: every request moves the block to the newest end. One scan evicts everything.
#[derive(Debug, Default)]
pub struct Lru {
    order: Order,
    /// By slot.
    arrivals: Vec<u64>,
}

impl Policy for Lru {
    fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError> {
        self.arrivals.resize(slots.max(self.arrivals.len()), 0);
        Ok(())
    }

    fn set_capacity(&mut self, _: Bytes) {}

    fn admit(&mut self, slot: Slot, _: u64, _: u32) {
        self.arrivals[slot.index()] = self.order.push(slot);
    }

    fn touch(&mut self, slot: Slot) {
        self.order.remove(self.arrivals[slot.index()]);
        self.arrivals[slot.index()] = self.order.push(slot);
    }

    fn evict(&mut self) -> Option<Slot> {
        let (oldest, _) = self.order.oldest(..)?;
        self.order.remove(oldest)
    }
}
