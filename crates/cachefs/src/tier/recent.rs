//! A few uncompressed blocks. Small neighbouring reads use them instead of decompressing the same block again, and threads
//! that waited for a block get it before it is compressed.
//!
//! A block is valid only while the ticket from before its read is current, so a drop from the store drops it here too.
//! Buffers are swapped, so no bytes are copied under the lock.

use std::sync::Arc;

use eke_cache_store::{Key, Store, Ticket};

use crate::sync::{Mutex, lock};

/// A buffer for one block; others may be reading it.
type Block = Arc<Vec<u8>>;

/// The blocks.
#[derive(Debug)]
pub(super) struct Recent {
    blocks: Mutex<RecentBlocks>,
}

#[derive(Debug, Default)]
struct RecentBlocks {
    slots: Vec<Slot>,
    /// Uses so far.
    uses: u64,
}

#[derive(Debug)]
struct Slot {
    ticket: Option<Ticket>,
    used: u64,
    len: usize,
    block: Block,
}

/// A thread's own buffer for the next block.
#[derive(Debug, Default)]
pub(super) struct Spare(Option<Block>);

impl Spare {
    /// Room for a block of `size` bytes. `None`: there is no memory.
    pub fn room(&mut self, size: usize) -> Option<&mut [u8]> {
        // The buffer swapped out of the recent blocks may still be read by another thread, or be that of a shorter block.
        if self.0.as_mut().is_none_or(|block| block.len() < size || Arc::get_mut(block).is_none()) {
            self.0 = buffer(size);
        }
        Arc::get_mut(self.0.as_mut()?)?.get_mut(..size)
    }

    /// The first `len` bytes that were put into it.
    pub fn bytes(&self, len: usize) -> &[u8] {
        self.0.as_ref().and_then(|block| block.get(..len)).unwrap_or_default()
    }
}

/// An empty buffer for a block of `size` bytes. `None`: there is no memory.
fn buffer(size: usize) -> Option<Block> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).ok()?;
    bytes.resize(size, 0);
    Some(Arc::new(bytes))
}

impl Recent {
    /// Room for `blocks` blocks of `size` bytes, or for as many as there is memory.
    pub fn new(blocks: usize, size: usize) -> Self {
        let slot = |block| Slot { ticket: None, used: 0, len: 0, block };
        let slots = (0..blocks).map_while(|_| buffer(size).map(slot)).collect();
        Self { blocks: Mutex::new(RecentBlocks { slots, uses: 0 }) }
    }

    /// The block and its length, if it is present and nothing has dropped it since it was read.
    pub fn get(&self, store: &Store, key: Key) -> Option<(Arc<Vec<u8>>, usize)> {
        let (ticket, block, len) = lock(&self.blocks).find(key)?;
        store.is_current(&ticket).then_some((block, len))
    }

    /// Takes the first `len` bytes of `spare`, read after `ticket` was issued. `spare` gets another buffer.
    pub fn put(&self, ticket: Ticket, len: usize, spare: &mut Spare) {
        let Some(block) = &mut spare.0 else { return };
        let mut blocks = lock(&self.blocks);
        blocks.uses += 1;
        let uses = blocks.uses;
        // Replaces this block's slot, so that there are no two; or else the least recently used one.
        let age = |slot: &Slot| if slot.holds(ticket.key()) { 0 } else { slot.used + 1 };
        if let Some(slot) = blocks.slots.iter_mut().min_by_key(|slot| age(slot)) {
            std::mem::swap(&mut slot.block, block);
            (slot.ticket, slot.len, slot.used) = (Some(ticket), len, uses);
        }
    }
}

impl RecentBlocks {
    fn find(&mut self, key: Key) -> Option<(Ticket, Block, usize)> {
        self.uses += 1;
        let slot = self.slots.iter_mut().find(|slot| slot.holds(key))?;
        slot.used = self.uses;
        Some((slot.ticket?, slot.block.clone(), slot.len))
    }
}

impl Slot {
    fn holds(&self, key: Key) -> bool {
        self.ticket.is_some_and(|ticket| ticket.key() == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_short_block_there_is_room_for_a_long_one() {
        let mut spare = Spare::default();
        assert_eq!(spare.room(100).map(|room| room.len()), Some(100));
        assert_eq!(spare.room(65_536).map(|room| room.len()), Some(65_536));
        assert_eq!(spare.room(100).map(|room| room.len()), Some(100));
    }
}
