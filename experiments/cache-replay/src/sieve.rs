//! SIEVE: a queue, and a hand that moves from old to new and spares blocks requested since its last visit (Zhang, Yang,
//! Yue, Vigfusson, Rashmi: *SIEVE is simpler than LRU*, NSDI '24).

use std::collections::TryReserveError;

use eke_cache_store::policy::Slot;
use eke_model::units::Bytes;

use crate::Policy;
use crate::order::Order;

/// SIEVE. Unlike in CLOCK, spared blocks stay in place.
#[derive(Debug, Default)]
pub struct Sieve {
    order: Order,
    /// By slot: whether it was requested since the hand's last visit.
    visited: Vec<bool>,
    /// The arrival at which the hand continues; `None`: at the oldest.
    hand: Option<u64>,
}

impl Policy for Sieve {
    fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError> {
        self.visited.resize(slots.max(self.visited.len()), false);
        Ok(())
    }

    fn set_capacity(&mut self, _: Bytes) {}

    fn admit(&mut self, slot: Slot, _: u64, _: u32) {
        self.visited[slot.index()] = false;
        self.order.push(slot);
    }

    fn touch(&mut self, slot: Slot) {
        self.visited[slot.index()] = true;
    }

    fn evict(&mut self) -> Option<Slot> {
        loop {
            let (arrival, slot) = self.order.oldest(self.hand.unwrap_or(0)..)?;
            self.hand = self.order.oldest(arrival + 1..).map(|(next, _)| next);
            if !std::mem::take(&mut self.visited[slot.index()]) {
                return self.order.remove(arrival);
            }
        }
    }
}
