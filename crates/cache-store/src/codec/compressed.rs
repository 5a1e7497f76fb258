//! The output of a batch.

use std::ops::Range;

use crate::error::OutOfMemory;

/// Compressed blocks, one after another in one reusable buffer.
#[derive(Debug, Default)]
pub struct Compressed {
    bytes: Vec<u8>,
    used: usize,
    spans: Vec<Option<Range<usize>>>,
}

impl Compressed {
    /// Room for `blocks` blocks of `bytes` compressed bytes together.
    ///
    /// # Errors
    /// There is no memory for it.
    pub fn with_room(bytes: usize, blocks: usize) -> Result<Self, OutOfMemory> {
        let mut compressed = Self::default();
        compressed.bytes.try_reserve_exact(bytes)?;
        compressed.bytes.resize(bytes, 0);
        compressed.spans.try_reserve_exact(blocks)?;
        Ok(compressed)
    }

    /// Removes the blocks and keeps the buffer.
    pub fn clear(&mut self) {
        self.used = 0;
        self.spans.clear();
    }

    /// Adds the block that `compress` writes into the free room. `compress` returns the bytes written, or `None` if it
    /// failed. It is not called if fewer than `bound` bytes are free.
    pub fn push_with(&mut self, bound: usize, compress: impl FnOnce(&mut [u8]) -> Option<usize>) {
        let room = self.bytes.get_mut(self.used..self.used + bound);
        let written = room.and_then(compress).filter(|&len| len <= bound);
        self.spans.push(written.map(|len| self.used..self.used + len));
        self.used += written.unwrap_or(0);
    }

    /// Adds a block that could not be compressed.
    pub fn skip(&mut self) {
        self.spans.push(None);
    }

    /// The compressed bytes of block `index` of the batch; `None` if it could not be compressed.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.bytes.get(self.spans.get(index)?.clone()?)
    }
}
