//! Single facts of the machine.

use eke_model::sample::{Sample, SwapArea, ZramStat};
use eke_model::units::{Bytes, PageSize};
use rustix::time::{ClockId, clock_gettime};

use crate::areas;
use crate::error::Result;
use crate::parse::{self, process_stat, process_statm};
use crate::root::Root;
use crate::zram;

/// The unit of `bd_stat`: 4 KiB, whatever the page size (Documentation/admin-guide/blockdev/zram.rst).
const WRITTEN_BACK_UNIT: PageSize = PageSize::SMALLEST;

/// The monotonic clock in milliseconds.
pub fn monotonic_ms() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    u64::try_from(t.tv_sec).unwrap_or(0) * 1000 + u64::try_from(t.tv_nsec).unwrap_or(0) / 1_000_000
}

/// The kernel's release, as `uname -r` prints it; empty if it cannot be read.
pub fn kernel_release(root: &Root) -> String {
    root.read("proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// Is this process in a user namespace of its own, whose root may change nothing of the machine? The first one maps all users to themselves
/// (user_namespaces(7)).
pub fn is_in_user_namespace(root: &Root) -> bool {
    let map = root.read("proc/self/uid_map").unwrap_or_default();
    let numbers: Vec<&str> = map.split_whitespace().collect();
    !numbers.is_empty() && numbers != ["0", "0", "4294967295"]
}

/// The swap areas with their devices.
///
/// # Errors
/// The kernel's answer. A missing `/proc/swaps` (a kernel without swap) is no error: there are no areas.
pub fn swaps(root: &Root) -> Result<Vec<SwapArea>> {
    let text = root.read_if_exists("proc/swaps")?.unwrap_or_default();
    Ok(areas::identified(root, parse::swaps::parse(&text)))
}

/// The swap area on the device or file at `path`, if any.
///
/// # Errors
/// As in [`swaps`].
pub fn swap_at(root: &Root, path: &str) -> Result<Option<SwapArea>> {
    Ok(areas::find(root, swaps(root)?, path))
}

/// The zram devices that are set up.
///
/// # Errors
/// The kernel's answer when `/sys/block` cannot be listed.
pub fn zram_stats(root: &Root) -> Result<Vec<ZramStat>> {
    let all = zram::devices(root)?.into_iter().filter_map(|name| zram_stat(root, &name));
    Ok(all.filter(|z| z.disksize.0 > 0).collect())
}

/// Counters of one device; `None` if it is gone.
pub fn zram_stat(root: &Root, name: &str) -> Option<ZramStat> {
    let file = |f: &str| root.read(format!("sys/block/{name}/{f}")).ok();
    let mut stat = parse::zram::mm_stat(name, &file("mm_stat")?);
    stat.disksize = Bytes(file("disksize")?.trim().parse().unwrap_or(0));
    stat.algorithm = parse::zram::bracketed(&file("comp_algorithm")?).unwrap_or_default().to_owned();
    stat.written_back =
        file("bd_stat").and_then(|t| parse::zram::bd_count(&t)).map(|n| WRITTEN_BACK_UNIT.of(n));
    Some(stat)
}

/// The compressed swap in use: zram devices that are swap with all their algorithms, or zswap if it is enabled and has a
/// disk, or `none`.
pub fn swap_in_use(root: &Root, sample: &Sample) -> String {
    let devices: Vec<&str> = sample.swaps.iter().filter_map(SwapArea::zram_name).collect();
    let is_swap = |z: &&ZramStat| devices.contains(&z.name.as_str());
    let mut algorithms: Vec<&str> =
        sample.zram.iter().filter(is_swap).map(|z| z.algorithm.as_str()).collect();
    algorithms.sort_unstable();
    algorithms.dedup();
    let parameter = |name: &str| root.read(format!("sys/module/zswap/parameters/{name}")).unwrap_or_default();
    if !devices.is_empty() {
        format!("zram ({})", algorithms.join(", "))
    } else if !sample.swaps.is_empty() && parameter("enabled").trim() == "Y" {
        format!("zswap ({})", parameter("compressor").trim())
    } else {
        "none".to_owned()
    }
}

/// The pids of the processes whose files in `/proc` can be read without waiting for them, in order.
pub fn answering(root: &Root) -> Vec<u32> {
    pids(root).into_iter().filter(|pid| answers(root, *pid)).collect()
}

/// Whether the files of a process in `/proc` can be read without waiting for its execve(2) ([`process_statm::ProcessStatm::is_within_exec`]). One that has ended
/// answers, with an error.
pub fn answers(root: &Root, pid: u32) -> bool {
    let statm = process_statm::parse(&root.read(format!("proc/{pid}/statm")).unwrap_or_default());
    statm.is_none_or(|statm| !statm.is_within_exec(root.page_size()))
}

/// The pids of `kswapd0`, `kswapd1`, ...: one per NUMA node.
pub fn kswapd_pids(root: &Root) -> Vec<u32> {
    let is_named =
        |pid: &u32| root.read(format!("proc/{pid}/comm")).is_ok_and(|name| name.starts_with("kswapd"));
    let is_kswapd = |pid: &u32| {
        if !is_named(pid) || !answers(root, *pid) {
            return false;
        }
        let text = root.read(format!("proc/{pid}/stat")).unwrap_or_default();
        // A user's process may have that name, too, and its file would stay open.
        process_stat::parse(&text).is_some_and(|s| s.is_kernel_thread())
    };
    pids(root).into_iter().filter(is_kswapd).collect()
}

/// The pids of all processes, in order.
pub fn pids(root: &Root) -> Vec<u32> {
    let mut pids: Vec<u32> =
        root.list("proc").unwrap_or_default().iter().filter_map(|n| n.parse().ok()).collect();
    pids.sort_unstable();
    pids
}

/// The paths of all memory groups of cgroup v1 except the root; none on cgroup v2.
///
/// # Errors
/// The kernel's answer if a group cannot be listed.
pub fn groups_v1(root: &Root) -> Result<Vec<String>> {
    let mut groups = Vec::new();
    collect_groups(root, "", &mut groups)?;
    Ok(groups)
}

fn collect_groups(root: &Root, above: &str, groups: &mut Vec<String>) -> Result<()> {
    const TOP: &str = "sys/fs/cgroup/memory";
    for name in root.list(format!("{TOP}/{above}"))? {
        let group = if above.is_empty() { name } else { format!("{above}/{name}") };
        if root.exists(format!("{TOP}/{group}/memory.swappiness")) {
            groups.push(group.clone());
            collect_groups(root, &group, groups)?;
        }
    }
    Ok(())
}

/// Whether the machine runs on its own battery. A peripheral's battery (`scope` is `Device`) does not count. `None` if
/// no supply shows its state.
pub fn on_battery(root: &Root) -> Option<bool> {
    const DIR: &str = "sys/class/power_supply";
    let text = |supply: &str, file: &str| {
        root.read(format!("{DIR}/{supply}/{file}")).unwrap_or_default().trim().to_owned()
    };
    let supplies: Vec<String> =
        root.list(DIR).ok()?.into_iter().filter(|s| text(s, "scope") != "Device").collect();
    let plugged = supplies.iter().any(|s| text(s, "type") != "Battery" && text(s, "online") == "1");
    let discharging =
        supplies.iter().any(|s| text(s, "type") == "Battery" && text(s, "status") == "Discharging");
    (!supplies.is_empty()).then_some(discharging && !plugged)
}

#[cfg(test)]
mod tests {
    use eke_testkit::tree::put;

    use super::*;

    #[test]
    fn only_the_kernels_threads_are_kswapd() {
        let dir = tempfile::tempdir().unwrap();
        for (pid, name, flags) in
            [(90, "kswapd0", 0x0020_0840), (91, "kswapd1", 0x40), (92, "kthreadd", 0x0020_0000)]
        {
            let stat = format!("{pid} ({name}) S 2 0 0 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0");
            put(dir.path(), &format!("proc/{pid}/stat"), &stat);
            put(dir.path(), &format!("proc/{pid}/comm"), &format!("{name}\n"));
        }
        assert_eq!(kswapd_pids(&Root::at(dir.path())), [90]);
    }

    fn area(device: &str) -> SwapArea {
        SwapArea { device: Some(device.into()), ..SwapArea::default() }
    }

    #[test]
    fn zram_in_use_has_all_its_algorithms_once() {
        let root = Root::at("/nonexistent");
        let algorithms = ["lz4", "zstd", "lz4", "lzo"];
        let device = |(n, algorithm): (usize, &&str)| ZramStat {
            name: format!("zram{n}"),
            algorithm: (*algorithm).into(),
            ..ZramStat::default()
        };
        let swaps = ["zram0", "zram1", "zram2"].map(area).to_vec();
        let zram = algorithms.iter().enumerate().map(device).collect();
        let sample = Sample { swaps, zram, ..Sample::default() };
        assert_eq!(swap_in_use(&root, &sample), "zram (lz4, zstd)", "the fourth is no swap");
    }

    #[test]
    fn zswap_is_in_use_if_it_is_enabled_and_has_a_disk() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let sample = Sample { swaps: vec![area("vda2")], ..Sample::default() };
        let enabled = |value: &str| put(dir.path(), "sys/module/zswap/parameters/enabled", value);
        put(dir.path(), "sys/module/zswap/parameters/compressor", "lzo\n");
        assert_eq!(swap_in_use(&root, &sample), "none");
        enabled("N\n");
        assert_eq!(swap_in_use(&root, &sample), "none");
        enabled("Y\n");
        assert_eq!(swap_in_use(&root, &sample), "zswap (lzo)");
        assert_eq!(swap_in_use(&root, &Sample::default()), "none", "without an area behind it");
    }
}
