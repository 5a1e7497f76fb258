//! Which block goes when room is needed.
//!
//! A policy orders *slots*, the numbers that a shard gives to the blocks it holds; it never sees keys or bytes. A cluster of blocks
//! has the slot of its leader; where this module says block, a shard has a cluster. All of them
//! weigh in bytes, because compressed blocks differ by a factor of a hundred.
//!
//! | policy | source |
//! | --- | --- |
//! | [`S3Fifo`] | Yang, Zhang, Qiu, Yue, Rashmi: *FIFO queues are all you need for cache eviction*, SOSP '23 |
//! | [`Sieve`] | Zhang, Yang, Yue, Vigfusson, Rashmi: *SIEVE is simpler than LRU*, NSDI '24 |
//! | [`Lru`] | the yardstick |
//!
//! The store uses S3-FIFO with one bit of frequency, which its authors found better than two for block I/O behind another
//! cache (the first author's blog, blog.jasony.me): exactly this store's place, behind the kernel's page cache.
//! `tests/policies.rs` and [`crate::trace`] compare them.

mod ghosts;
mod lru;
mod queues;
mod s3fifo;
mod sieve;

use std::collections::TryReserveError;

pub use lru::Lru;
pub use s3fifo::S3Fifo;
pub use sieve::Sieve;

use eke_model::units::Bytes;

/// The number of a block that is held, chosen by whoever holds it; small numbers are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot(pub u32);

impl Slot {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// An order of eviction. Calls come from under one lock. Only [`Policy::reserve`] allocates.
pub trait Policy: Default + Send {
    /// What tables call it.
    const NAME: &'static str;

    /// Makes room for the slots below `slots`, and for the memory of as many that have gone.
    ///
    /// # Errors
    /// When there is no memory; the policy is as before.
    fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError>;

    /// The most that the admitted blocks will weigh together.
    fn set_capacity(&mut self, capacity: Bytes);

    /// A block came in. `hash` is its key's, so that a policy can know it when it comes again.
    fn admit(&mut self, slot: Slot, hash: u64, weight: u32);

    /// A block was asked for.
    fn touch(&mut self, slot: Slot);

    /// A block weighs something else now; its place in the order stays.
    fn reweigh(&mut self, slot: Slot, weight: u32);

    /// Takes the next victim out; `None` if nothing is left.
    fn evict(&mut self) -> Option<Slot>;

    /// A block left for another reason: it was dropped by its owner.
    fn remove(&mut self, slot: Slot);

    /// Does this block look as if it would be held for long, so that work on it pays?
    fn stays(&self, slot: Slot) -> bool;

    /// The memory that the policy itself takes.
    fn held(&self) -> Bytes;

    /// The block has another slot from now on; `to` is free.
    fn renumber(&mut self, from: Slot, to: Slot);

    /// Gives back memory that slots from `slots` on took. None of them is in use.
    fn shrink(&mut self, slots: usize);
}
