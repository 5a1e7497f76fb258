//! Slots in order of arrival.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

use eke_cache_store::policy::Slot;

/// A queue from old to new, with removal from its middle.
#[derive(Debug, Default)]
pub(crate) struct Order {
    slots: BTreeMap<u64, Slot>,
    arrivals: u64,
}

impl Order {
    /// Appends a slot; returns its arrival number.
    pub fn push(&mut self, slot: Slot) -> u64 {
        self.arrivals += 1;
        self.slots.insert(self.arrivals, slot);
        self.arrivals
    }

    pub fn remove(&mut self, arrival: u64) -> Option<Slot> {
        self.slots.remove(&arrival)
    }

    /// The oldest slot within these arrivals.
    pub fn oldest(&self, within: impl RangeBounds<u64>) -> Option<(u64, Slot)> {
        self.slots.range(within).next().map(|(arrival, slot)| (*arrival, *slot))
    }
}
