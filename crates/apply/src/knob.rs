//! The table of all settings that eke can change. `docs/knobs.md` is generated from it.

mod codec;
mod denied;

use std::fmt::Write as _;

pub use codec::Codec;
pub use denied::{DENIED, Denied, denied};

/// How a setting is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restore {
    /// By writing the old value.
    WriteOld,
    /// By removing the device or group that it belongs to.
    WithObject,
    /// Not at all: it starts an action or only limits one.
    Nothing,
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Knob {
    /// Its name in plans, the journal and the documentation.
    pub name: &'static str,
    /// Its path relative to the root; the device or group replaces a `*`.
    pub path: &'static str,
    /// How it is read.
    pub codec: Codec,
    /// The unit of its value.
    pub unit: &'static str,
    /// The first kernel that has it.
    pub since: &'static str,
    /// How it is restored.
    pub restore: Restore,
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// Settings that the kernel changes together with this one; they are restored with it.
    pub changes_with_it: &'static [&'static str],
    /// The setting of cgroup v1 groups that a new group inherits from this one.
    pub inherited_by: Option<&'static str>,
    /// Whether 0 means that another setting applies; then 0 cannot be written (`dirty_bytes` in
    /// Documentation/admin-guide/sysctl/vm.rst).
    pub yields_at_zero: bool,
    /// Another setting of the target, and its value with which the kernel switches this one off, but only before anybody wrote it. With that value
    /// eke restores 0.
    pub off_with: Option<(&'static str, &'static str)>,
    /// Whether the target may be empty: the root group of cgroup v1 has no name.
    pub at_root_too: bool,
    /// Whether its undo must wait until everything newer is undone.
    pub undone_last: bool,
}

/// Defaults of the columns that few rows set.
const COMMON: Knob = Knob {
    name: "",
    path: "",
    codec: Codec::Plain,
    unit: "",
    since: "",
    restore: Restore::Nothing,
    doc: "",
    changes_with_it: &[],
    inherited_by: None,
    yields_at_zero: false,
    off_with: None,
    at_root_too: false,
    undone_last: false,
};

/// The kernel resets these when the scheduler changes (`elevator_switch` in block/elevator.c); BFQ disables the
/// writeback throttle.
const OF_THE_SCHEDULER: &[&str] = &[
    "queue.nr_requests",
    "queue.wbt_lat_usec",
    "iosched.read_expire",
    "iosched.write_expire",
    "iosched.fifo_batch",
    "iosched.writes_starved",
    "iosched.read_lat_nsec",
    "iosched.write_lat_nsec",
    "iosched.low_latency",
    "iosched.slice_idle",
    "iosched.strict_guarantees",
];

macro_rules! knobs {
    ($($name:literal $path:literal $codec:ident $unit:literal $since:literal $restore:ident $doc:literal
        $({ $($column:ident: $value:expr),* })?;)*) => {
        /// All settings, by name.
        pub static KNOBS: &[Knob] = &[$(Knob {
            name: $name, path: $path, codec: Codec::$codec, unit: $unit, since: $since, restore: Restore::$restore, doc: $doc,
            $($($column: $value,)*)?
            ..COMMON
        },)*];
    };
}

