//! What one refresh brings.

use eke_model::snapshot::Snapshot;
use eke_model::units::{Bytes, Nanos};

/// The state of the machine, the agent and the user's own mounts at one time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Refresh {
    /// The agent's snapshot; without an agent (`agent` is `None`) one that this process took.
    pub snapshot: Snapshot,
    /// The mounted compressed page caches, which the agent does not know.
    pub caches: Vec<Cache>,
    /// Read latencies of the disks; `None` if not measured.
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
    /// The mount point, with control characters escaped.
    pub place: String,
    /// Its statistics, or why there are none.
    pub stats: Result<CacheStats, String>,
}

/// The statistics of a mount's store. Counts start at 0 with each worker.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CacheStats {
    /// Memory in use.
    pub held: Bytes,
    /// The memory limit now.
    pub limit: Bytes,
    /// The size of the cached data before compression.
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
