//! Checks whether there is room to swap an area off. swapoff(2) loads every page into RAM and charges the groups that
//! own them; without room, the OOM killer kills processes.

use eke_model::sample::{Memory, SwapArea};
use eke_model::units::{Bytes, MIB};

use eke_linux::error::Result;
use eke_linux::parse;
use eke_linux::read;
use eke_linux::root::Root;

/// Memory that must stay free after a swapoff, in addition to 2 % of RAM.
const MARGIN: Bytes = Bytes(8 * MIB);

/// The mode of `vm.overcommit_memory` that refuses what exceeds a limit.
const NEVER_OVERCOMMIT: &str = "2";

/// A memory-limited group with pages in swap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitedGroup {
    /// Its path below the hierarchy.
    pub name: String,
    /// Its memory limit.
    pub limit: Bytes,
    /// The part of its usage that cannot be dropped: all but inactive file pages.
    pub used: Bytes,
    /// Uncompressed size of its pages in swap.
    pub swapped: Bytes,
}

/// Why there is no room, in a sentence; `None` if there is.
pub fn shortage(
    memory: &Memory,
    areas: &[SwapArea],
    area: &SwapArea,
    held_in: Bytes,
    groups: &[LimitedGroup],
) -> Option<String> {
    machine_shortage(memory, areas, area, held_in)
        .or_else(|| groups.iter().find_map(|g| group_shortage(g, area)))
}

/// Checks the machine: the pages need their full size; the area's own pool is freed meanwhile; other areas take pages,
/// too.
fn machine_shortage(memory: &Memory, areas: &[SwapArea], area: &SwapArea, held_in: Bytes) -> Option<String> {
    let elsewhere: Bytes = areas
        .iter()
        .filter(|a| (&a.device, &a.path) != (&area.device, &area.path))
        .map(|a| a.size.saturating_sub(a.used))
        .sum();
    let margin = MARGIN + memory.total.scaled(0.02);
    let room = (memory.available + elsewhere + held_in).saturating_sub(margin);
    (area.used > room).then(|| {
        format!(
            "swapping {} off loads {}, but there is room for only {} ({} available, {} in other swap areas, {} of its pool, minus a reserve of {margin}); close some programs first",
            area.path, area.used, room, memory.available, elsewhere, held_in
        )
    })
}

/// Checks a group: its pages must fit within its limit. Other swap areas take pages only after the group was charged
/// for them.
fn group_shortage(group: &LimitedGroup, area: &SwapArea) -> Option<String> {
    let back = group.swapped.min(area.used);
    let room = group.limit.saturating_sub(group.used);
    (back > room).then(|| {
        format!(
            "swapping {} off could load {back} into the group {}, which has {room} left below its limit of {}; raise the limit or end its processes first",
            area.path, group.name, group.limit
        )
    })
}

/// With `vm.overcommit_memory=2`, swapoff(2) first books the area's whole size (`security_vm_enough_memory_mm`), while its size still counts as swap: it
/// fails with ENOMEM, however much RAM is free, if programs were promised more than the limit without the area.
fn commit_shortage(mode: &str, meminfo: &str, area: &SwapArea) -> Option<String> {
    let field = |key| parse::meminfo::field(meminfo, key);
    let (limit, promised) = (field("CommitLimit")?, field("Committed_AS")?);
    let without = limit.saturating_sub(area.size);
    (mode.trim() == NEVER_OVERCOMMIT && promised + area.size >= limit).then(|| {
        format!(
            "vm.overcommit_memory is 2, and programs were promised {promised}, but without {} only {without} would be allowed, so the kernel refuses to swap it off: close some programs, or switch that limit off meanwhile (`sysctl vm.overcommit_memory=0`, `eke down`, `sysctl vm.overcommit_memory=2`)",
            area.path
        )
    })
}

/// Why `area` cannot be swapped off safely now; `None` if it can.
///
/// # Errors
/// The kernel's answer if memory or groups cannot be read.
pub fn check(root: &Root, area: &SwapArea) -> Result<Option<String>> {
    let meminfo = root.read("proc/meminfo")?;
    let mode = root.read("proc/sys/vm/overcommit_memory").unwrap_or_default();
    if let Some(why) = commit_shortage(&mode, &meminfo, area) {
        return Ok(Some(why));
    }
    let memory = parse::meminfo::parse(&meminfo);
    let areas = read::swaps(root)?;
    let held_in =
        area.zram_name().and_then(|n| read::zram_stat(root, n)).map(|z| z.mem_used).unwrap_or_default();
    Ok(shortage(&memory, &areas, area, held_in, &limited_groups(root)?))
}

