//! The interface of an eviction policy for a replay.

use std::collections::TryReserveError;

use eke_cache_store::policy::{S3Fifo, Slot};
use eke_model::units::Bytes;

/// An eviction order over slots, which are the numbers of cached blocks.
pub trait Policy: Default {
    /// Makes room for slots below `slots`.
    ///
    /// # Errors
    /// Out of memory.
    fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError>;

    /// Sets the maximum total weight of the admitted blocks.
    fn set_capacity(&mut self, capacity: Bytes);

    /// Admits a block. The hash of its key lets a policy recognize it later.
    fn admit(&mut self, slot: Slot, hash: u64, weight: u32);

    /// Notes that the block was requested.
    fn touch(&mut self, slot: Slot);

    /// Removes the next victim; `None` if the cache is empty.
    fn evict(&mut self) -> Option<Slot>;
}

/// The store's policy itself.
impl<const MAX: u8> Policy for S3Fifo<MAX> {
    fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError> {
        self.reserve(slots)
    }

    fn set_capacity(&mut self, capacity: Bytes) {
        self.set_capacity(capacity);
    }

    fn admit(&mut self, slot: Slot, hash: u64, weight: u32) {
        self.admit(slot, hash, weight);
    }

    fn touch(&mut self, slot: Slot) {
        self.touch(slot);
    }

    fn evict(&mut self) -> Option<Slot> {
        self.evict()
    }
}