knobs! {
    "vm.swappiness" "proc/sys/vm/swappiness" Plain "0 to 200" "2.6 (to 200: 5.8)" WriteOld
        "The relative cost of swapping a page in and reading a file page again: 100 means equal, more means swap is cheaper."
        { inherited_by: Some("memory.swappiness") };
    "vm.page-cluster" "proc/sys/vm/page-cluster" Plain "log2 pages" "2.4" WriteOld
        "How many pages are swapped in together, as a power of two: 0 means one, 3 means eight.";
    "memory.swappiness" "sys/fs/cgroup/memory/*/memory.swappiness" Plain "0 to 200" "2.6.28 (cgroup v1)" WriteOld
        "vm.swappiness of one group; on cgroup v1 a group uses its own value, not the machine's."
        { at_root_too: true };
    "lru_gen.enabled" "sys/kernel/mm/lru_gen/enabled" LruGen "bit mask" "6.1" WriteOld
        "The multi-generational LRU: reclaim finds cold pages by page tables, in generations, instead of by two lists.";
    "zswap.enabled" "sys/module/zswap/parameters/enabled" Bool "Y or N" "3.11" WriteOld
        "Keeps new pages compressed in RAM instead of writing them to the swap disk; switching it off leaves compressed pages in place."
        { undone_last: true };
    "zswap.compressor" "sys/module/zswap/parameters/compressor" Plain "name" "3.11" WriteOld
        "The algorithm for new pages; compressed pages keep theirs."
        { undone_last: true };
    "zswap.zpool" "sys/module/zswap/parameters/zpool" Plain "name" "3.17 to 6.17" WriteOld
        "The allocator of the pool: zsmalloc wastes least; since 6.18 it is the only one."
        { undone_last: true };
    "zswap.max_pool_percent" "sys/module/zswap/parameters/max_pool_percent" Plain "% of RAM" "3.11" WriteOld
        "The largest pool; beyond it the oldest pages are written to the disk (before Linux 6.2 with zsmalloc: the newest)."
        { undone_last: true };
    "zswap.accept_threshold_percent" "sys/module/zswap/parameters/accept_threshold_percent" Plain "% of the pool" "5.6" WriteOld
        "A pool that was full accepts new pages again below this share."
        { undone_last: true };
    "zswap.shrinker_enabled" "sys/module/zswap/parameters/shrinker_enabled" Bool "Y or N" "6.8" WriteOld
        "Writes cold pages to the disk before the pool is full."
        { undone_last: true };
    "memory.reclaim" "sys/fs/cgroup/*/memory.reclaim" WriteOnly "bytes swappiness=N" "6.9 (cgroup v2)" Nothing
        "Reclaims so many bytes of a group now, coldest pages first." { at_root_too: true };
    "node.reclaim" "sys/devices/system/node/*/reclaim" WriteOnly "bytes swappiness=N" "6.17" Nothing
        "Reclaims so many bytes of a node's memory now, coldest pages first.";
    "ksm.run" "sys/kernel/mm/ksm/run" Plain "0, 1 or 2" "2.6.32" WriteOld
        "Merges equal pages of programs that request it: 0 stops and leaves merged pages, 2 also splits them.";
    "ksm.pages_to_scan" "sys/kernel/mm/ksm/pages_to_scan" Plain "pages" "2.6.32" WriteOld
        "Pages scanned between two pauses.";
    "ksm.sleep_millisecs" "sys/kernel/mm/ksm/sleep_millisecs" Plain "ms" "2.6.32" WriteOld
        "The pause between two scans.";
    "zram.hot_add" "sys/class/zram-control/hot_add" WriteOnly "device number" "4.2" Nothing
        "Reading it adds a device and returns its number.";
    "zram.hot_remove" "sys/class/zram-control/hot_remove" WriteOnly "device number" "4.2" Nothing
        "Removes an unused device.";
    "zram.comp_algorithm" "sys/block/*/comp_algorithm" Bracketed "name" "3.15" WithObject
        "The device's algorithm; must be set before the disksize.";
    "zram.algorithm_params" "sys/block/*/algorithm_params" WriteOnly "key=value" "6.12" WithObject
        "Parameters of the algorithm, such as its level; must be set before the disksize.";
    "zram.recomp_algorithm" "sys/block/*/recomp_algorithm" WriteOnly "algo=NAME priority=N" "6.2" WithObject
        "A second, stronger algorithm for recompression; must be set before the disksize.";
    "zram.backing_dev" "sys/block/*/backing_dev" WriteOnly "path" "4.14" WithObject
        "A block device for written-back pages; must be set before the disksize.";
    "zram.writeback_limit_enable" "sys/block/*/writeback_limit_enable" Plain "0 or 1" "5.0" WithObject
        "Enforces writeback_limit.";
    "zram.writeback_limit" "sys/block/*/writeback_limit" WriteOnly "4 KiB units" "5.0" WithObject
        "The remaining writeback budget; counts down.";
    "zram.disksize" "sys/block/*/disksize" Plain "bytes" "2.6.37" WithObject
        "The declared size; setting it starts the device.";
    "zram.reset" "sys/block/*/reset" WriteOnly "1" "2.6.37" WithObject
        "Frees all pages of the device and returns it to its initial state.";
    "zram.compact" "sys/block/*/compact" WriteOnly "1" "4.1" Nothing
        "Compacts the pool, closing holes of freed pages.";
    "zram.idle" "sys/block/*/idle" WriteOnly "all or seconds" "4.14" Nothing
        "Marks pages that were idle for this time; the next use clears the mark.";
    "zram.recompress" "sys/block/*/recompress" WriteOnly "type=KIND priority=N" "6.2" Nothing
        "Recompresses marked or incompressible pages with the second algorithm.";
    "zram.writeback" "sys/block/*/writeback" WriteOnly "kind" "4.14" Nothing
        "Writes marked or incompressible pages to the backing device.";
    "loop.rotational" "sys/block/*/queue/rotational" Plain "0 or 1" "2.6.29" WithObject
        "Whether the kernel treats a loop device of eke's as a disk that seeks, for swap and readahead.";
    "fuse.abort" "sys/fs/fuse/connections/*/abort" WriteOnly "1" "2.6.24" WithObject
        "Aborts a FUSE connection of eke's: all its requests then fail.";
    "process.oom_score_adj" "proc/self/oom_score_adj" Plain "-1000 to 1000" "2.6.36" WithObject
        "How likely the OOM killer chooses this process: the agent never, its children like any other process.";
    "bdi.read_ahead_kb" "sys/class/bdi/*/read_ahead_kb" Plain "KiB" "2.6.29" WithObject
        "Readahead of an eke-cache mount for sequential reads.";
    "group.memory.max" "sys/fs/cgroup/*/memory.max" Plain "bytes or max" "4.5 (cgroup v2)" WithObject
        "The memory limit of a group that eke created.";
    "group.memory.limit_in_bytes" "sys/fs/cgroup/memory/*/memory.limit_in_bytes" WriteOnly "bytes" "2.6.25 (cgroup v1)" WithObject
        "The memory limit of a group that eke created; the kernel rounds it down to pages.";
    "group.v2.cgroup.procs" "sys/fs/cgroup/*/cgroup.procs" WriteOnly "process" "4.5 (cgroup v2)" WithObject
        "Moves a process into a group that eke created.";
    "group.v1.cgroup.procs" "sys/fs/cgroup/memory/*/cgroup.procs" WriteOnly "process" "2.6.33 (cgroup v1)" WithObject
        "Moves a process into a group that eke created.";
    "group.unified.cgroup.procs" "sys/fs/cgroup/unified/*/cgroup.procs" WriteOnly "process" "4.5 (hybrid)" WithObject
        "Moves a process into the twin of its group, for the pressure-stall information that cgroup v1 lacks.";
    "group.subtree_control" "sys/fs/cgroup/*/cgroup.subtree_control" WriteOnly "+controller" "4.5 (cgroup v2)" WithObject
        "Enables a controller for the children of a group that eke created.";
    "group.cgroup.kill" "sys/fs/cgroup/*/cgroup.kill" WriteOnly "1" "5.14 (cgroup v2)" Nothing
        "Kills every process of a group that eke created.";
    "queue.scheduler" "sys/block/*/queue/scheduler" Bracketed "name" "2.6.10" WriteOld
        "The I/O scheduler of a disk: none, mq-deadline, kyber or bfq; a change first drains the queue, and resets nr_requests."
        { changes_with_it: OF_THE_SCHEDULER };
    "queue.nr_requests" "sys/block/*/queue/nr_requests" Plain "requests" "2.6.10" WriteOld
        "Most queued requests of a disk, of reads and of writes each.";
    "queue.max_sectors_kb" "sys/block/*/queue/max_sectors_kb" Plain "KiB" "2.6.10" WriteOld
        "The largest request: a read waits for the request in flight, so large writes delay reads on a slow disk.";
    "queue.wbt_lat_usec" "sys/block/*/queue/wbt_lat_usec" Plain "µs, 0 off" "4.10" WriteOld
        "Throttles writeback while reads take longer than this; the restored value no longer counts as the kernel's default, so a later switch to BFQ leaves it on."
        { off_with: Some(("queue.scheduler", "bfq")) };
    "iosched.read_expire" "sys/block/*/queue/iosched/read_expire" Plain "ms" "2.6.10 (mq-deadline)" WriteOld
        "A read that waited this long goes first.";
    "iosched.write_expire" "sys/block/*/queue/iosched/write_expire" Plain "ms" "2.6.10 (mq-deadline)" WriteOld
        "A write that waited this long goes first.";
    "iosched.fifo_batch" "sys/block/*/queue/iosched/fifo_batch" Plain "requests" "2.6.10 (mq-deadline)" WriteOld
        "Requests of one direction sent to the disk in a row.";
    "iosched.writes_starved" "sys/block/*/queue/iosched/writes_starved" Plain "batches" "2.6.10 (mq-deadline)" WriteOld
        "Batches of reads before one batch of writes.";
    "iosched.read_lat_nsec" "sys/block/*/queue/iosched/read_lat_nsec" Plain "ns" "4.12 (kyber)" WriteOld
        "The target latency of reads; other requests are throttled for it.";
    "iosched.write_lat_nsec" "sys/block/*/queue/iosched/write_lat_nsec" Plain "ns" "4.12 (kyber)" WriteOld
        "The target latency of synchronous writes.";
    "iosched.low_latency" "sys/block/*/queue/iosched/low_latency" Plain "0 or 1" "4.12 (bfq)" WriteOld
        "Prefers programs that seem interactive.";
    "iosched.slice_idle" "sys/block/*/queue/iosched/slice_idle" Plain "ms" "4.12 (bfq)" WriteOld
        "How long the disk stays idle for the next request of the same program.";
    "iosched.strict_guarantees" "sys/block/*/queue/iosched/strict_guarantees" Plain "0 or 1" "4.12 (bfq)" WriteOld
        "Sends one request at a time, for exact shares.";
    "zfs.async_write_max_active" "sys/module/zfs/parameters/zfs_vdev_async_write_max_active" Plain "requests" "OpenZFS 0.6.4" WriteOld
        "Most asynchronous writes in flight per disk of each pool; no effect on disks for which OpenZFS does not queue (scheduler=auto, after 2.4).";
    "zfs.async_write_min_active" "sys/module/zfs/parameters/zfs_vdev_async_write_min_active" Plain "requests" "OpenZFS 0.6.4" WriteOld
        "The same while little data is dirty; at most async_write_max_active.";
    "vm.dirty_bytes" "proc/sys/vm/dirty_bytes" Plain "bytes" "2.6.29" WriteOld
        "Above this amount of dirty data, writers must write back themselves; 0 while vm.dirty_ratio applies, which is restored with it."
        { yields_at_zero: true, changes_with_it: &["vm.dirty_ratio"] };
    "vm.dirty_background_bytes" "proc/sys/vm/dirty_background_bytes" Plain "bytes" "2.6.29" WriteOld
        "Above this amount of dirty data, background writeback starts; 0 while vm.dirty_background_ratio applies, which is restored with it."
        { yields_at_zero: true, changes_with_it: &["vm.dirty_background_ratio"] };
    "vm.dirty_ratio" "proc/sys/vm/dirty_ratio" Plain "%" "2.6" WriteOld
        "vm.dirty_bytes as a share of available memory; 0 while vm.dirty_bytes applies."
        { yields_at_zero: true, changes_with_it: &["vm.dirty_bytes"] };
    "vm.dirty_background_ratio" "proc/sys/vm/dirty_background_ratio" Plain "%" "2.6" WriteOld
        "vm.dirty_background_bytes as a share of available memory; 0 while vm.dirty_background_bytes applies."
        { yields_at_zero: true, changes_with_it: &["vm.dirty_background_bytes"] };
    "io.latency" "sys/fs/cgroup/*/io.latency" LatencyOfDisk "MAJOR:MINOR target=µs" "4.19 (cgroup v2)" WriteOld
        "The target latency of a group's requests; groups with a higher target or none are throttled for it.";
    "io.cost.qos" "sys/fs/cgroup/io.cost.qos" QosOfDisk "MAJOR:MINOR enable=1 ..." "5.4 (cgroup v2)" WriteOld
        "Divides a disk among groups by the cost of their requests, within these latencies.";
    "io.cost.model" "sys/fs/cgroup/io.cost.model" ModelOfDisk "MAJOR:MINOR ctrl=user ..." "5.4 (cgroup v2)" WriteOld
        "The cost model of a disk's requests.";
    "group.cgroup.freeze" "sys/fs/cgroup/*/cgroup.freeze" Plain "0 or 1" "5.2 (cgroup v2)" WithObject
        "Freezes a group that eke created while its limit on cgroup v1 is lowered.";
    "unit.cgroup.freeze" "sys/fs/cgroup/*/cgroup.freeze" Plain "0 or 1" "5.2 (cgroup v2)" WriteOld
        "Freezes the group that took the memory, for seconds, so that the machine recovers.";
    "unit.memory.high" "sys/fs/cgroup/*/memory.high" Plain "bytes or max" "4.5 (cgroup v2)" WriteOld
        "Slows the group that takes the memory: above this it must reclaim its own pages first.";
    "group.memory.swap.max" "sys/fs/cgroup/*/memory.swap.max" Plain "bytes or max" "4.5 (cgroup v2)" WithObject
        "The swap limit of a group that eke created; 0 for an experiment without swap.";
    "group.memory.memsw.limit_in_bytes" "sys/fs/cgroup/memory/*/memory.memsw.limit_in_bytes" WriteOnly "bytes" "2.6.34 (cgroup v1)" WithObject
        "The limit of memory and swap together of a group that eke created; equal to its memory limit for an experiment without swap.";
    "group.cpu.cfs_period_us" "sys/fs/cgroup/cpu/*/cpu.cfs_period_us" Plain "µs" "3.2 (cgroup v1)" WithObject
        "The period of a CPU quota, for the small CPU of an experiment.";
    "group.cpu.cfs_quota_us" "sys/fs/cgroup/cpu/*/cpu.cfs_quota_us" Plain "µs" "3.2 (cgroup v1)" WithObject
        "The CPU time per period, for the small CPU of an experiment.";
    "group.cpu.max" "sys/fs/cgroup/*/cpu.max" Plain "µs of µs" "4.15 (cgroup v2)" WithObject
        "CPU quota and period on cgroup v2.";
    "cgroup.subtree_control" "sys/fs/cgroup/cgroup.subtree_control" WriteOnly "+controller" "4.5 (cgroup v2)" WithObject
        "Enables the memory controller for groups where it was disabled; the last group of eke disables it again.";
}

