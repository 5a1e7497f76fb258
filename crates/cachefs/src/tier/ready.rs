//! Must a read wait for the backing file? For threads that must not. What is found on the way is kept for the read itself.

use std::sync::Arc;

use eke_cache_store::{FileId, Key, Resident, Store, Ticket};

use super::Tier;
pub use super::flight::Word;

/// What a read would come to just now. A moment later it may be another.
#[derive(Debug)]
pub enum Readiness<'t> {
    /// All of it is resident: read it by [`Tier::read_prepared`].
    Resident(Prepared<'t>),
    /// Somebody reads this block of it, and nothing else is missing.
    Flying(Key),
    /// It has to be read from the backing file.
    Missing,
}

/// The blocks of a read, found once.
#[derive(Debug)]
pub struct Prepared<'t> {
    pub(super) file: FileId,
    pub(super) blocks: Vec<Block<'t>>,
}

/// A resident block.
#[derive(Debug)]
pub(super) struct Block<'t> {
    /// From before it was found: its bytes are at least as new, so that it may be kept by it.
    pub ticket: Ticket,
    pub bytes: Bytes<'t>,
}

/// Where its bytes are.
#[derive(Debug)]
pub(super) enum Bytes<'t> {
    /// Among the recent blocks: so many bytes.
    Recent(Arc<Vec<u8>>, usize),
    /// In the store, compressed.
    Stored(Resident<'t>),
}

impl Tier {
    /// How ready a read of these bytes is. Reads nothing, and waits for nobody.
    pub fn prepare(&self, file: FileId, offset: u64, len: usize) -> Readiness<'_> {
        let Some(store) = self.store.as_deref() else { return Readiness::Missing };
        let size = store.block_size() as u64;
        let numbers = offset / size..offset.saturating_add(len as u64).div_ceil(size);
        let (mut blocks, mut flying) = (Vec::new(), None);
        for key in numbers.map(|block| Key::new(file, block)) {
            if blocks.try_reserve(1).is_err() {
                return Readiness::Missing;
            }
            match self.find(store, key) {
                Ok(block) => blocks.push(block),
                Err(_) if self.flights.is_flying(key) => flying = Some(key),
                Err(_) => return Readiness::Missing,
            }
        }
        flying.map_or(Readiness::Resident(Prepared { file, blocks }), Readiness::Flying)
    }

    /// A block, if it is resident; if not, the ticket to bring it in by.
    pub(super) fn find<'t>(&'t self, store: &'t Store, key: Key) -> Result<Block<'t>, Ticket> {
        let ticket = store.ticket(key);
        let recent = self.recent.get(store, key).map(|(block, len)| Bytes::Recent(block, len));
        let bytes = recent.or_else(|| store.resident(key).map(Bytes::Stored));
        bytes.map(|bytes| Block { ticket, bytes }).ok_or(ticket)
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
