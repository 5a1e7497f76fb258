//! The kernel's page cache.

use super::list::List;

/// How it evicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eviction {
    /// Two lists as in mm/vmscan.c and mm/workingset.c (without MGLRU): a second request activates; the active list is a queue into the
    /// inactive one; what comes back before as much was evicted as the active list has is active at once.
    TwoLists,
    /// The least recently requested piece.
    Lru,
}

/// A page cache of pieces.
#[derive(Debug, Clone)]
pub struct PageCache {
    eviction: Eviction,
    inactive: List,
    active: List,
    active_bytes: u64,
    used: u64,
    /// Evicted bytes so far, and for each piece the count at its eviction; 0: never.
    evicted: u64,
    evicted_at: Vec<u64>,
}

impl PageCache {
    /// An empty one for pieces below `pieces`.
    pub fn new(eviction: Eviction, pieces: usize) -> Self {
        Self {
            eviction,
            inactive: List::new(pieces),
            active: List::new(pieces),
            active_bytes: 0,
            used: 0,
            evicted: 0,
            evicted_at: vec![0; pieces],
        }
    }

    /// Its bytes.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Whether it has the piece. Is no request.
    pub fn has(&self, piece: u32) -> bool {
        self.inactive.has(piece) || self.active.has(piece)
    }

    /// Whether it had the piece and evicted it.
    pub fn has_evicted(&self, piece: u32) -> bool {
        self.evicted_at[piece as usize] > 0
    }

    /// Requests a piece of `bytes`. Returns whether it was there.
    pub fn request(&mut self, piece: u32, bytes: u32) -> bool {
        if self.active.has(piece) {
            return true;
        }
        if !self.inactive.has(piece) {
            return false;
        }
        self.inactive.remove(piece);
        match self.eviction {
            Eviction::Lru => self.inactive.push(piece),
            Eviction::TwoLists => self.activate(piece, bytes),
        }
        true
    }

    /// Adds a piece that it does not have.
    pub fn insert(&mut self, piece: u32, bytes: u32) {
        self.used += u64::from(bytes);
        let gone = self.evicted_at[piece as usize];
        let is_back = gone > 0 && self.evicted - gone <= self.active_bytes;
        if self.eviction == Eviction::TwoLists && is_back {
            self.activate(piece, bytes);
        } else {
            self.inactive.push(piece);
        }
    }

    fn activate(&mut self, piece: u32, bytes: u32) {
        self.active_bytes += u64::from(bytes);
        self.active.push(piece);
    }

    /// Evicts the next piece. `bytes` are those of each piece.
    pub fn evict(&mut self, bytes: &[u32]) -> Option<u32> {
        // Up to a gigabyte of pages the kernel wants no more active than inactive ones (inactive_is_low).
        while self.active_bytes > self.used - self.active_bytes {
            let Some(piece) = self.active.pop() else { break };
            self.active_bytes -= u64::from(bytes[piece as usize]);
            self.inactive.push(piece);
        }
        let piece = self.inactive.pop()?;
        self.used -= u64::from(bytes[piece as usize]);
        self.evicted += u64::from(bytes[piece as usize]);
        self.evicted_at[piece as usize] = self.evicted;
        Some(piece)
    }

    /// Drops a piece, if it is there.
    pub fn drop_piece(&mut self, piece: u32, bytes: u32) {
        if self.active.has(piece) {
            self.active.remove(piece);
            self.active_bytes -= u64::from(bytes);
        } else if self.inactive.has(piece) {
            self.inactive.remove(piece);
        } else {
            return;
        }
        self.used -= u64::from(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(eviction: Eviction) -> (PageCache, Vec<u32>) {
        let mut cache = PageCache::new(eviction, 10);
        (0..4).for_each(|piece| cache.insert(piece, 1));
        assert!(cache.request(0, 1) && !cache.request(7, 1));
        (cache, vec![1; 10])
    }

    #[test]
    fn what_was_requested_twice_stays_longer_than_a_scan() {
        let (mut cache, bytes) = filled(Eviction::TwoLists);
        (4..9).for_each(|piece| cache.insert(piece, 1));
        let gone: Vec<u32> = (0..5).filter_map(|_| cache.evict(&bytes)).collect();
        assert_eq!(gone, [1, 2, 3, 4, 5]);
        cache.insert(5, 1);
        assert_eq!(cache.active_bytes, 2, "it came back at once");
        cache.drop_piece(0, 1);
        assert!(!cache.has(0) && cache.used() == 4);
    }

    #[test]
    fn lru_evicts_the_least_recent() {
        let (mut cache, bytes) = filled(Eviction::Lru);
        assert_eq!((cache.evict(&bytes), cache.used()), (Some(1), 3));
    }
}
