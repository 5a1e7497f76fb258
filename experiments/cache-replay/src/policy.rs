//! What a replay asks of an eviction policy.

use std::collections::TryReserveError;

use eke_cache_store::policy::{S3Fifo, Slot};
use eke_model::units::Bytes;

/// An order of eviction over slots, the numbers of the blocks in the cache.
pub trait Policy: Default {
    /// Makes room for slots below `slots`.
    ///
    /// # Errors
    /// There is no memory.
    fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError>;

    /// The most that the admitted blocks weigh together.
    fn set_capacity(&mut self, capacity: Bytes);

    /// Admits a block. By the hash of its key a policy can recognise it later.
    fn admit(&mut self, slot: Slot, hash: u64, weight: u32);

    /// The block was requested.
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
