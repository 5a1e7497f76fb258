//! Reads the facts about a machine through a [`Root`]; changes nothing.
//!
//! # Layout
//! - `parse`: text to data
//! - `zram`: features of zram and zswap
//! - `disks`: the disk of an area, and its kind
//! - `signature`: what a block device holds
//! - `hibernation`, `managers`, `zram_generator`, `others`, `surroundings`: other uses of swap and memory
//! - `groups`: control groups, their swappiness and limits
//! - `kubelet`: a program that does not start while swap is on

pub(crate) mod disks;
mod groups;
mod hibernation;
mod kubelet;
mod managers;
mod others;
pub mod parse;
mod signature;
pub(crate) mod surroundings;
pub(crate) mod zram;
mod zram_generator;

use eke_linux::parse as kernel_parse;
use eke_linux::{Root, read};

use crate::error::Result;
use crate::facts::{Facts, Missing};

/// The name of pressure-stall information among the missing features.
pub(crate) const PSI: &str = "pressure (PSI)";
/// The name of kubelet's files among what is missing, if they cannot be read.
pub(crate) const KUBELET: &str = "kubelet";

/// Reads the facts. Missing features are in [`Facts::missing`], each with its reason.
///
/// # Errors
/// `/proc/meminfo` or `/proc/swaps` cannot be read.
pub fn probe(root: &Root) -> Result<Facts> {
    let meminfo = root.read("proc/meminfo")?;
    let memory = kernel_parse::meminfo::parse(&meminfo);
    let ram = memory.total.saturating_sub(memory.unevictable);
    let areas = read::swaps(root)?;
    let hibernation = hibernation::target(root, &areas);
    let oom_daemons = surroundings::oom_daemons(root);
    let min_ttl_ms = number(root, "sys/kernel/mm/lru_gen/min_ttl_ms");
    let mut missing = kernel_lacks(root, min_ttl_ms.is_some());
    Ok(Facts {
        ram,
        never_swapped: kernel_parse::meminfo::field(&meminfo, "MemTotal")
            .unwrap_or_default()
            .saturating_sub(ram),
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
        memory_groups_v1: groups::swappiness_v1(root),
        limited_groups: groups::limited(root, memory.total),
        swappiness: number(root, "proc/sys/vm/swappiness"),
        page_cluster: number(root, "proc/sys/vm/page-cluster"),
        overcommit_memory: number(root, "proc/sys/vm/overcommit_memory"),
        homes_rotate: disks::homes_rotate(root),
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
        kubelet: kubelet::refuses_swap(root, &mut missing),
        wsl: surroundings::is_wsl(root),
        writeback: None,
        writeback_directory: None,
        is_root: parse::is_root(&root.read("proc/self/status").unwrap_or_default()),
        missing,
    })
}

/// Features of the kernel beside zram and zswap.
fn kernel_lacks(root: &Root, has_min_ttl: bool) -> Vec<Missing> {
    let all = [
        (
            root.exists("proc/swaps"),
            "swap",
            "no /proc/swaps: this kernel was built without CONFIG_SWAP and cannot swap",
        ),
        (
            has_min_ttl,
            "MGLRU",
            "no /sys/kernel/mm/lru_gen: the kernel is older than 6.1 or was built without CONFIG_LRU_GEN",
        ),
        (
            has_pressure(root),
            PSI,
            "no /proc/pressure, or none that answers: the kernel was built without CONFIG_PSI (Linux 4.20), or psi=1 on its command line switches it on",
        ),
    ];
    let lacks = all.into_iter().filter(|(has, ..)| !has);
    lacks.map(|(_, what, why)| Missing::new(what, why)).collect()
}

/// Does the kernel say how long tasks wait for memory? Where `psi=` is off by default, as in RHEL 8, the file is there and a read of it fails.
pub fn has_pressure(root: &Root) -> bool {
    root.read("proc/pressure/memory").is_ok()
}

fn number(root: &Root, file: &str) -> Option<u32> {
    root.read(file).ok()?.trim().parse().ok()
}
