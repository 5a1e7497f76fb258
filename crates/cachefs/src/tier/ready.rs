//! Must a read wait for the file below? To be asked by threads that must not.

use eke_cache_store::{FileId, Key, Store};

use super::Tier;
pub use super::flight::Word;

/// What a read would come to just now. A moment later it may be another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// All of it is held.
    Held,
    /// Somebody reads this block of it, and nothing else is missing.
    Flying(Key),
    /// It has to be read below.
    Missing,
}

impl Tier {
    /// How ready a read of these bytes is. Reads nothing, and waits for nobody.
    pub fn readiness(&self, file: FileId, offset: u64, len: usize) -> Readiness {
        let Some(store) = self.store.as_deref() else { return Readiness::Missing };
        let size = store.block_size() as u64;
        let blocks = offset / size..offset.saturating_add(len as u64).div_ceil(size);
        let mut ready = Readiness::Held;
        for key in blocks.map(|block| Key::new(file, block)) {
            if self.holds(store, key) {
            } else if self.flights.is_flying(key) {
                ready = Readiness::Flying(key);
            } else {
                return Readiness::Missing;
            }
        }
        ready
    }

    /// Has `word` called when nobody reads this block any more: at once, or by the thread that has read it.
    pub fn when_landed(&self, key: Key, word: Word) {
        self.counters.waits.add(1);
        self.flights.when_landed(key, word);
    }

    pub(super) fn holds(&self, store: &Store, key: Key) -> bool {
        store.contains(key) || self.recent.get(store, key).is_some()
    }
}
