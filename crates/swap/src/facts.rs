//! What a machine has and lacks for compressed swap, as data.

use eke_model::sample::{SwapArea, ZramStat};
use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

/// Everything that the plan must know beside the measurements.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Facts {
    /// RAM that the kernel manages.
    pub ram: Bytes,
    /// RAM that programs can still have (`MemAvailable`) at the time of the probe.
    pub available: Bytes,
    /// CPUs that are online.
    pub cpus: usize,
    /// All swap areas, in the order of `/proc/swaps`.
    pub areas: Vec<SwapArea>,
    /// Those of them that are not zram, and the disk below each.
    pub disk_areas: Vec<DiskArea>,
    /// What this kernel's zram can do.
    pub zram: ZramFacts,
    /// The zram devices that are set up, with their algorithm and fill.
    pub zram_in_use: Vec<ZramStat>,
    /// zswap's settings; `None` where the kernel lacks it.
    pub zswap: Option<ZswapFacts>,
    /// The memory groups of cgroup v1: there a group's own swappiness counts, not the machine's. Empty on cgroup v2.
    pub memory_groups_v1: Vec<GroupSwappiness>,
    /// `vm.swappiness`, 0 to 200 (to 100 before Linux 5.8).
    pub swappiness: Option<u32>,
    /// `vm.page-cluster`, log2 pages.
    pub page_cluster: Option<u32>,
    /// Other programs that set up compressed swap.
    pub managers: Vec<Manager>,
    /// Where the machine hibernates to; `None` where nothing says that it does.
    pub hibernation: Option<Hibernation>,
    /// Is it running on its battery? `None` where there is no power supply to ask.
    pub on_battery: Option<bool>,
    /// User-space OOM killers that run, by name.
    pub oom_daemons: Vec<String>,
    /// `lru_gen/min_ttl_ms` (Linux 6.1, `CONFIG_LRU_GEN`): a working set of that age is not evicted, 0 is off.
    pub min_ttl_ms: Option<u32>,
    /// What says that this is a container, whose swap is the host's; `None` if nothing does.
    pub container: Option<String>,
    /// Effective uid 0 with `CAP_SYS_ADMIN`.
    pub is_root: bool,
    /// What is not there, each with its reason.
    pub missing: Vec<Missing>,
}

/// Something that is not there or could not be measured.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    /// What, in a word or two: `zram`, `file read latency`.
    pub what: String,
    /// Why, and what would bring it, in a sentence.
    pub why: String,
}

impl Missing {
    /// `what` is missing because of `why`.
    pub fn new(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into() }
    }
}

/// A swap area that is not zram.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiskArea {
    /// The area as in `/proc/swaps`.
    pub path: String,
    /// The whole block device below the partition, mapping, loop device or file: `sda`. `None` if it cannot be told.
    pub device: Option<String>,
    /// What kind of disk that is.
    pub kind: DiskKind,
    /// The disk's own word (`queue/rotational`); a virtual disk's says nothing about what is below it.
    pub rotational: Option<bool>,
    /// Does the machine hibernate to it?
    pub hibernation: bool,
}

/// What swapping does to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DiskKind {
    /// It seeks.
    Rotating,
    /// SSD or NVMe.
    Solid,
    /// SD card, eMMC, USB stick, raw flash: few writes until it fails.
    WearsOut,
    /// Behind a network: swap on it can deadlock.
    Network,
    /// A virtual disk, or nothing told.
    #[default]
    Unknown,
}

/// What this kernel's zram can do.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZramFacts {
    /// Is there `/sys/class/zram-control` (Linux 4.2), so that devices can be made and removed?
    pub control: bool,
    /// If not: is there a module that would bring it?
    pub loadable: bool,
    /// The devices that exist, by number, set up or not.
    pub devices: Vec<String>,
    /// What a device shows; `None` while no device exists to ask.
    pub features: Option<ZramFeatures>,
    /// Can pages be marked idle by age (`CONFIG_ZRAM_TRACK_ENTRY_ACTIME`, Linux 6.8, before `..._MEMORY_TRACKING`)?
    /// `None` if the kernel's configuration cannot be read.
    pub idle_age: Option<bool>,
}

/// What one zram device offers, told by the files that it has.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZramFeatures {
    /// The algorithms, in the kernel's order.
    pub algorithms: Vec<String>,
    /// `algorithm_params` (Linux 6.12).
    pub algorithm_params: bool,
    /// `recomp_algorithm` (Linux 6.2, `CONFIG_ZRAM_MULTI_COMP`).
    pub recompression: bool,
    /// `backing_dev` (Linux 4.14, `CONFIG_ZRAM_WRITEBACK`).
    pub writeback: bool,
    /// `idle` (Linux 4.14).
    pub idle: bool,
    /// `max_comp_streams`: removed in Linux 6.15, ignored since 4.7.
    pub max_comp_streams: bool,
}

/// zswap's settings and what it could use.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZswapFacts {
    /// Is it on?
    pub enabled: bool,
    /// The algorithm of new pages.
    pub compressor: String,
    /// The most RAM that the pool takes, in percent.
    pub max_pool_percent: Option<u32>,
    /// `accept_threshold_percent` (Linux 5.6).
    pub accept_threshold_percent: Option<u32>,
    /// `shrinker_enabled` (Linux 6.8); `None` where the kernel lacks it.
    pub shrinker: Option<bool>,
    /// The allocator (Linux 3.17 to 6.17); `None` since then: zsmalloc.
    pub zpool: Option<String>,
    /// Algorithms that can be had: in `/proc/crypto` now, or as a module or built in that the kernel loads when asked.
    pub compressors: Vec<String>,
}

/// One memory group of cgroup v1.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupSwappiness {
    /// Its path below the hierarchy; empty for the root group. It is the `target` of the knob `memory.swappiness`.
    pub group: String,
    /// Its `memory.swappiness`.
    pub swappiness: u32,
}

/// Another program that sets up compressed swap.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Manager {
    /// Its name: `zram-generator`.
    pub name: String,
    /// The files that gave it away.
    pub found: Vec<String>,
    /// Will it act at the next boot: is its program, and its unit or configuration, there?
    pub active: bool,
    /// The zram devices that it owns, where that can be told.
    pub devices: Vec<String>,
}

/// Where the machine hibernates to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hibernation {
    /// What said so: `proc/cmdline`, `sys/power/resume`.
    pub source: String,
    /// Its words: `UUID=...`, `/dev/sda2`, `8:3`.
    pub resume: String,
    /// The block device (a partition too) that this resolves to: `sda2`. `None` if it is not here.
    pub device: Option<String>,
}
