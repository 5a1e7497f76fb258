//! Raw counters of one instant, as the kernel gives them; units are in the names.

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// All that one tick reads. A counter that the kernel lacks is `None`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Monotonic time of the sample.
    pub time_ms: u64,
    /// Page size of the kernel: 4 KiB, on some arm64 kernels 16 or 64. The counters below count such pages. 0 stands
    /// for 4 KiB.
    pub page_bytes: u64,
    /// `/proc/meminfo`.
    pub memory: Memory,
    /// `/proc/vmstat`.
    pub vm: VmCounters,
    /// `/proc/swaps`, in its order.
    pub swaps: Vec<SwapArea>,
    /// The zram devices that are set up.
    pub zram: Vec<ZramStat>,
    /// `/proc/pressure/memory`, where the kernel keeps it (Linux 4.20, `CONFIG_PSI`).
    pub pressure: Option<Pressure>,
    /// `/proc/pressure/io`, likewise.
    #[serde(default)]
    pub io_pressure: Option<Pressure>,
    /// `/proc/pressure/cpu`, likewise.
    #[serde(default)]
    pub cpu_pressure: Option<Pressure>,
    /// CPU time of kswapd and of the machine, in clock ticks.
    pub cpu: CpuTicks,
    /// What ZFS's cache (ARC) says that it can give back. The kernel's estimate of available memory lacks it.
    #[serde(default)]
    pub zfs_cache: Bytes,
}

/// `/proc/meminfo`, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Memory {
    /// RAM that the kernel manages, without reserved huge pages (hugetlb), which are never swapped.
    pub total: Bytes,
    /// Free RAM.
    pub free: Bytes,
    /// The kernel's estimate of what new programs can get without swapping (Linux 3.14).
    pub available: Bytes,
    /// Anonymous pages in RAM.
    pub anonymous: Bytes,
    /// Page cache without shared memory (`Cached` - `Shmem`) and with buffers.
    pub file_cache: Bytes,
    /// Shared memory and tmpfs in RAM (`Shmem`, Linux 2.6.32): page cache that only swap can take.
    #[serde(default)]
    pub shared: Bytes,
    /// What the kernel never takes from programs (`Unevictable`, Linux 2.6.28): locked memory and ramfs. It is part of the anonymous,
    /// file and shared pages above, and neither swapped nor compressed.
    #[serde(default)]
    pub unevictable: Bytes,
    /// Pages in RAM that swap still has, too (`SwapCached`). Most are read back, and among the anonymous pages above.
    #[serde(default)]
    pub swap_cached: Bytes,
    /// Size of all swap areas.
    pub swap_total: Bytes,
    /// Its unused part.
    pub swap_free: Bytes,
    /// RAM that zswap's pool takes (Linux 5.19).
    pub zswap_pool: Option<Bytes>,
    /// Uncompressed size of the pages in zswap (Linux 5.19).
    pub zswap_stored: Option<Bytes>,
}

/// Counters of `/proc/vmstat` since boot, in pages unless the name says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VmCounters {
    /// Pages swapped in.
    pub pswpin: u64,
    /// Pages swapped out.
    pub pswpout: u64,
    /// Pages loaded from zswap (Linux 5.10 or so; 0 if absent).
    pub zswpin: u64,
    /// Pages stored in zswap.
    pub zswpout: u64,
    /// Pages that zswap wrote to its disk (Linux 6.8).
    pub zswpwb: u64,
    /// Major page faults.
    pub pgmajfault: u64,
    /// Anonymous pages that were refaulted soon after eviction (Linux 5.9).
    pub refault_anon: u64,
    /// File pages that were refaulted soon after eviction.
    pub refault_file: u64,
    /// Anonymous pages taken by reclaim (Linux 5.10).
    pub pgsteal_anon: u64,
    /// Pages scanned to take memory from the whole machine (`pgscan_kswapd` and `pgscan_direct`); the kernel leaves those out that it
    /// scans for a group at its own limit (`shrink_inactive_list`, mm/vmscan.c).
    #[serde(default)]
    pub pgscan_global: u64,
    /// Processes that the out-of-memory killer ended (Linux 4.13).
    pub oom_kill: u64,
}

/// One line of `/proc/swaps`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwapArea {
    /// The device or file, with the kernel's `\040` escapes decoded.
    pub path: String,
    /// The kernel's name of its block device (`zram1`, `vda2`); `None` for a file, or if unknown. It identifies the
    /// area: the kernel prints the path relative to a mount, which may be gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// `partition` or `file`.
    pub kind: String,
    /// Its size.
    pub size: Bytes,
    /// Its used part.
    pub used: Bytes,
    /// Its priority; the highest is filled first.
    pub priority: i32,
}

impl SwapArea {
    /// Its name if it is a zram device.
    pub fn zram_name(&self) -> Option<&str> {
        let number = |name: &&str| name.strip_prefix("zram").is_some_and(|n| n.parse::<u32>().is_ok());
        self.device.as_deref().filter(number)
    }
}

/// `mm_stat` and related attributes of one zram device (Linux 4.1).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZramStat {
    /// `zram1`.
    pub name: String,
    /// Its declared size.
    pub disksize: Bytes,
    /// The algorithm in use.
    pub algorithm: String,
    /// Uncompressed size of the stored pages. Includes same-filled pages and those on the backing device
    /// (`pages_stored` in zram_drv.c counts both).
    pub orig_data: Bytes,
    /// Their compressed size.
    pub compr_data: Bytes,
    /// RAM that the allocator takes for them.
    pub mem_used: Bytes,
    /// The maximum of `mem_used`.
    pub mem_used_max: Bytes,
    /// Pages that repeat one word and take no memory.
    pub same_pages: u64,
    /// Pages that did not compress and are stored whole.
    pub huge_pages: u64,
    /// The part on the backing device (`bd_stat`, Linux 4.14, in units of 4 KiB), if there is one.
    pub written_back: Option<Bytes>,
}

/// Pressure-stall information of one resource: shares in percent, totals in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pressure {
    /// Share of the last 10 s in which some task waited.
    pub some_avg10: f64,
    /// Share of the last 60 s in which some task waited.
    pub some_avg60: f64,
    /// Time in which some task waited, since boot.
    pub some_total_us: u64,
    /// Share of the last 10 s in which all tasks waited. Undefined and 0 for the machine's CPU (Linux 5.13).
    pub full_avg10: f64,
    /// Share of the last 60 s in which all tasks waited.
    #[serde(default)]
    pub full_avg60: f64,
    /// Time in which all tasks waited, since boot.
    pub full_total_us: u64,
}

/// CPU time in clock ticks (`sysconf(_SC_CLK_TCK)`, in effect 100 a second).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CpuTicks {
    /// All CPUs, all states (`/proc/stat`).
    pub total: u64,
    /// Idle, or waiting for I/O.
    pub idle: u64,
    /// kswapd: reclaim, which includes most compression.
    pub kswapd: u64,
}
