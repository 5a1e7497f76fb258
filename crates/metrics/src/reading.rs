//! The input of the metrics.

use eke_model::sample::Memory;
use eke_model::snapshot::Snapshot;
use eke_model::units::{Bytes, Nanos};

/// The machine at one instant, as an unprivileged client sees it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reading {
    /// The agent's snapshot, or the client's own if no agent runs.
    pub snapshot: Snapshot,
    /// The compressed page caches whose details the client may read.
    pub caches: Vec<Cache>,
}

/// One mounted cache. Counts start at 0 with each worker.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cache {
    /// Where it is mounted.
    pub place: String,
    /// Its supervisor answers and has a worker.
    pub serving: bool,
    /// Memory in use by the store.
    pub memory: Bytes,
    /// The store's memory limit now.
    pub limit: Bytes,
    /// Memory for metadata of files.
    pub tables: Bytes,
    /// Size of the cached data before compression.
    pub raw: Bytes,
    /// Blocks that were requested and cached.
    pub hits: u64,
    /// Blocks that were requested and not cached.
    pub misses: u64,
    /// Bytes answered from the store.
    pub from_store: Bytes,
    /// Bytes read from the backing file system.
    pub from_backing: Bytes,
    /// Bytes read from the spill; `None` without one.
    pub from_spill: Option<Bytes>,
    /// Bytes that came from the shared tier; `None` without one.
    pub from_shared: Option<Bytes>,
    /// The shared tier itself; `None` without one.
    pub shared: Option<SharedTier>,
    /// Bytes written to the spill; `None` without one.
    pub spilled: Option<Bytes>,
    /// Bytes written to the backing file system.
    pub written: Bytes,
    /// Running cost of a block from the store; `None` before the first.
    pub store_cost: Option<Nanos>,
    /// Running cost of a block from the backing file system; `None` before the first.
    pub backing_cost: Option<Nanos>,
    /// Running cost of a block from the spill; `None` before the first.
    pub spill_cost: Option<Nanos>,
    /// Running cost of a block from the shared tier; `None` before the first.
    pub shared_cost: Option<Nanos>,
    /// Workers that were restarted.
    pub restarts: u64,
}

/// The tier that a farm shares, as one of its machines sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SharedTier {
    /// Requested blocks that came from there, and that were not there.
    pub hits: u64,
    /// See `hits`.
    pub misses: u64,
    /// Requested blocks that came too late, or for which the engine failed or was not asked after failures.
    pub failed: u64,
    /// Blocks with other bytes than were offered.
    pub refused: u64,
    /// Bytes over the wire, from the engine and to it.
    pub wire: [Bytes; 2],
    /// Parts of the engine that nobody asks now.
    pub open: u32,
    /// Connections that work.
    pub connected: u32,
    /// Memory that the engine uses.
    pub engine_memory: Bytes,
    /// Offered blocks that the engine did not store.
    pub not_stored: u64,
    /// Some node of the engine has no limit of memory.
    pub is_unlimited: bool,
    /// Some node of the engine evicts nothing when it is full.
    pub keeps_all: bool,
}

/// RAM that is neither anonymous nor shared nor compressed (`pool`) nor file cache nor free: the kernel's own, most of it.
pub fn other_ram(memory: &Memory, pool: Bytes) -> Bytes {
    let named = memory.anonymous + memory.shared + pool + memory.file_cache + memory.free;
    memory.total.saturating_sub(named)
}
