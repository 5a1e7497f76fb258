//! The compressed store: weights, and an order of eviction.

use std::collections::BTreeSet;

use eke_cache_store::FileId;
use eke_cache_store::policy::{S3Fifo, Slot};
use eke_model::units::Bytes;

use super::list::List;

/// How it evicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The product's own policy.
    S3Fifo,
    /// The least recently requested piece.
    Lru,
    /// The same, but first the oldest of those that the page cache has.
    ResidentFirst,
}

#[derive(Debug)]
enum Queue {
    S3Fifo(Box<S3Fifo<1>>),
    Lru(List),
    /// By the time of the last request: all, and those in the page cache.
    Resident {
        all: BTreeSet<(u64, u32)>,
        resident: BTreeSet<(u64, u32)>,
        last: Vec<u64>,
        now: u64,
    },
}

/// A store of pieces.
#[derive(Debug)]
pub struct Store {
    queue: Queue,
    capacity: u64,
    used: u64,
    /// Compressed bytes of each piece; 0: not stored.
    weights: Vec<u32>,
    evicted: Vec<u32>,
}

impl Store {
    /// An empty store for pieces below `pieces`. Without memory for its tables it stores nothing.
    pub fn new(order: Order, pieces: usize) -> Self {
        let queue = match order {
            Order::S3Fifo => {
                let mut policy = Box::new(S3Fifo::default());
                let enough = policy.reserve(pieces).is_ok();
                if enough { Queue::S3Fifo(policy) } else { Queue::Lru(List::new(pieces)) }
            }
            Order::Lru => Queue::Lru(List::new(pieces)),
            Order::ResidentFirst => Queue::Resident {
                all: BTreeSet::new(),
                resident: BTreeSet::new(),
                last: vec![0; pieces],
                now: 0,
            },
        };
        Self { queue, capacity: 0, used: 0, weights: vec![0; pieces], evicted: Vec::new() }
    }

    /// Its bytes.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// The most bytes.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The pieces that were evicted since the last call.
    pub fn take_evicted(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.evicted)
    }

    /// Whether it has the piece. Is no request.
    pub fn has(&self, piece: u32) -> bool {
        self.weights[piece as usize] > 0
    }

    /// Sets the most bytes, and evicts what is too much.
    pub fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        if let Queue::S3Fifo(policy) = &mut self.queue {
            policy.set_capacity(Bytes(capacity));
        }
        self.shrink(0);
    }

    /// Requests a piece. Returns whether it was there.
    pub fn request(&mut self, piece: u32) -> bool {
        if !self.has(piece) {
            return false;
        }
        match &mut self.queue {
            Queue::S3Fifo(policy) => policy.touch(Slot(piece)),
            Queue::Lru(list) => {
                list.remove(piece);
                list.push(piece);
            }
            Queue::Resident { all, resident, last, now } => {
                *now += 1;
                let before = (std::mem::replace(&mut last[piece as usize], *now), piece);
                all.remove(&before);
                all.insert((*now, piece));
                if resident.remove(&before) {
                    resident.insert((*now, piece));
                }
            }
        }
        true
    }

    /// Stores a piece that it does not have, in `weight` compressed bytes. Too large a piece is not stored.
    pub fn insert(&mut self, piece: u32, weight: u32) {
        let weight = weight.max(1);
        if u64::from(weight) > self.capacity {
            return;
        }
        self.shrink(u64::from(weight));
        self.used += u64::from(weight);
        self.weights[piece as usize] = weight;
        match &mut self.queue {
            Queue::S3Fifo(policy) => policy.admit(Slot(piece), FileId(piece.into()).hash(), weight),
            Queue::Lru(list) => list.push(piece),
            Queue::Resident { all, last, now, .. } => {
                *now += 1;
                last[piece as usize] = *now;
                all.insert((*now, piece));
            }
        }
    }

    /// Drops a piece, if it is there.
    pub fn remove(&mut self, piece: u32) {
        if self.has(piece) {
            match &mut self.queue {
                Queue::S3Fifo(policy) => policy.remove(Slot(piece)),
                Queue::Lru(list) => list.remove(piece),
                Queue::Resident { all, resident, last, .. } => {
                    all.remove(&(last[piece as usize], piece));
                    resident.remove(&(last[piece as usize], piece));
                }
            }
            self.forget(piece);
        }
    }

    /// Notes whether the page cache has a piece, if it is stored and that matters.
    pub fn note_resident(&mut self, piece: u32, is: bool) {
        let stored = self.has(piece);
        if let Queue::Resident { resident, last, .. } = &mut self.queue {
            let entry = (last[piece as usize], piece);
            if is && stored {
                resident.insert(entry)
            } else {
                resident.remove(&entry)
            };
        }
    }

    fn shrink(&mut self, room: u64) {
        while self.used + room > self.capacity {
            let victim = match &mut self.queue {
                Queue::S3Fifo(policy) => policy.evict().map(|slot| slot.0),
                Queue::Lru(list) => list.pop(),
                Queue::Resident { all, resident, .. } => {
                    let next = resident.pop_first().or_else(|| all.first().copied());
                    next.map(|entry| {
                        all.remove(&entry);
                        entry.1
                    })
                }
            };
            match victim {
                Some(piece) => {
                    self.forget(piece);
                    self.evicted.push(piece);
                }
                None => return,
            }
        }
    }

    fn forget(&mut self, piece: u32) {
        self.used -= u64::from(std::mem::take(&mut self.weights[piece as usize]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_keeps_the_limit_and_forgets_what_is_removed() {
        for order in [Order::S3Fifo, Order::Lru, Order::ResidentFirst] {
            let mut store = Store::new(order, 100);
            store.set_capacity(50);
            for piece in 0..100 {
                assert!(!store.request(piece));
                store.insert(piece, 5);
                store.note_resident(piece, piece % 3 == 0);
                assert!(store.used() <= 50, "{order:?}");
            }
            let kept: Vec<u32> = (0..100).filter(|piece| store.has(*piece)).collect();
            assert_eq!(kept.len(), 10, "{order:?}");
            store.remove(kept[0]);
            assert!(!store.request(kept[0]) && store.request(kept[1]) && store.used() == 45, "{order:?}");
            store.set_capacity(0);
            assert_eq!(store.used(), 0, "{order:?}");
        }
    }

    #[test]
    fn what_the_page_cache_has_goes_first() {
        let mut store = Store::new(Order::ResidentFirst, 10);
        store.set_capacity(3);
        (0..3).for_each(|piece| store.insert(piece, 1));
        store.note_resident(1, true);
        store.note_resident(2, true);
        store.note_resident(2, false);
        store.insert(3, 1);
        store.insert(4, 1);
        assert_eq!((0..5).filter(|p| store.has(*p)).collect::<Vec<_>>(), [2, 3, 4]);
    }
}
