//! Evicted blocks that come back, as they were stored.

use crate::epoch::Ticket;
use crate::evicted::CompressedBlock;
use crate::policy::Entrance;
use crate::scratch::Scratch;
use crate::shard::Incoming;
use crate::store::{Admitted, Store};

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
