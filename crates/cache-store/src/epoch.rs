//! Tickets keep out a block that changed while it was read or compressed.
//!
//! Between a miss and the admission lie a disk read and a compression. If the file changes meanwhile, the drop finds no
//! block, and the old content would be admitted after it. So:
//!
//! 1. A miss returns a *ticket* with the epochs of the block and of its file.
//! 2. A drop raises one of the epochs before it searches for the block.
//! 3. The shard admits a block, under its lock, only by a ticket whose epochs are current.
//! 4. A drop of a range raises the epochs again when the blocks are gone. Who took a ticket in between may have found the block, and keep
//!    it elsewhere by that ticket.
//!
//! If the drop gets the lock after the admission, it finds the block. If it gets the lock before, the admission sees the new
//! epoch. The lock orders the two; the counters need no memory ordering of their own.
//!
//! Epochs are striped: blocks share counters by hash. A drop of another block can void a ticket, which costs one later miss.
//! A counter has 64 bits and does not wrap.

use crate::Key;
use crate::error::OutOfMemory;
use crate::key::FileId;
use crate::sync::atomic::{AtomicU64, Ordering};

/// Permission to admit one block, with content that was read *after* the ticket was issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the block comes in by it"]
pub struct Ticket {
    pub(crate) key: Key,
    block_epoch: u64,
    file_epoch: u64,
}

impl Ticket {
    /// The block's key.
    pub const fn key(&self) -> Key {
        self.key
    }
}

/// All epoch counters.
#[derive(Debug)]
pub(crate) struct Epochs {
    blocks: Box<[AtomicU64]>,
    files: Box<[AtomicU64]>,
}

impl Epochs {
    /// `stripes` counters for blocks and as many for files; at least one of each.
    pub fn new(stripes: usize) -> Result<Self, OutOfMemory> {
        Ok(Self { blocks: counters(stripes)?, files: counters(stripes)? })
    }

    pub fn ticket(&self, key: Key) -> Ticket {
        Ticket {
            key,
            block_epoch: self.block(key).load(Ordering::SeqCst),
            file_epoch: self.file(key.file).load(Ordering::SeqCst),
        }
    }

    /// True if no drop since then could have been for this block. Checked under the shard's lock before the block is
    /// inserted.
    pub fn is_current(&self, ticket: &Ticket) -> bool {
        self.ticket(ticket.key) == *ticket
    }

    /// Voids the tickets of a block and issues one that the next call voids. Called before the block is searched for.
    ///
    /// The new epoch is the one that this call made, not one read later. Otherwise two concurrent writers would both have a
    /// current ticket, and the one that wrote the file first could admit its block last.
    pub fn raise_block(&self, key: Key) -> Ticket {
        let block_epoch = self.block(key).fetch_add(1, Ordering::SeqCst) + 1;
        Ticket { key, block_epoch, file_epoch: self.file(key.file).load(Ordering::SeqCst) }
    }

    /// Voids the tickets of a file. Called before its blocks are searched for.
    pub fn raise_file(&self, file: FileId) {
        self.file(file).fetch_add(1, Ordering::SeqCst);
    }

    fn block(&self, key: Key) -> &AtomicU64 {
        &self.blocks[(key.hash() % self.blocks.len() as u64) as usize]
    }

    fn file(&self, file: FileId) -> &AtomicU64 {
        &self.files[(file.hash() % self.files.len() as u64) as usize]
    }
}

fn counters(stripes: usize) -> Result<Box<[AtomicU64]>, OutOfMemory> {
    let mut counters = Vec::new();
    counters.try_reserve_exact(stripes.max(1))?;
    counters.extend((0..stripes.max(1)).map(|_| AtomicU64::new(0)));
    Ok(counters.into_boxed_slice())
}
