//! The keys of blocks and files.

use twox_hash::XxHash3_64;

/// A file's number, chosen by the caller (an inode number, a node id). It must not be reused for another file before
/// [`crate::Store::drop_file`] was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u64);

impl FileId {
    /// A well-mixed hash of the file's number.
    pub fn hash(self) -> u64 {
        XxHash3_64::oneshot(&self.0.to_le_bytes())
    }
}

/// A block: the file, and the block's number in it (offset / block size).
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

    /// A well-mixed hash. Its low half selects the entry in a shard's tables. The high half of the stretch's hash selects
    /// the shard.
    pub fn hash(self) -> u64 {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.file.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.block.to_le_bytes());
        XxHash3_64::oneshot(&bytes)
    }
}