/// The knob of this name.
pub fn find(name: &str) -> Option<&'static Knob> {
    KNOBS.iter().find(|k| k.name == name)
}

impl Knob {
    /// Its path with `target` for the `*`; `None` if the target is missing, superfluous, or would leave its directory.
    pub fn path_for(&self, target: &str) -> Option<String> {
        let has_pattern = self.path.contains('*');
        let safe = target.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        match (has_pattern, target.is_empty()) {
            (false, true) => Some(self.path.to_owned()),
            (true, false) if safe => Some(self.path.replacen('*', target, 1)),
            (true, true) if self.at_root_too => Some(self.path.replacen("/*", "", 1)),
            _ => None,
        }
    }
}

/// The table as Markdown: the content of `docs/knobs.md`.
pub fn as_markdown() -> String {
    let mut out = String::from(
        "# Every setting that eke can change\n\nGenerated from the table in `crates/apply/src/knob.rs` (`eke doctor --knobs`); CI compares.\n\n\
         | Knob | Path | Unit | Since Linux | Restored by | What it does |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for k in KNOBS {
        let restore = match k.restore {
            Restore::WriteOld => "writing the old value",
            Restore::WithObject => "removing its device or group",
            Restore::Nothing => "nothing to restore",
        };
        let _ = writeln!(
            out,
            "| `{}` | `/{}` | {} | {} | {restore} | {} |",
            k.name, k.path, k.unit, k.since, k.doc
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sound() {
        for (i, k) in KNOBS.iter().enumerate() {
            assert!(!k.path.starts_with('/') && !k.path.contains(".."), "{}", k.name);
            assert!(k.path.matches('*').count() <= 1, "{}", k.name);
            assert!(k.doc.ends_with('.') && !k.doc.contains('|'), "{}", k.name);
            assert!(KNOBS[..i].iter().all(|other| other.name != k.name), "{} is listed twice", k.name);
            assert!(
                k.restore != Restore::WriteOld || k.codec != Codec::WriteOnly,
                "{} cannot be restored",
                k.name
            );
        }
    }

    #[test]
    fn settings_that_change_together_are_in_the_table_with_the_same_target() {
        for knob in KNOBS {
            for name in knob.changes_with_it {
                let other = find(name).unwrap();
                assert_eq!(other.path.contains('*'), knob.path.contains('*'), "{name} with {}", knob.name);
                assert_eq!(other.restore, Restore::WriteOld);
            }
        }
    }

    #[test]
    fn targets_cannot_leave_their_directory() {
        let disksize = find("zram.disksize").unwrap();
        assert_eq!(disksize.path_for("zram3").as_deref(), Some("sys/block/zram3/disksize"));
        for bad in ["", "..", "../vda", "/etc", "a//b"] {
            assert_eq!(disksize.path_for(bad), None, "{bad:?}");
        }
        assert_eq!(find("vm.swappiness").unwrap().path_for("x"), None);
        assert_eq!(
            find("memory.swappiness").unwrap().path_for("").as_deref(),
            Some("sys/fs/cgroup/memory/memory.swappiness")
        );
    }
}
