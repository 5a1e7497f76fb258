//! What a block is called.

use twox_hash::XxHash3_64;

/// A file, by whatever the caller numbers files with (an inode number, a node id). It must not come back for another
/// file before [`crate::Store::drop_file`] was called for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u64);

impl FileId {
    /// A well mixed hash of the file's number.
    pub fn hash(self) -> u64 {
        XxHash3_64::oneshot(&self.0.to_le_bytes())
    }
}

/// A block: the file and the block's number in it (offset / block size).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The file.
    pub file: FileId,
    /// Offset in the file, in blocks.
    pub block: u64,
}

impl Key {
    /// Block number `block` of `file`.
    pub const fn new(file: FileId, block: u64) -> Self {
        Self { file, block }
    }

    /// A well mixed hash: its low half chooses the place in a shard's tables; the shard is chosen by the high half of its stretch's.
    pub fn hash(self) -> u64 {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.file.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.block.to_le_bytes());
        XxHash3_64::oneshot(&bytes)
    }
}