/// The limited groups with pages in swap, on cgroup v1 (`sys/fs/cgroup/memory`) or v2, which a hybrid machine has in `unified`.
///
/// # Errors
/// The kernel's answer if a hierarchy cannot be listed.
pub fn limited_groups(root: &Root) -> Result<Vec<LimitedGroup>> {
    let mut groups = Vec::new();
    if root.exists("sys/fs/cgroup/memory/memory.stat") {
        collect(root, "sys/fs/cgroup/memory", "", &V1, &mut groups)?;
        return Ok(groups);
    }
    // A hybrid machine has the memory controller there with `cgroup_no_v1=memory`.
    let unified = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];
    if let Some(top) = unified.iter().find(|top| root.exists(format!("{top}/cgroup.controllers"))) {
        collect(root, top, "", &V2, &mut groups)?;
    }
    Ok(groups)
}

struct Names {
    limit: &'static str,
    used: &'static str,
    swapped: fn(&Root, &str) -> Option<u64>,
    droppable: &'static str,
}

const V1: Names = Names {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    swapped: |root, dir| parse::keyed::count(&root.read(format!("{dir}/memory.stat")).ok()?, "total_swap"),
    droppable: "total_inactive_file",
};

const V2: Names = Names {
    limit: "memory.max",
    used: "memory.current",
    swapped: |root, dir| parse::groups::limit(&root.read(format!("{dir}/memory.swap.current")).ok()?),
    droppable: "inactive_file",
};

fn collect(root: &Root, top: &str, name: &str, names: &Names, out: &mut Vec<LimitedGroup>) -> Result<()> {
    let dir = if name.is_empty() { top.to_owned() } else { format!("{top}/{name}") };
    out.extend(group(root, &dir, name, names));
    for child in root.list(&dir)? {
        if root.path(format!("{dir}/{child}")).is_dir() {
            let child = if name.is_empty() { child } else { format!("{name}/{child}") };
            collect(root, top, &child, names, out)?;
        }
    }
    Ok(())
}

fn group(root: &Root, dir: &str, name: &str, names: &Names) -> Option<LimitedGroup> {
    let limit = parse::groups::limit(&root.read(format!("{dir}/{}", names.limit)).ok()?)?;
    let used: u64 = root.read(format!("{dir}/{}", names.used)).ok()?.trim().parse().ok()?;
    let stat = root.read(format!("{dir}/memory.stat")).ok()?;
    let droppable = parse::keyed::count(&stat, names.droppable).unwrap_or(0);
    let swapped = (names.swapped)(root, dir)?;
    let group = LimitedGroup {
        name: name.to_owned(),
        limit: Bytes(limit),
        used: Bytes(used.saturating_sub(droppable)),
        swapped: Bytes(swapped),
    };
    (swapped > 0).then_some(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn area(used_mib: u64) -> SwapArea {
        SwapArea {
            path: "/dev/zram1".into(),
            device: Some("zram1".into()),
            size: Bytes::mib(512),
            used: Bytes::mib(used_mib),
            ..SwapArea::default()
        }
    }

    fn memory(available_mib: u64) -> Memory {
        Memory { total: Bytes::mib(1000), available: Bytes::mib(available_mib), ..Memory::default() }
    }

    #[test]
    fn enough_memory_is_enough() {
        assert_eq!(shortage(&memory(300), &[area(200)], &area(200), Bytes(0), &[]), None);
    }

    #[test]
    fn a_full_area_and_little_memory_is_a_shortage() {
        let why = shortage(&memory(100), &[area(200)], &area(200), Bytes::mib(60), &[]).unwrap();
        assert!(why.contains("loads 200 MiB"), "{why}");
    }

    #[test]
    fn other_areas_make_room() {
        let disk = SwapArea { path: "/dev/vda2".into(), size: Bytes::mib(512), ..SwapArea::default() };
        assert_eq!(shortage(&memory(100), &[area(200), disk], &area(200), Bytes(0), &[]), None);
    }

    #[test]
    fn a_limit_of_promised_memory_must_hold_without_the_area() {
        let meminfo = |promised_mib: u64| {
            format!("CommitLimit: {} kB\nCommitted_AS: {} kB\n", 1012 << 10, promised_mib << 10)
        };
        let why = |mode, promised_mib| commit_shortage(mode, &meminfo(promised_mib), &area(0));
        assert_eq!([why("2\n", 499), why("0\n", 900), why("1\n", 900)], [const { None }; 3]);
        let refused = why("2\n", 500).unwrap();
        assert!(refused.contains("promised 500 MiB, but without /dev/zram1 only 500 MiB"), "{refused}");
        assert_eq!(commit_shortage("2\n", "MemTotal: 1 kB\n", &area(0)), None, "a kernel that does not say");
    }

    #[test]
    fn a_group_without_room_is_a_shortage_although_the_machine_has_room() {
        let g = LimitedGroup {
            name: "box".into(),
            limit: Bytes::mib(160),
            used: Bytes::mib(150),
            swapped: Bytes::mib(100),
        };
        let why = shortage(&memory(900), &[area(200)], &area(200), Bytes(0), &[g]).unwrap();
        assert!(why.contains("the group box"), "{why}");
    }
}
