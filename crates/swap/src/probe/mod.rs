//! Reads the facts about a machine through a [`Root`]; changes nothing.
//!
//! # Layout
//! - `parse`: text to data
//! - `zram`: features of zram and zswap
//! - `disks`: the disk of an area, and its kind
//! - `hibernation`, `managers`, `others`, `surroundings`: other uses of swap and memory

pub(crate) mod disks;
mod hibernation;
mod managers;
mod others;
pub mod parse;
pub(crate) mod surroundings;
pub(crate) mod zram;

use eke_linux::parse as kernel_parse;
use eke_linux::{Root, read};

use crate::error::Result;
use crate::facts::{Facts, Missing};

/// The name of pressure-stall information among the missing features.
pub(crate) const PSI: &str = "pressure (PSI)";

/// Reads the facts. Missing features are in [`Facts::missing`], each with its reason.
///
/// # Errors
/// `/proc/meminfo` or `/proc/swaps` cannot be read.
pub fn probe(root: &Root) -> Result<Facts> {
    let memory = kernel_parse::meminfo::parse(&root.read("proc/meminfo")?);
    let areas = read::swaps(root)?;
    let hibernation = hibernation::target(root);
    let mut missing = Vec::new();
    if !root.exists("proc/swaps") {
        missing.push(Missing::new(
            "swap",
            "no /proc/swaps: this kernel was built without CONFIG_SWAP and cannot swap",
        ));
    }
    let oom_daemons = surroundings::oom_daemons(root);
    let min_ttl_ms = number(root, "sys/kernel/mm/lru_gen/min_ttl_ms");
    if min_ttl_ms.is_none() {
        missing.push(Missing::new(
            "min_ttl_ms",
            "no /sys/kernel/mm/lru_gen: the kernel is older than 6.1 or was built without CONFIG_LRU_GEN",
        ));
    }
    if !root.exists("proc/pressure/memory") {
        missing.push(Missing::new(
            PSI,
            "no /proc/pressure: the kernel was built without CONFIG_PSI (Linux 4.20), or psi=1 on its command line switches it on",
        ));
    }
    Ok(Facts {
        ram: memory.total,
        available: memory.available,
        page_bytes: root.page_size().bytes(),
        cpus: eke_linux::parse::cpu_list::count(
            &root.read("sys/devices/system/cpu/online").unwrap_or_default(),
        )
        .max(1),
        disk_areas: disks::areas(root, &areas, hibernation.as_ref()),
        areas,
        zram: zram::zram(root, &mut missing),
        zram_in_use: zram::in_use(root),
        zswap: zram::zswap(root, &mut missing),
        memory_groups_v1: surroundings::groups_v1(root),
        swappiness: number(root, "proc/sys/vm/swappiness"),
        page_cluster: number(root, "proc/sys/vm/page-cluster"),
        managers: managers::installed(root),
        hibernation,
        on_battery: read::on_battery(root),
        others: others::installed(root, &oom_daemons),
        oom_daemons,
        lru_gen: root
            .read("sys/kernel/mm/lru_gen/enabled")
            .ok()
            .and_then(|text| kernel_parse::lru_gen::is_on(&text)),
        min_ttl_ms,
        container: surroundings::container(root),
        wsl: surroundings::is_wsl(root),
        writeback: None,
        writeback_directory: None,
        is_root: parse::is_root(&root.read("proc/self/status").unwrap_or_default()),
        missing,
    })
}

fn number(root: &Root, file: &str) -> Option<u32> {
    root.read(file).ok()?.trim().parse().ok()
}
