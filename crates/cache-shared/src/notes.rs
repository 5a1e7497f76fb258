//! Notes of blocks that may be offered, in a bounded queue. A note costs no block's memory.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use eke_cache_store::Ticket;
use twox_hash::XxHash3_64;

use crate::decide::Bandwidth;
use crate::key::FileVersion;

/// The most notes: 256 MiB of blocks.
const MOST: usize = 4096;

/// A block that was read from the origin.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// It entered the store by this.
    pub ticket: Ticket,
    /// The file's version before and after it was read.
    pub version: FileVersion,
    /// Of the bytes that were read: see [`Offer::sum`].
    pub sum: u64,
}

impl Offer {
    /// The checksum of a block's bytes.
    pub fn sum(block: &[u8]) -> u64 {
        XxHash3_64::oneshot(block)
    }
}

#[derive(Debug)]
pub(crate) struct Offers {
    queue: Mutex<Queue>,
    added: Condvar,
}

#[derive(Debug)]
pub(crate) struct Queue {
    pub notes: VecDeque<(Offer, Instant)>,
    pub bandwidth: Bandwidth,
    pub closed: bool,
}

impl Offers {
    pub fn new(bandwidth: Bandwidth) -> Self {
        let queue = Queue { notes: VecDeque::new(), bandwidth, closed: false };
        Self { queue: Mutex::new(queue), added: Condvar::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a note. False: there is no room.
    pub fn add(&self, offer: Offer) -> bool {
        let mut queue = self.lock();
        let has_room = !queue.closed && queue.notes.len() < MOST && queue.notes.try_reserve(1).is_ok();
        if has_room {
            queue.notes.push_back((offer, Instant::now()));
            drop(queue);
            self.added.notify_one();
        }
        has_room
    }

    /// No notes are added or taken any more.
    pub fn close(&self) {
        self.lock().closed = true;
        self.added.notify_all();
    }

    /// All notes, when there are some; `None`: closed.
    pub fn take(&self) -> Option<VecDeque<(Offer, Instant)>> {
        let mut queue = self.lock();
        while queue.notes.is_empty() && !queue.closed {
            queue = self.added.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        (!queue.closed).then(|| std::mem::take(&mut queue.notes))
    }
}
