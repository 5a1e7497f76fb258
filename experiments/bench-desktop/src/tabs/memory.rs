//! The memory of processes, from `/proc` (proc_pid_smaps_rollup(5), proc_pid_status(5)).

use std::collections::BTreeMap;

use eke_linux::{Root, parse};
use eke_model::units::Bytes;

use crate::session::MemoryUse;

/// All descendants of the process `ancestor`.
pub fn descendants(root: &Root, ancestor: u32) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for pid in root.list("proc").unwrap_or_default().iter().filter_map(|name| name.parse::<u32>().ok()) {
        let parent = root
            .read(format!("proc/{pid}/stat"))
            .ok()
            .and_then(|text| parse::process_stat::parse(&text).map(|stat| stat.parent));
        children.entry(parent.unwrap_or(0)).or_default().push(pid);
    }
    let mut found = children.remove(&ancestor).unwrap_or_default();
    let mut next = 0;
    while let Some(pid) = found.get(next) {
        let more = children.remove(pid).unwrap_or_default();
        found.extend(more);
        next += 1;
    }
    found
}

/// The memory of these processes together. Anonymous memory and swap are proportional (`Pss_Anon`, Linux 5.9, and `SwapPss`):
/// memory that renderers share with the process that they are forked from counts once. File pages and shared memory count for
/// each process.
pub fn memory_use(root: &Root, pids: &[u32], documents: usize) -> MemoryUse {
    let mut total = MemoryUse { documents, ..MemoryUse::default() };
    for pid in pids {
        let text = |file: &str| root.read(format!("proc/{pid}/{file}")).unwrap_or_default();
        let (anonymous, swapped, file) = of_one(&text("smaps_rollup"), &text("status"));
        total.anonymous = total.anonymous + anonymous;
        total.swapped = total.swapped + swapped;
        total.file = total.file + file;
    }
    total
}

/// Anonymous, swapped and file memory of one process.
fn of_one(rollup: &str, status: &str) -> (Bytes, Bytes, Bytes) {
    let proportional = |key, fallback| {
        parse::meminfo::field(rollup, key)
            .or_else(|| parse::meminfo::field(status, fallback))
            .unwrap_or_default()
    };
    let of_status = |key| parse::meminfo::field(status, key).unwrap_or_default();
    let file = of_status("RssFile") + of_status("RssShmem");
    (proportional("Pss_Anon", "RssAnon"), proportional("SwapPss", "VmSwap"), file)
}

/// How many processes of this process's group the kernel has killed for lack of memory. Counts the whole machine where the
/// process is in no group (`memory.oom_control` and `memory.events`, Linux 4.13; `/proc/vmstat`).
pub fn oom_kills(root: &Root) -> u64 {
    let groups = root.read("proc/self/cgroup").unwrap_or_default();
    let of_group = counters(&groups)
        .into_iter()
        .find_map(|path| parse::keyed::count(&root.read(path).ok()?, "oom_kill"));
    of_group.or_else(|| parse::keyed::count(&root.read("proc/vmstat").ok()?, "oom_kill")).unwrap_or(0)
}

/// The files that may have the count, from the text of `/proc/self/cgroup`.
fn counters(groups: &str) -> Vec<String> {
    let own = |controller| parse::groups::own(groups, controller).into_iter();
    let v1 = own("memory").map(|path| format!("sys/fs/cgroup/memory{path}/memory.oom_control"));
    let v2 = own("")
        .flat_map(|path| ["", "/unified"].map(|top| format!("sys/fs/cgroup{top}{path}/memory.events")));
    v1.chain(v2).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_a_processs_files() {
        let rollup = "Rss: 9000 kB\nPss_Anon:  300 kB\nAnonymous: 500 kB\nSwap: 90 kB\nSwapPss: 80 kB\n";
        let status = "RssAnon:\t500 kB\nRssFile:\t20 kB\nRssShmem:\t4 kB\nVmSwap:\t90 kB\n";
        assert_eq!(of_one(rollup, status), (Bytes(300 << 10), Bytes(80 << 10), Bytes(24 << 10)));
        assert_eq!(of_one("", status), (Bytes(500 << 10), Bytes(90 << 10), Bytes(24 << 10)));
        assert_eq!(of_one("", ""), (Bytes(0), Bytes(0), Bytes(0)));
    }

    #[test]
    fn the_counting_group_is_found_in_both_versions() {
        let v1 = "5:cpu,memory:/eke/box-1-2\n0::/x\n";
        assert_eq!(counters(v1)[0], "sys/fs/cgroup/memory/eke/box-1-2/memory.oom_control");
        assert_eq!(counters("0::/a\n")[0], "sys/fs/cgroup/a/memory.events");
        assert_eq!(counters("nonsense"), Vec::<String>::new());
    }

    #[test]
    fn children_of_children_are_found() {
        let root = Root::host();
        let mut child = std::process::Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        eke_testkit::wait::wait_for("the shell's child", || descendants(&root, child.id()).len() == 1);
        let found = descendants(&root, std::process::id());
        let sleep = descendants(&root, child.id());
        let both = sleep.iter().chain([&child.id()]).all(|pid| found.contains(pid));
        for pid in &sleep {
            let _ = rustix::process::kill_process(
                rustix::process::Pid::from_raw(*pid as i32).unwrap(),
                rustix::process::Signal::KILL,
            );
        }
        let _ = child.kill();
        let _ = child.wait();
        assert!(both && sleep.len() == 1, "{found:?} {sleep:?}");
    }
}
