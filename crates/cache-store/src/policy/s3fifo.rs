//! S3-FIFO: a small queue that most blocks pass through once, a main queue for those that were asked for again, and ghosts.

use std::collections::TryReserveError;

use eke_model::units::Bytes;

use super::Slot;
use super::ghosts::Ghosts;
use super::queues::Queues;

const SMALL: u8 = 0;
const MAIN: u8 = 1;

/// The small queue's share of the capacity. The paper has 10 %; behind a page cache, which has had the quick repeats already,
/// less is better: 1 to 4 points more hits on Zipf and launches, half a point fewer on launches in very small stores.
const SMALL_SHARE: f64 = 0.03;

/// S3-FIFO, weighed in bytes. `MAX` is the highest count of requests that is remembered: 1 is the one-bit form (one
/// request while in the small queue is enough for the main one), 3 the paper's (it takes two).
#[derive(Debug, Default)]
pub struct S3Fifo<const MAX: u8 = 1> {
    queues: Queues<2>,
    ghosts: Ghosts,
    small_capacity: u64,
}

impl<const MAX: u8> S3Fifo<MAX> {
    /// Marks that carry a block from the small queue into the main one.
    const ENOUGH: u8 = if MAX > 1 { 2 } else { 1 };

    /// The oldest of the small queue moves on to the main one, or goes and leaves a ghost.
    fn evict_small(&mut self, slot: Slot) -> Option<Slot> {
        if self.queues.marks_of(slot) >= Self::ENOUGH {
            self.queues.renew(MAIN, slot, 0);
            return None;
        }
        self.ghosts.add(self.queues.tag_of(slot), self.queues.weight_of(slot));
        self.queues.unlink(slot);
        Some(slot)
    }

    /// The oldest of the main queue gets another round for a mark, or goes.
    fn evict_main(&mut self, slot: Slot) -> Option<Slot> {
        let marks = self.queues.marks_of(slot);
        if marks > 0 {
            self.queues.renew(MAIN, slot, marks - 1);
            return None;
        }
        self.queues.unlink(slot);
        Some(slot)
    }

    /// Each call that takes nothing out takes a mark or a block out of the small queue, so that this ends.
    fn step(&mut self) -> Option<Option<Slot>> {
        let small = self.queues.oldest(SMALL).filter(|_| self.queues.weight(SMALL) > self.small_capacity);
        match (small, self.queues.oldest(MAIN)) {
            (Some(slot), _) => Some(self.evict_small(slot)),
            (None, Some(slot)) => Some(self.evict_main(slot)),
            (None, None) => self.queues.oldest(SMALL).map(|slot| self.evict_small(slot)),
        }
    }
}

/// Calls come from under one lock. Only [`S3Fifo::reserve`] allocates.
impl<const MAX: u8> S3Fifo<MAX> {
    /// Makes room for the slots below `slots`, and for the memory of as many that have gone.
    ///
    /// # Errors
    /// When there is no memory; the policy is as before.
    pub fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError> {
        self.ghosts.reserve(slots)?;
        self.queues.reserve(slots)
    }

    /// The most that the admitted blocks will weigh together.
    pub fn set_capacity(&mut self, capacity: Bytes) {
        self.small_capacity = capacity.scaled(SMALL_SHARE).0;
        self.ghosts.set_reach(capacity.0 - self.small_capacity);
    }

    /// A block came in. `hash` is its key's, so that a policy can know it when it comes again.
    pub fn admit(&mut self, slot: Slot, hash: u64, weight: u32) {
        let tag = (hash >> 16) as u32;
        let queue = if self.ghosts.take(tag) { MAIN } else { SMALL };
        self.queues.push(queue, slot, tag, weight);
    }

    /// A block was asked for.
    pub fn touch(&mut self, slot: Slot) {
        let marks = self.queues.marks(slot);
        *marks = (*marks + 1).min(MAX);
    }

    /// A block weighs something else now; its place in the order stays.
    pub fn reweigh(&mut self, slot: Slot, weight: u32) {
        self.queues.reweigh(slot, weight);
    }

    /// Takes the next victim out; `None` if nothing is left.
    pub fn evict(&mut self) -> Option<Slot> {
        loop {
            if let Some(slot) = self.step()? {
                return Some(slot);
            }
        }
    }

    /// A block left for another reason: it was dropped by its owner.
    pub fn remove(&mut self, slot: Slot) {
        self.queues.unlink(slot);
    }

    /// Does this block look as if it would be held for long, so that work on it pays?
    pub fn stays(&self, slot: Slot) -> bool {
        self.queues.queue_of(slot) == MAIN
    }

    /// The memory that the policy itself takes.
    pub fn held(&self) -> Bytes {
        self.queues.held() + self.ghosts.held()
    }

    /// The block has another slot from now on; `to` is free.
    pub fn renumber(&mut self, from: Slot, to: Slot) {
        self.queues.renumber(from, to);
    }

    /// Gives back memory that slots from `slots` on took. None of them is in use.
    pub fn shrink(&mut self, slots: usize) {
        self.queues.shrink(slots);
        self.ghosts.shrink(slots);
    }
}
