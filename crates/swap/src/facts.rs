//! Facts about a machine that matter for compressed swap, as data.

use eke_model::sample::{SwapArea, ZramStat};
use eke_model::units::Bytes;
use serde::{Deserialize, Serialize};

use crate::measure::ratio::TABLE_BYTES;

/// Everything that the plan needs beside the measurements.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Facts {
    /// RAM whose pages can be swapped or dropped: all that the kernel manages, without [`Facts::never_swapped`].
    pub ram: Bytes,
    /// RAM that is never swapped: reserved as huge pages (hugetlb), or locked (`Unevictable`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub never_swapped: Bytes,
    /// Available RAM (`MemAvailable`) at the time of the probe.
    pub available: Bytes,
    /// The kernel's page size in bytes: 4 KiB, on some arm64 kernels 16 or 64. 0 stands for 4 KiB.
    #[serde(default)]
    pub page_bytes: u64,
    /// Online CPUs.
    pub cpus: usize,
    /// All swap areas, in the order of `/proc/swaps`.
    pub areas: Vec<SwapArea>,
    /// All areas but zram, with the disk of each.
    pub disk_areas: Vec<DiskArea>,
    /// The features of this kernel's zram.
    pub zram: ZramFacts,
    /// The zram devices that are set up, with their algorithm and fill.
    pub zram_in_use: Vec<ZramStat>,
    /// zswap's settings; `None` if the kernel lacks it.
    pub zswap: Option<ZswapFacts>,
    /// The memory groups of cgroup v1, where a group's own swappiness counts, not the machine's. Empty on cgroup v2.
    pub memory_groups_v1: Vec<GroupSwappiness>,
    /// The groups in use with a memory limit below the RAM that may swap, the largest limit first; of nested ones the outermost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limited_groups: Vec<LimitedGroup>,
    /// `vm.swappiness`, 0 to 200 (to 100 before Linux 5.8).
    pub swappiness: Option<u32>,
    /// `vm.page-cluster`, log2 pages.
    pub page_cluster: Option<u32>,
    /// `vm.overcommit_memory`: with 2 the kernel refuses allocations beyond a limit that counts swap (`CommitLimit`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overcommit_memory: Option<u32>,
    /// Are the home directories on a rotating disk, and the programs on another one?
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub homes_rotate: bool,
    /// Other programs that set up compressed swap.
    pub managers: Vec<Manager>,
    /// Other programs that set what eke sets, or do what a remedy does.
    #[serde(default)]
    pub others: Vec<Other>,
    /// The hibernation target; `None` if none is configured.
    pub hibernation: Option<Hibernation>,
    /// Does it run on its battery? `None` without a power supply in sysfs.
    pub on_battery: Option<bool>,
    /// Running user-space OOM killers, by name.
    pub oom_daemons: Vec<String>,
    /// Is the multi-generational LRU on (`lru_gen/enabled`)? `None`: the kernel has none (Linux 6.1, `CONFIG_LRU_GEN`).
    #[serde(default)]
    pub lru_gen: Option<bool>,
    /// `lru_gen/min_ttl_ms` (Linux 6.1, `CONFIG_LRU_GEN`): a working set of that age is not evicted, 0 is off.
    pub min_ttl_ms: Option<u32>,
    /// The file that shows that this is a container, whose swap is the host's; `None` on a host.
    pub container: Option<String>,
    /// What shows a kubelet that does not start while swap is on (`failSwapOn`); `None`: there is none, it allows swap, or a file cannot be read (`missing`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kubelet: Option<String>,
    /// Is this the Windows Subsystem for Linux, by the kernel's release?
    #[serde(default)]
    pub wsl: bool,
    /// The block device of `writeback_device`; `None` if none is set, or this machine does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writeback: Option<WritebackDevice>,
    /// The directory of `writeback_directory`; `None` if none is set, or this machine does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writeback_directory: Option<WritebackDirectory>,
    /// Effective uid 0 with `CAP_SYS_ADMIN`.
    pub is_root: bool,
    /// Missing features, each with its reason.
    pub missing: Vec<Missing>,
}

