//! A block copied out of the store as it is stored there, for another store.

use crate::block::{Form, checksum};
use crate::evicted::CompressedBlock;
use crate::key::Key;
use crate::pin::Pin;
use crate::store::Store;

/// A copy, and its buffer.
#[derive(Debug, Default)]
pub struct CopiedBlock {
    form: Option<Form>,
    raw_len: usize,
    bytes: Vec<u8>,
}

impl CopiedBlock {
    /// The block.
    pub fn block(&self, key: Key) -> CompressedBlock<'_> {
        CompressedBlock::new(key, self.form.unwrap_or(Form::Zero), self.raw_len, &self.bytes)
    }
}

impl<'a> CompressedBlock<'a> {
    /// A block of these bytes, with its checksum.
    pub fn new(key: Key, form: Form, raw_len: usize, compressed: &'a [u8]) -> Self {
        Self { key, form, raw_len, sum: checksum(key, form, raw_len, compressed), compressed }
    }
}

impl Store {
    /// Copies a block as it is stored. It is no request. False: it is not stored, has changed in memory, or there is no memory.
    pub fn copy_compressed(&self, key: Key, copy: &mut CopiedBlock) -> bool {
        let Some(pin) = Pin::find(self.shard(key), key) else { return false };
        let found = *pin.block();
        let bytes = pin.compressed();
        copy.bytes.clear();
        if copy.bytes.try_reserve(bytes.len()).is_err() {
            return false;
        }
        copy.bytes.extend_from_slice(bytes);
        (copy.form, copy.raw_len) = (Some(found.form), found.raw_len);
        copy.block(key).sum == found.sum
    }
}
