//! How a block that changed while it was being read or compressed is kept out.
//!
//! Between the moment a reader finds a block missing and the moment the store could take it lie a disk read and a
//! compression. Whoever changes the file meanwhile drops the block, finds nothing to drop, and the old content would come
//! in after it. So a miss gives out a *ticket* with the epochs of the block and of its file; a drop raises one of them
//! before it looks for the block; and the shard takes a block, under its lock, only by a ticket whose epochs are still
//! current. Either the drop's turn at the lock comes after the insertion, and it finds the block; or it comes before, and
//! the insertion sees the new epoch. The lock orders the two; the counters need no ordering of their own.
//!
//! Epochs are striped: blocks share counters by hash. A neighbour's drop can void a ticket in vain, which costs a later miss
//! and nothing else. 64 bits do not wrap.

use crate::Key;
use crate::error::OutOfMemory;
use crate::key::FileId;
use crate::sync::atomic::{AtomicU64, Ordering};

/// The leave to bring in one block with the content that the file has *after* the ticket was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the block comes in by it"]
pub struct Ticket {
    pub(crate) key: Key,
    block_epoch: u64,
    file_epoch: u64,
}

impl Ticket {
    /// The block it is for.
    pub const fn key(&self) -> Key {
        self.key
    }
}

/// The counters.
#[derive(Debug)]
pub(crate) struct Epochs {
    blocks: Box<[AtomicU64]>,
    files: Box<[AtomicU64]>,
}

impl Epochs {
    /// `stripes` counters for blocks and as many for files; at least one.
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

    /// Nothing was dropped since that could be this block. Asked under the block's shard's lock before it is put in.
    pub fn is_current(&self, ticket: &Ticket) -> bool {
        self.ticket(ticket.key) == *ticket
    }

    /// Voids the tickets of a block, and gives out one that the next call voids. Called before the block is looked for.
    ///
    /// The new epoch is the one that this call made, not one that is read after it: else two writers at once would both hold
    /// a current ticket, and the one whose write came first below could be the last to bring its block in.
    pub fn raise_block(&self, key: Key) -> Ticket {
        let block_epoch = self.block(key).fetch_add(1, Ordering::SeqCst) + 1;
        Ticket { key, block_epoch, file_epoch: self.file(key.file).load(Ordering::SeqCst) }
    }

    /// Voids the tickets of a file. Called before its blocks are looked for.
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