fn is_zero(bytes: &Bytes) -> bool {
    bytes.0 == 0
}

impl Facts {
    /// The kernel's page size in bytes.
    pub fn page(&self) -> u64 {
        if self.page_bytes == 0 { 4096 } else { self.page_bytes }
    }

    /// Where swap is set up instead, as the end of "this is ..."; `None` on a host.
    pub fn elsewhere(&self) -> Option<String> {
        if self.wsl {
            let wsl = "WSL, a virtual machine of Windows: its swap is set there, in .wslconfig ([wsl2] swap=), and eke changes nothing";
            return Some(wsl.to_owned());
        }
        let evidence = self.container.as_ref()?;
        Some(format!("a container ({evidence}): swap and settings belong to its host, run eke there"))
    }
}

/// A missing feature, or a failed measurement.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    /// Its name: `zram`, `file read latency`.
    pub what: String,
    /// The reason and the remedy, as a sentence.
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
    /// The whole block device of the partition, mapping, loop device or file: `sda`; of several the one that swapping harms most, or the slowest.
    /// `None` if unknown.
    pub device: Option<String>,
    /// The kind of that disk.
    pub kind: DiskKind,
    /// `queue/rotational` of the disk; meaningless for a virtual disk.
    pub rotational: Option<bool>,
    /// Does the machine hibernate to it?
    pub hibernation: bool,
}

/// The kind of a disk, as it matters for swapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DiskKind {
    /// It seeks.
    Rotating,
    /// SSD or NVMe.
    Solid,
    /// SD card, eMMC, USB stick, raw flash: it fails after few writes.
    WearsOut,
    /// Behind a network, or a volume of ZFS (`zd0`): swap on it can deadlock.
    Network,
    /// A virtual disk, or unknown.
    #[default]
    Unknown,
}

/// The features of this kernel's zram.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZramFacts {
    /// Does `/sys/class/zram-control` (Linux 4.2) exist, so that devices can be added and removed?
    pub control: bool,
    /// If not: can its module be loaded?
    pub loadable: bool,
    /// All devices by number, set up or not.
    pub devices: Vec<String>,
    /// The features of a device; `None` while no device exists.
    pub features: Option<ZramFeatures>,
    /// While no device lists them: the algorithms of the kernel's configuration, or those of most kernels if it cannot be read.
    #[serde(default)]
    pub configured: Vec<String>,
    /// Can this kernel's zram recompress, by its configuration (`CONFIG_ZRAM_MULTI_COMP`, Linux 6.2)? `None` if that cannot be read.
    #[serde(default)]
    pub multi_comp: Option<bool>,
    /// Can pages be marked idle by age (`CONFIG_ZRAM_TRACK_ENTRY_ACTIME`, Linux 6.8, before `..._MEMORY_TRACKING`)?
    /// `None` if the kernel's configuration cannot be read.
    pub idle_age: Option<bool>,
    /// The algorithms that it has compressed in hardware (before Linux 6.12).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hardware: Vec<Hardware>,
}

impl ZramFacts {
    /// Bytes of a device's table for each page of its size, stored or not. With a time for each page they are more; since Linux 7.0 that fits into the others.
    pub fn table_bytes(&self) -> f64 {
        if self.idle_age == Some(true) { TABLE_BYTES + 8.0 } else { TABLE_BYTES }
    }
}

/// An algorithm that the kernel has compressed in hardware, by `/proc/crypto`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hardware {
    /// The algorithm: `deflate`.
    pub algorithm: String,
    /// The driver: `deflate-iaa`.
    pub driver: String,
    /// Its module: `iaa_crypto`; `kernel` if it is built in.
    pub module: String,
    /// The priority by which the kernel prefers it to the same algorithm on the CPU.
    pub priority: u32,
}

impl Hardware {
    /// The name that says more: the module's, or the driver's if it is built in.
    pub fn name(&self) -> &str {
        if matches!(self.module.as_str(), "" | "kernel") { &self.driver } else { &self.module }
    }

