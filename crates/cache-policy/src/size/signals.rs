//! What memory the machine and the own groups have.

use eke_model::units::Bytes;

/// The machine's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Machine {
    /// RAM (`MemTotal`).
    pub total: Bytes,
    /// What can be had without swapping (`MemAvailable`). What the store holds is used; the page cache is available.
    pub available: Bytes,
    /// Used by nothing (`MemFree`).
    pub free: Bytes,
    /// Left in all swap areas (`SwapFree`).
    pub swap_free: Bytes,
    /// Pages swapped in and out since the boot, zswap's included.
    pub swap_pages: u64,
}

/// A group with a limit that the own process is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its directory.
    pub path: String,
    /// The most that it may use: `memory.max`, or `memory.high` where that is less.
    pub limit: Bytes,
    /// What it uses and what cannot be dropped at once: all but clean file pages.
    pub used: Bytes,
}

impl Group {
    /// What is left below the limit.
    pub fn headroom(&self) -> Bytes {
        self.limit.saturating_sub(self.used)
    }
}

/// All that a decision is made from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signals {
    /// The machine.
    pub machine: Machine,
    /// The groups with a limit.
    pub groups: Vec<Group>,
}
