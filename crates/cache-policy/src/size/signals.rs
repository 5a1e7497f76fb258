//! The memory of the machine and of the process's groups.

use eke_model::units::Bytes;

use super::reserve::{group_reserve, machine_reserve};

/// The machine's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Machine {
    /// RAM (`MemTotal`).
    pub total: Bytes,
    /// Available without swapping (`MemAvailable`). The store's memory is not; the page cache is.
    pub available: Bytes,
    /// Unused (`MemFree`).
    pub free: Bytes,
    /// Free in all swap areas (`SwapFree`).
    pub swap_free: Bytes,
    /// Pages swapped out since boot, including zswap. Those that come in say what was short earlier.
    pub swapped_out: u64,
    /// Read from disks since boot (`pgpgin`), but for what was swapped in, from zram too.
    pub read: Bytes,
    /// File pages that were read again soon after they had been dropped, since boot (`workingset_refault_file`).
    pub refaulted: Bytes,
}

/// A group with a limit that contains this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its directory.
    pub path: String,
    /// Its limit: the lower of `memory.max` and `memory.high`.
    pub limit: Bytes,
    /// Its memory that cannot be dropped at once: all but clean file pages.
    pub used: Bytes,
    /// All of its memory.
    pub usage: Bytes,
}

impl Machine {
    /// True if little is unused: a group's limit, a scan or an unmount cause refaults beside plenty of unused memory.
    pub fn is_full(&self) -> bool {
        self.free < Bytes(2 * machine_reserve(self.total).0)
    }
}

impl Group {
    /// What is left up to the limit.
    pub fn headroom(&self) -> Bytes {
        self.limit.saturating_sub(self.used)
    }
}

impl Signals {
    /// Unused memory of the machine, or of the group that has least.
    pub fn free(&self) -> Bytes {
        self.groups.iter().map(|g| g.limit.saturating_sub(g.usage)).fold(self.machine.free, Bytes::min)
    }

    /// True if the machine, or the group that has least, has so little unused memory that the kernel drops what it could use.
    pub fn is_full(&self) -> bool {
        let machine = self.machine.is_full();
        let full = |g: &Group| g.limit.saturating_sub(g.usage) < Bytes(2 * group_reserve(g.limit).0);
        machine || self.groups.iter().any(full)
    }

    /// Memory that is unused or holds clean file pages, of the same.
    pub fn available(&self) -> Bytes {
        self.groups.iter().map(Group::headroom).fold(self.machine.available, Bytes::min)
    }
}

/// The input of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signals {
    /// The machine.
    pub machine: Machine,
    /// The groups with a limit.
    pub groups: Vec<Group>,
}

/// What the cache itself uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OwnUse {
    /// The store's memory.
    pub held: Bytes,
    /// The memory beside it that counts too: tables of known files.
    pub beside: Bytes,
    /// Read from this machine's disks so far.
    pub read: Bytes,
    /// Served so far, from the store or the disk.
    pub served: Bytes,
}