    /// The name of what compresses `algorithm`; `None`: the CPU does.
    pub fn of<'a>(all: &'a [Self], algorithm: &str) -> Option<&'a str> {
        all.iter().find(|hardware| hardware.algorithm == algorithm).map(Self::name)
    }
}

/// The features of one zram device, by its files.
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

/// zswap's settings and available algorithms.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ZswapFacts {
    /// Is it on?
    pub enabled: bool,
    /// The algorithm of new pages.
    pub compressor: String,
    /// The largest pool, in percent of RAM.
    pub max_pool_percent: Option<u32>,
    /// `accept_threshold_percent` (Linux 5.6).
    pub accept_threshold_percent: Option<u32>,
    /// `shrinker_enabled` (Linux 6.8); `None` if the kernel lacks it.
    pub shrinker: Option<bool>,
    /// The allocator (Linux 3.17 to 6.17), if it is zsmalloc or zsmalloc can replace it; `None` since then: zsmalloc.
    pub zpool: Option<String>,
    /// Available algorithms: those in `/proc/crypto`, and modules and built-ins that the kernel loads on demand.
    pub compressors: Vec<String>,
    /// Those of them that it has compressed in hardware.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hardware: Vec<Hardware>,
}

/// One memory group of cgroup v1.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupSwappiness {
    /// Its path in the hierarchy; empty for the root group. It is the `target` of the knob `memory.swappiness`.
    pub group: String,
    /// Its `memory.swappiness`.
    pub swappiness: u32,
}

/// A control group with a memory limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitedGroup {
    /// Its path in the hierarchy.
    pub group: String,
    /// `memory.max` (cgroup v2) or `memory.limit_in_bytes` (v1).
    pub limit: Bytes,
    /// Do its compressed pages in zswap count towards the limit (`memory.zswap.current`: cgroup v2, Linux 5.19)? Those in zram never do.
    pub zswap_is_charged: bool,
}

/// Another program that sets up compressed swap.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Manager {
    /// Its name: `zram-generator`.
    pub name: String,
    /// The files that identify it.
    pub found: Vec<String>,
    /// Will it act at the next boot, by its program and its unit or configuration?
    pub active: bool,
    /// The zram devices that it owns, if known.
    pub devices: Vec<String>,
}

/// A program beside eke: tuned, preload, an OOM daemon. Or a file that sets a knob at boot: `/etc/sysctl.d/99-database.conf`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Other {
    /// Its name.
    pub name: String,
    /// Does it run, or start at boot?
    pub active: bool,
    /// What it does here: `profile balanced`, `vm.swappiness = 1`.
    pub does: String,
    /// The knobs of eke that it sets, too.
    pub sets: Vec<String>,
}

/// The hibernation target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hibernation {
    /// The file that configures it: `proc/cmdline`, `sys/power/resume`.
    pub source: String,
    /// The configured value: `UUID=...`, `/dev/sda2`, `8:3`.
    pub resume: String,
    /// The block device (a partition too) that it resolves to: `sda2`. `None` if this machine does not have it.
    pub device: Option<String>,
}

/// The block device that `writeback_device` names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WritebackDevice {
    /// As in the settings: `/dev/disk/by-uuid/...`.
    pub path: String,
    /// The kernel's name: `sdb1`.
    pub name: String,
    /// Has it partitions?
    pub is_partitioned: bool,
    /// What it holds by its signature: `an ext file system`. `None`: no known signature, or only root may read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<String>,
    /// Why pages cannot go there, as the end of a sentence: it is too small, or somebody else has mapped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
    /// If `path` is the kernel's name, which may be another device's after a boot: a name that is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasting: Option<String>,
    /// Has the kernel dm-crypt, loaded or as a module?
    #[serde(default)]
    pub may_encrypt: bool,
}

/// The directory that `writeback_directory` names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WritebackDirectory {
    /// As in the settings.
    pub path: String,
    /// The type of its file system, as in mountinfo: `ext4`.
    pub file_system: String,
    /// The file system's size.
    pub size: Bytes,
    /// What of it root's programs may still take.
    pub free: Bytes,
    /// Has the kernel dm-crypt, loaded or as a module?
    pub may_encrypt: bool,
}
