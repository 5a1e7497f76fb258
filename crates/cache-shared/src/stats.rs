//! Counters.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::frame::EngineState;

/// What the shared tier did since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// Blocks that came in time and were right.
    pub hits: u64,
    /// Blocks that the engine did not have.
    pub misses: u64,
    /// Blocks that did not come in time.
    pub late: u64,
    /// Blocks that could not be asked for: the other process or the engine failed.
    pub failed: u64,
    /// Blocks not asked for: the breaker was open.
    pub paused: u64,
    /// Blocks that were other ones, of other versions, or not as they were offered. They were dropped.
    pub refused: u64,
    /// Bytes of values that came.
    pub bytes_in: u64,
    /// Blocks sent to the engine.
    pub offered: u64,
    /// Their bytes.
    pub bytes_out: u64,
    /// Blocks not offered: too many waited, the bandwidth was used, or the engine did not take them.
    pub not_offered: u64,
    /// Parts of the engine that failed lately and are not asked, of [`crate::shared::Shared::parts`].
    pub open: u32,
    /// How the engine is.
    pub engine: EngineState,
}

/// The counters that threads update.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub hits: Count,
    pub misses: Count,
    pub late: Count,
    pub failed: Count,
    pub paused: Count,
    pub refused: Count,
    pub bytes_in: Count,
    pub offered: Count,
    pub bytes_out: Count,
    pub not_offered: Count,
}

/// A counter that only grows.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Counters {
    pub fn stats(&self, open: u32, engine: EngineState) -> Stats {
        Stats {
            hits: self.hits.get(),
            misses: self.misses.get(),
            late: self.late.get(),
            failed: self.failed.get(),
            paused: self.paused.get(),
            refused: self.refused.get(),
            bytes_in: self.bytes_in.get(),
            offered: self.offered.get(),
            bytes_out: self.bytes_out.get(),
            not_offered: self.not_offered.get(),
            open,
            engine,
        }
    }
}
