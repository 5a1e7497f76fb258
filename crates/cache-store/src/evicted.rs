//! What becomes of blocks that leave: a listener gets them as they are stored, and can give them back.
//!
//! A listener that keeps blocks is a second store, and must lose a block whenever this one does. All three steps therefore happen under
//! the lock of the block's shard: an eviction, which moves the block to the listener; a drop, which removes it from both; and
//! [`crate::Store::readmit`], which brings it back only if the listener still has it. So no block that was dropped comes back, whatever
//! the order of threads.

use std::fmt::Debug;
use std::ops::Range;

use crate::block::{Form, checksum};
use crate::key::{FileId, Key};
use crate::policy::Heat;

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
