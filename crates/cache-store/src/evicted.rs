//! What becomes of blocks that leave: a listener gets them as they are stored, and can give them back.
//!
//! A listener that keeps blocks is a second store, and must lose a block whenever this one does. All three steps therefore happen under
//! the lock of the block's shard: an eviction, which moves the block to the listener; a drop, which removes it from both; and
//! [`Store::readmit`], which brings it back only if the listener still has it. So no block that was dropped comes back, whatever
//! the order of threads.

use std::fmt::Debug;
use std::ops::Range;

use crate::block::{Form, checksum};
use crate::epoch::Ticket;
use crate::key::{FileId, Key};
use crate::policy::{Entrance, Heat};
use crate::scratch::Scratch;
use crate::shard::Incoming;
use crate::store::{Admitted, Store};

/// A block in the form in which it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompressedBlock<'a> {
    /// Which block it is.
    pub key: Key,
    /// How its bytes are stored.
    pub form: Form,
    /// Its length in the file, in bytes.
    pub raw_len: usize,
    /// The checksum of all the rest.
    pub sum: u64,
    /// The stored bytes; none for [`Form::Zero`].
    pub compressed: &'a [u8],
}

impl CompressedBlock<'_> {
    /// True if the checksum is that of the key, the form, the length and the bytes.
    pub fn is_whole(&self) -> bool {
        checksum(self.key, self.form, self.raw_len, self.compressed) == self.sum
    }
}

/// Gets the blocks that leave the store. It is called under a shard's lock: it must be short, and must not call the store.
pub trait EvictionListener: Debug + Send + Sync {
    /// A block makes room for others. `heat` is how hot it was.
    fn evicted(&self, block: &CompressedBlock<'_>, heat: Heat);

    /// Blocks of a file have changed, or are about to, whether they are stored or were evicted before.
    fn dropped(&self, file: FileId, blocks: &Range<u64>);
}

impl Store {
    /// Decompresses a block that was evicted into `out`, which has its length. Check its sum before. False: it is not a block of that
    /// length, or there was no memory.
    pub fn decompress(&self, scratch: &mut Scratch, block: &CompressedBlock<'_>, out: &mut [u8]) -> bool {
        out.len() == block.raw_len && scratch.decompress(block.form, block.compressed, out).is_ok()
    }

    /// Stores a block again that was evicted, as it is. `is_kept` returns whether the listener still has it; it is called under the
    /// shard's lock.
    pub fn readmit(
        &self,
        ticket: Ticket,
        block: &CompressedBlock<'_>,
        is_kept: impl FnOnce() -> bool,
    ) -> Admitted {
        let CompressedBlock { key, form, raw_len, sum, compressed } = *block;
        if raw_len == 0 || raw_len > self.spec.block_size || compressed.len() > raw_len || key != ticket.key {
            return Admitted::BadLength;
        }
        let entrance = Entrance::Small;
        self.insert_if(&ticket, Incoming { key, form, raw_len, sum, compressed, entrance }, is_kept)
    }
}
