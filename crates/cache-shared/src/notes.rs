//! Notes of blocks that may be offered, in a bounded queue. A note costs no block's memory.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use eke_cache_store::Ticket;
use twox_hash::XxHash3_64;

use crate::decide::Bandwidth;
use crate::key::FileVersion;

/// The most notes, with those that the sending thread has: 256 MiB of blocks.
const MOST: usize = 4096;

/// Notes, and since when each waits.
pub(crate) type Notes = VecDeque<(Offer, Instant)>;

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
    notes: Notes,
    /// Notes that the sending thread has.
    taken: usize,
    pub bandwidth: Bandwidth,
    closed: bool,
}

impl Offers {
    pub fn new(bandwidth: Bandwidth) -> Self {
        let queue = Queue { notes: Notes::new(), taken: 0, bandwidth, closed: false };
        Self { queue: Mutex::new(queue), added: Condvar::new() }
    }

    pub fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a note. False: there is no room.
    pub fn add(&self, offer: Offer) -> bool {
        let mut queue = self.lock();
        let waiting = queue.notes.len() + queue.taken;
        let has_room = !queue.closed && waiting < MOST && queue.notes.try_reserve(1).is_ok();
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

    /// All notes, when there are some; `None`: closed. [`Offers::put_back`] follows.
    pub fn take(&self) -> Option<Notes> {
        let mut queue = self.lock();
        while queue.notes.is_empty() && !queue.closed {
            queue = self.added.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        queue.taken = queue.notes.len();
        (!queue.closed).then(|| std::mem::take(&mut queue.notes))
    }

    /// Puts those that could not go before the others.
    pub fn put_back(&self, mut notes: Notes) {
        let mut queue = self.lock();
        notes.append(&mut queue.notes);
        (queue.notes, queue.taken) = (notes, 0);
    }
}

#[cfg(test)]
mod tests {
    use eke_cache_store::{FileId, Key, Store, StoreSpec};
    use eke_model::units::Bytes;

    use super::*;

    #[test]
    fn notes_are_bounded_also_while_some_are_being_sent() {
        let store = Store::new(StoreSpec::for_cpus(Bytes::mib(64), 1)).unwrap();
        let version = FileVersion { file: 7, size: 1 << 30, times_ns: [1, 2, 3] };
        let offer = |block| Offer { ticket: store.ticket(Key::new(FileId(7), block)), version, sum: 0 };
        let offers = Offers::new(Bandwidth::new(1));
        let added = |from: u64| (from..from + 5000).filter(|block| offers.add(offer(*block))).count();
        assert_eq!(added(0), MOST);
        let mut taken = offers.take().unwrap();
        assert_eq!((taken.len(), added(5000)), (MOST, 0));
        taken.truncate(MOST - 3);
        offers.put_back(taken);
        assert_eq!(added(10_000), 3);
        let blocks: Vec<u64> = offers.take().unwrap().iter().map(|note| note.0.ticket.key().block).collect();
        assert_eq!((blocks[0], &blocks[MOST - 3..]), (0, &[10_000, 10_001, 10_002][..]));
    }
}
