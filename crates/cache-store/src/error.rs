//! Errors. There are few, because a cache without memory just stores less.

use std::collections::TryReserveError;

/// There is no memory for the tables of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no memory for the tables of a cache thread: give the process more (RLIMIT_AS, the group's limit), or use fewer threads"
)]
pub struct OutOfMemory;

impl From<TryReserveError> for OutOfMemory {
    fn from(_: TryReserveError) -> Self {
        Self
    }
}

impl From<hashbrown::TryReserveError> for OutOfMemory {
    fn from(_: hashbrown::TryReserveError) -> Self {
        Self
    }
}

impl From<crate::arena::NoMemory> for OutOfMemory {
    fn from(_: crate::arena::NoMemory) -> Self {
        Self
    }
}

/// Why a store cannot be created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A block must fit into a slab and consist of whole pages.
    #[error("a block of {0} bytes: give a power of two between 4096 and 262144")]
    BlockSize(usize),
    /// More than a codec accepts.
    #[error("batches of {0} blocks: give 1 to 16")]
    Batch(usize),
    /// More than a stretch has.
    #[error("clusters of {0} blocks: give 1 to 64")]
    Together(usize),
    /// A count is zero.
    #[error("a store needs at least one {0}")]
    None(&'static str),
    /// There is no memory even for the empty tables.
    #[error("no memory for an empty store")]
    OutOfMemory(#[from] OutOfMemory),
}
