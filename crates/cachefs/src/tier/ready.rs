//! Whether a read must wait for the backing file, for threads that must not wait. The blocks found are kept for the read.

use std::sync::Arc;

use eke_cache_store::{FileId, Key, Resident, Store, Ticket};

use super::Tier;
pub use super::flight::Callback;

/// What a read would do now. A moment later it may differ.
#[derive(Debug)]
pub enum Readiness<'t> {
    /// All blocks are resident: read them by [`Tier::read_prepared`].
    Resident(Prepared<'t>),
    /// Another thread reads this block, and no other is missing.
    Flying(Key),
    /// It must be read from the backing file.
    Missing,
}

/// The blocks of a read, found once.
#[derive(Debug)]
pub struct Prepared<'t> {
    pub(super) file: FileId,
    pub(super) blocks: Vec<ResidentBlock<'t>>,
}

/// A resident block.
#[derive(Debug)]
pub(super) struct ResidentBlock<'t> {
    /// From before the lookup: the bytes are at least as new, so the block may be kept by it.
    pub ticket: Ticket,
    pub bytes: BlockBytes<'t>,
}

/// Where a resident block's bytes are.
#[derive(Debug)]
pub(super) enum BlockBytes<'t> {
    /// Among the recent blocks, with their length.
    Recent(Arc<Vec<u8>>, usize),
    /// In the store, compressed.
    Stored(Resident<'t>),
}

impl Tier {
    /// How ready a read of these bytes is. It reads nothing and waits for nobody.
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

    /// A resident block, or else the ticket to admit it by.
    pub(super) fn find<'t>(&'t self, store: &'t Store, key: Key) -> Result<ResidentBlock<'t>, Ticket> {
        let ticket = store.ticket(key);
        let recent = self.recent.get(store, key).map(|(block, len)| BlockBytes::Recent(block, len));
        let bytes = recent.or_else(|| store.resident(key).map(BlockBytes::Stored));
        bytes.map(|bytes| ResidentBlock { ticket, bytes }).ok_or(ticket)
    }

    /// Calls `callback` when nobody reads this block any more: at once, or on the thread that has read it.
    pub fn when_landed(&self, key: Key, callback: Callback) {
        self.counters.waits.add(1);
        self.flights.when_landed(key, callback);
    }

    pub(super) fn holds(&self, store: &Store, key: Key) -> bool {
        let spilled = || self.spill.as_ref().is_some_and(|spill| spill.contains(key));
        store.contains(key) || self.recent.get(store, key).is_some() || spilled()
    }
}
