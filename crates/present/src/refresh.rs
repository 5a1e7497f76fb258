//! What one refresh brings.

use eke_model::snapshot::Snapshot;
use eke_model::units::{Bytes, Nanos};

/// The machine, the agent and what the user's own mounts say, at one time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Refresh {
    /// The agent's, or one's own reading of the machine (`agent` is `None`).
    pub snapshot: Snapshot,
    /// The compressed page caches that are mounted; the agent knows nothing of them.
    pub caches: Vec<Cache>,
    /// How the disks answered reads; `None` where nobody measured it.
    pub reads: Option<Reads>,
}

/// Latencies of reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reads {
    /// Half of them took at most this.
    pub p50: Nanos,
    /// 99 of 100 took at most this.
    pub p99: Nanos,
}

/// One mount.
#[derive(Debug, Clone, PartialEq)]
pub struct Cache {
    /// Where it is, fit for a terminal.
    pub place: String,
    /// Its figures, or why there are none.
    pub figures: Result<CacheStats, String>,
}

/// What a mount's store holds and answered. Counts begin anew with each worker.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CacheStats {
    /// Memory held.
    pub held: Bytes,
    /// The most that it may hold now.
    pub limit: Bytes,
    /// What is held, as it is in the files.
    pub raw: Bytes,
    /// Blocks that were requested and cached.
    pub hits: u64,
    /// Blocks that were requested and not cached.
    pub misses: u64,
    /// Blocks compressed by the fast codec.
    pub fast: u64,
    /// Blocks recompressed by the codec of a higher ratio.
    pub recompressed: u64,
    /// Blocks that are stored uncompressed, and those that are all zero.
    pub plain: u64,
    /// Bytes answered from memory.
    pub from_store: Bytes,
    /// Bytes read from the backing file system.
    pub from_backing: Bytes,
    /// Running cost of a block from memory.
    pub store_cost: Option<Nanos>,
    /// Running cost of a block from the backing file system.
    pub backing_cost: Option<Nanos>,
}
