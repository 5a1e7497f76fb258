//! A block that is read without its shard's lock.

use crate::block::checksum;
use crate::scratch::Scratch;
use crate::shard::{FoundBlock, Shard};
use crate::sync::{Mutex, lock};

/// A block that was found; its bytes stay in place until this is dropped.
pub struct Resident<'a>(pub(crate) Pin<'a>);

impl Resident<'_> {
    /// The block's decompressed length in bytes.
    pub fn block_len(&self) -> usize {
        self.0.found.raw_len
    }

    /// Requests the block: decompresses it into `out`, which has its length. False: its bytes had changed in memory, or
    /// there was no memory to decompress it. The store has dropped it then.
    pub fn read_into(self, scratch: &mut Scratch, out: &mut [u8]) -> bool {
        let is_whole = self.0.read_into(scratch, out);
        self.0.request(is_whole);
        is_whole
    }
}

impl std::fmt::Debug for Resident<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Resident").field(&self.0.found.key).finish()
    }
}

/// Keeps a block's bytes in place until it is dropped.
pub(crate) struct Pin<'a> {
    shard: &'a Mutex<Shard>,
    found: FoundBlock,
}

impl<'a> Pin<'a> {
    /// Finds and pins a block; `None`: it is not stored.
    pub fn find(shard: &'a Mutex<Shard>, key: crate::Key) -> Option<Self> {
        let found = lock(shard).find(key)?;
        Some(Self { shard, found })
    }

    /// Takes over a block that the shard has pinned.
    pub fn of(shard: &'a Mutex<Shard>, found: FoundBlock) -> Self {
        Self { shard, found }
    }

    pub fn block(&self) -> &FoundBlock {
        &self.found
    }

    /// Ends a request under one lock. A corrupted block is removed from the store.
    fn request(self, is_whole: bool) {
        let mut shard = lock(self.shard);
        shard.request(&self.found);
        let is_pinned = self.found.compressed.is_some();
        if !is_whole && is_pinned && shard.remove_slot(self.found.slot) {
            shard.counts.corrupted += 1;
        }
        if is_pinned {
            shard.unpin(self.found.slot);
        }
        drop(shard);
        // `request` has unpinned it.
        std::mem::forget(self);
    }

    /// Removes the block from the store.
    pub fn drop_corrupted(self) {
        let mut shard = lock(self.shard);
        if self.found.compressed.is_some() && shard.remove_slot(self.found.slot) {
            shard.counts.corrupted += 1;
        }
    }

    /// Decompresses the block into `out`, which has its length. False: the bytes have changed, or cannot be decompressed.
    pub fn read_into(&self, scratch: &mut Scratch, out: &mut [u8]) -> bool {
        let FoundBlock { key, form, raw_len, sum, .. } = self.found;
        let compressed = self.compressed();
        checksum(key, form, raw_len, compressed) == sum && scratch.decompress(form, compressed, out).is_ok()
    }

    /// Replaces the block's bytes by recompressed ones, if they save enough; see [`Shard::replace`].
    pub fn replace(self, compressed: Option<(&[u8], u64)>) -> bool {
        let replaced = lock(self.shard).replace(&self.found, compressed);
        // `replace` has unpinned it.
        std::mem::forget(self);
        replaced
    }

    #[expect(unsafe_code, reason = "the bytes are read without the lock")]
    pub fn compressed(&self) -> &[u8] {
        // SAFETY: the block is pinned as long as `self` lives, so the arena neither writes, moves nor releases its bytes.
        // The shard, which owns the mapping, outlives the borrow.
        self.found.compressed.map_or(&[], |bytes| unsafe { bytes.get() })
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        if self.found.compressed.is_some() {
            lock(self.shard).unpin(self.found.slot);
        }
    }
}
