//! What the listener gets: evicted blocks, and which blocks are dropped.

use std::ops::Range;

use super::Shard;
use crate::evicted::CompressedBlock;
use crate::key::FileId;
use crate::policy::{Heat, Slot};

impl Shard {
    /// Hands a block to the listener before its memory is freed.
    pub(super) fn report_eviction(&self, slot: Slot, heat: Heat) {
        let Some(listener) = &self.listener else { return };
        let entry = &self.slots[slot];
        let bytes = entry.address.map(|address| self.arena.bytes(address, entry.compressed_len as usize));
        #[expect(unsafe_code, reason = "the bytes of a slab")]
        // SAFETY: the shard is borrowed, so nothing writes, moves or releases its memory, and the slice does not outlive this call.
        let compressed = bytes.map_or(&[][..], |bytes| unsafe { bytes.get() });
        let (key, form, raw_len, sum) = (entry.key, entry.form, entry.raw_len as usize, entry.sum);
        listener.evicted(&CompressedBlock { key, form, raw_len, sum, compressed }, heat);
    }

    /// Tells the listener that blocks are dropped.
    pub(super) fn report_drop(&self, file: FileId, blocks: &Range<u64>) {
        if let Some(listener) = &self.listener {
            listener.dropped(file, blocks);
        }
    }
}
