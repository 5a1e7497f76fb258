//! The table of every setting that eke can change. `docs/knobs.md` is generated from it.

use std::fmt::Write as _;

use eke_linux::parse::zram::bracketed;

/// How a setting reads compared with how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Reads as it was written, but for white space.
    Plain,
    /// Reads as `Y` or `N`; `1` and `0` mean the same.
    Bool,
    /// Reads as a list with the value in brackets: `lzo [lz4] zstd`.
    Bracketed,
    /// Cannot be read, or reads as something else.
    WriteOnly,
    /// A line for each disk, `MAJOR:MINOR KEY=VALUE...`; one that has none has no target.
    LatencyOfDisk,
    /// The same; a disk that has none is not controlled.
    QosOfDisk,
    /// The same; a disk that has none has the kernel's model.
    ModelOfDisk,
}

impl Codec {
    /// The value in what the kernel shows.
    pub fn decode(self, text: &str) -> String {
        let text = text.trim();
        match self {
            Self::Bool => match text {
                "1" | "y" | "Y" => "Y".into(),
                "0" | "n" | "N" => "N".into(),
                other => other.into(),
            },
            Self::Bracketed => bracketed(text).unwrap_or(text).into(),
            _ => text.into(),
        }
    }

    /// What a line of a disk is that the kernel does not show, `None` where settings have no lines of disks.
    fn of_disk(self) -> Option<&'static str> {
        match self {
            Self::LatencyOfDisk => Some("target=max"),
            Self::QosOfDisk => Some("enable=0"),
            Self::ModelOfDisk => Some("ctrl=auto"),
            _ => None,
        }
    }

    /// The value in what the kernel shows, of the disk that `written` is about where there is a line for each.
    pub fn decode_for(self, text: &str, written: &str) -> String {
        let Some(otherwise) = self.of_disk() else { return self.decode(text) };
        let disk = written.split_whitespace().next().unwrap_or_default();
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(disk));
        line.map_or_else(|| format!("{disk} {otherwise}"), |line| line.trim().to_owned())
    }

    /// Do the two texts mean the same value? A disk's line may be written in part: the kernel shows all of it.
    pub fn same(self, a: &str, b: &str) -> bool {
        if self.of_disk().is_none() {
            return self.decode(a) == self.decode(b);
        }
        let within = |part: &str, all: &str| {
            part.split_whitespace().all(|word| all.split_whitespace().any(|other| same_word(word, other)))
        };
        within(a, b) || within(b, a)
    }
}

/// `rpct=95` is shown as `rpct=95.00`.
fn same_word(a: &str, b: &str) -> bool {
    let number = |word: &str| {
        let (key, value) = word.split_once('=')?;
        Some((key.to_owned(), value.parse::<f64>().ok()?))
    };
    a == b || number(a).is_some_and(|a| number(b) == Some(a))
}

/// How a setting comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restore {
    /// The old value is written back.
    WriteOld,
    /// It is gone with the device or group that it belongs to.
    WithObject,
    /// It starts an action or only narrows what an action may do; nothing is left to restore.
    Nothing,
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct Knob {
    /// Its name in plans, the journal and the documentation.
    pub name: &'static str,
    /// Its path relative to the root; `*` stands for the device or group.
    pub path: &'static str,
    /// How it reads.
    pub codec: Codec,
    /// The unit of its value.
    pub unit: &'static str,
    /// The first kernel that has it.
    pub since: &'static str,
    /// How it comes back.
    pub restore: Restore,
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// The settings that change with this one by themselves, and come back with it.
    pub changes_with_it: &'static [&'static str],
    /// The setting of a group of cgroup v1 that a new group takes from this one.
    pub inherited_by: Option<&'static str>,
    /// Does 0 mean that another setting counts? Then 0 cannot be written (Documentation/admin-guide/sysctl/vm.rst, `dirty_bytes`).
    pub yields_at_zero: bool,
    /// May the target be empty? The root group of cgroup v1 has no name.
    pub at_root_too: bool,
    /// Does its undo wait for everything newer?
    pub undone_last: bool,
}

/// The columns that few rows have.
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
    at_root_too: false,
    undone_last: false,
};

/// Each scheduler has its own settings (`elevator_switch` in block/elevator.c), and BFQ turns the throttle off.
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
        "What a swapped-in page costs against a re-read file page: 100 means equal, more means swap is cheaper."
        { inherited_by: Some("memory.swappiness") };
    "vm.page-cluster" "proc/sys/vm/page-cluster" Plain "log2 pages" "2.4" WriteOld
        "How many neighbours are read with a page that is swapped in: 0 none, 3 eight pages.";
    "memory.swappiness" "sys/fs/cgroup/memory/*/memory.swappiness" Plain "0 to 200" "2.6.28 (cgroup v1)" WriteOld
        "The same for one group of processes; on cgroup v1 a group's own value counts, not the machine's."
        { at_root_too: true };
    "zswap.enabled" "sys/module/zswap/parameters/enabled" Bool "Y or N" "3.11" WriteOld
        "New pages on their way to a swap disk are kept compressed in RAM; pages that are already compressed stay when it is off."
        { undone_last: true };
    "zswap.compressor" "sys/module/zswap/parameters/compressor" Plain "name" "3.11" WriteOld
        "The algorithm for new pages; those already compressed keep theirs."
        { undone_last: true };
    "zswap.zpool" "sys/module/zswap/parameters/zpool" Plain "name" "3.17 to 6.17" WriteOld
        "The allocator of the pool: zsmalloc wastes least; since 6.18 it is the only one."
        { undone_last: true };
    "zswap.max_pool_percent" "sys/module/zswap/parameters/max_pool_percent" Plain "% of RAM" "3.11" WriteOld
        "The most RAM that the pool takes; beyond it the oldest pages go to the disk."
        { undone_last: true };
    "zswap.accept_threshold_percent" "sys/module/zswap/parameters/accept_threshold_percent" Plain "% of the pool" "5.6" WriteOld
        "After the pool was full, new pages are taken again below this fill."
        { undone_last: true };
    "zswap.shrinker_enabled" "sys/module/zswap/parameters/shrinker_enabled" Bool "Y or N" "6.8" WriteOld
        "Cold pages leave the pool for the disk before it is full."
        { undone_last: true };
    "ksm.run" "sys/kernel/mm/ksm/run" Plain "0, 1 or 2" "2.6.32" WriteOld
        "Equal pages of programs that ask for it are merged: 0 stops and leaves what is merged, 2 takes it apart, too.";
    "ksm.pages_to_scan" "sys/kernel/mm/ksm/pages_to_scan" Plain "pages" "2.6.32" WriteOld
        "How many pages are scanned before the next pause.";
    "ksm.sleep_millisecs" "sys/kernel/mm/ksm/sleep_millisecs" Plain "ms" "2.6.32" WriteOld
        "The pause between two such rounds.";
    "zram.hot_add" "sys/class/zram-control/hot_add" WriteOnly "device number" "4.2" Nothing
        "Reading it makes a new device; the number that it answers is the device's.";
    "zram.hot_remove" "sys/class/zram-control/hot_remove" WriteOnly "device number" "4.2" Nothing
        "Removes a device that nothing uses.";
    "zram.comp_algorithm" "sys/block/*/comp_algorithm" Bracketed "name" "3.15" WithObject
        "The device's algorithm; before the disksize is set.";
    "zram.algorithm_params" "sys/block/*/algorithm_params" WriteOnly "key=value" "6.12" WithObject
        "Parameters of the algorithm, such as its level; before the disksize is set.";
    "zram.recomp_algorithm" "sys/block/*/recomp_algorithm" WriteOnly "algo=NAME priority=N" "6.2" WithObject
        "A second, stronger algorithm for recompression; before the disksize is set.";
    "zram.backing_dev" "sys/block/*/backing_dev" WriteOnly "path" "4.14" WithObject
        "A block device for pages that are written back; before the disksize is set.";
    "zram.writeback_limit_enable" "sys/block/*/writeback_limit_enable" Plain "0 or 1" "5.0" WithObject
        "Obey writeback_limit.";
    "zram.writeback_limit" "sys/block/*/writeback_limit" WriteOnly "4 KiB units" "5.0" WithObject
        "How much may still be written back; counts down.";
    "zram.disksize" "sys/block/*/disksize" Plain "bytes" "2.6.37" WithObject
        "The declared size; setting it starts the device.";
    "zram.reset" "sys/block/*/reset" WriteOnly "1" "2.6.37" WithObject
        "Frees everything that the device holds and makes it as new.";
    "zram.compact" "sys/block/*/compact" WriteOnly "1" "4.1" Nothing
        "Moves objects together where freed pages left holes in the pool.";
    "zram.idle" "sys/block/*/idle" WriteOnly "all or seconds" "4.14" Nothing
        "Marks pages that were not used since; the mark goes with the next use.";
    "zram.recompress" "sys/block/*/recompress" WriteOnly "type=KIND priority=N" "6.2" Nothing
        "Compresses marked or incompressible pages again with the second algorithm.";
    "zram.writeback" "sys/block/*/writeback" WriteOnly "kind" "4.14" Nothing
        "Writes marked or incompressible pages to the backing device.";
    "loop.rotational" "sys/block/*/queue/rotational" Plain "0 or 1" "2.6.29" WithObject
        "Whether the kernel swaps and reads ahead on a loop device that eke made as on a disk that seeks.";
    "fuse.abort" "sys/fs/fuse/connections/*/abort" WriteOnly "1" "2.6.24" WithObject
        "Ends a FUSE connection of eke's: every request is answered with an error from then on.";
    "process.oom_score_adj" "proc/self/oom_score_adj" Plain "-1000 to 1000" "2.6.36" WithObject
        "How readily the OOM killer chooses this process: the agent never, its child services like any other.";
    "bdi.read_ahead_kb" "sys/class/bdi/*/read_ahead_kb" Plain "KiB" "2.6.29" WithObject
        "How much of a sequentially read file the kernel asks of a mount of eke-cache's in advance.";
    "group.memory.max" "sys/fs/cgroup/*/memory.max" Plain "bytes or max" "4.5 (cgroup v2)" WithObject
        "The most memory of a group that eke made.";
    "group.memory.limit_in_bytes" "sys/fs/cgroup/memory/*/memory.limit_in_bytes" WriteOnly "bytes" "2.6.25 (cgroup v1)" WithObject
        "The most memory of a group that eke made; the kernel rounds it down to pages.";
    "group.v2.cgroup.procs" "sys/fs/cgroup/*/cgroup.procs" WriteOnly "process" "4.5 (cgroup v2)" WithObject
        "Moves a process into a group that eke made.";
    "group.v1.cgroup.procs" "sys/fs/cgroup/memory/*/cgroup.procs" WriteOnly "process" "2.6.33 (cgroup v1)" WithObject
        "Moves a process into a group that eke made.";
    "group.unified.cgroup.procs" "sys/fs/cgroup/unified/*/cgroup.procs" WriteOnly "process" "4.5 (hybrid)" WithObject
        "Moves a process into the twin of its group, for the pressure figures that cgroup v1 lacks.";
    "group.subtree_control" "sys/fs/cgroup/*/cgroup.subtree_control" WriteOnly "+controller" "4.5 (cgroup v2)" WithObject
        "Gives the groups below a group that eke made a controller.";
    "group.cgroup.kill" "sys/fs/cgroup/*/cgroup.kill" WriteOnly "1" "5.14 (cgroup v2)" Nothing
        "Kills every process of a group that eke made.";
    "queue.scheduler" "sys/block/*/queue/scheduler" Bracketed "name" "2.6.10" WriteOld
        "Who orders a disk's requests: none, mq-deadline, kyber or bfq; changing it empties the queue first, and sets nr_requests anew."
        { changes_with_it: OF_THE_SCHEDULER };
    "queue.nr_requests" "sys/block/*/queue/nr_requests" Plain "requests" "2.6.10" WriteOld
        "How many requests of a disk there may be at a time, of reads and of writes.";
    "queue.max_sectors_kb" "sys/block/*/queue/max_sectors_kb" Plain "KiB" "2.6.10" WriteOld
        "The largest request: a read waits for the one that is under way, so large writes are long waits on a slow disk.";
    "queue.wbt_lat_usec" "sys/block/*/queue/wbt_lat_usec" Plain "µs, 0 off" "4.10" WriteOld
        "Writeback is throttled while reads take longer than this; that it was the kernel's own value is not known after it comes back.";
    "iosched.read_expire" "sys/block/*/queue/iosched/read_expire" Plain "ms" "2.6.10 (mq-deadline)" WriteOld
        "A read that waited for so long goes first.";
    "iosched.write_expire" "sys/block/*/queue/iosched/write_expire" Plain "ms" "2.6.10 (mq-deadline)" WriteOld
        "A write that waited for so long goes first.";
    "iosched.fifo_batch" "sys/block/*/queue/iosched/fifo_batch" Plain "requests" "2.6.10 (mq-deadline)" WriteOld
        "How many requests of one direction are given to the disk in a row.";
    "iosched.writes_starved" "sys/block/*/queue/iosched/writes_starved" Plain "batches" "2.6.10 (mq-deadline)" WriteOld
        "How many batches of reads go before one of writes.";
    "iosched.read_lat_nsec" "sys/block/*/queue/iosched/read_lat_nsec" Plain "ns" "4.12 (kyber)" WriteOld
        "The latency that reads should have; others are held back for it.";
    "iosched.write_lat_nsec" "sys/block/*/queue/iosched/write_lat_nsec" Plain "ns" "4.12 (kyber)" WriteOld
        "The latency that synchronous writes should have.";
    "iosched.low_latency" "sys/block/*/queue/iosched/low_latency" Plain "0 or 1" "4.12 (bfq)" WriteOld
        "Programs that seem interactive go first.";
    "iosched.slice_idle" "sys/block/*/queue/iosched/slice_idle" Plain "ms" "4.12 (bfq)" WriteOld
        "How long the disk waits for the next request of the same program.";
    "iosched.strict_guarantees" "sys/block/*/queue/iosched/strict_guarantees" Plain "0 or 1" "4.12 (bfq)" WriteOld
        "One request at a time, for exact shares.";
    "zfs.async_write_max_active" "sys/module/zfs/parameters/zfs_vdev_async_write_max_active" Plain "requests" "OpenZFS 0.6.4" WriteOld
        "How many asynchronous writes each disk of each pool gets at a time; inert on disks for which OpenZFS does not queue (scheduler=auto, after 2.4).";
    "zfs.async_write_min_active" "sys/module/zfs/parameters/zfs_vdev_async_write_min_active" Plain "requests" "OpenZFS 0.6.4" WriteOld
        "The same while little is dirty; never above the other.";
    "vm.dirty_bytes" "proc/sys/vm/dirty_bytes" Plain "bytes" "2.6.29" WriteOld
        "From so much unwritten data on, writers write it themselves; 0 while vm.dirty_ratio counts, which comes back with it."
        { yields_at_zero: true, changes_with_it: &["vm.dirty_ratio"] };
    "vm.dirty_background_bytes" "proc/sys/vm/dirty_background_bytes" Plain "bytes" "2.6.29" WriteOld
        "From so much unwritten data on, it is written in the background; 0 while vm.dirty_background_ratio counts, which comes back with it."
        { yields_at_zero: true, changes_with_it: &["vm.dirty_background_ratio"] };
    "vm.dirty_ratio" "proc/sys/vm/dirty_ratio" Plain "%" "2.6" WriteOld
        "The same as vm.dirty_bytes, of the memory that could be had; 0 while that one counts."
        { yields_at_zero: true, changes_with_it: &["vm.dirty_bytes"] };
    "vm.dirty_background_ratio" "proc/sys/vm/dirty_background_ratio" Plain "%" "2.6" WriteOld
        "The same as vm.dirty_background_bytes, of the memory that could be had; 0 while that one counts."
        { yields_at_zero: true, changes_with_it: &["vm.dirty_background_bytes"] };
    "io.latency" "sys/fs/cgroup/*/io.latency" LatencyOfDisk "MAJOR:MINOR target=µs" "4.19 (cgroup v2)" WriteOld
        "The latency that a group's requests should have; groups with a higher target or none are held back for it.";
    "io.cost.qos" "sys/fs/cgroup/io.cost.qos" QosOfDisk "MAJOR:MINOR enable=1 ..." "5.4 (cgroup v2)" WriteOld
        "Shares a disk among groups by what their requests cost it, within these latencies.";
    "io.cost.model" "sys/fs/cgroup/io.cost.model" ModelOfDisk "MAJOR:MINOR ctrl=user ..." "5.4 (cgroup v2)" WriteOld
        "What requests cost a disk.";
    "group.cgroup.freeze" "sys/fs/cgroup/*/cgroup.freeze" Plain "0 or 1" "5.2 (cgroup v2)" WithObject
        "Stops a group that eke made for the moment in which its limit on cgroup v1 is lowered.";
    "group.memory.swap.max" "sys/fs/cgroup/*/memory.swap.max" Plain "bytes or max" "4.5 (cgroup v2)" WithObject
        "The most swap of a group that eke made; 0 for an experiment without swap.";
    "group.memory.memsw.limit_in_bytes" "sys/fs/cgroup/memory/*/memory.memsw.limit_in_bytes" WriteOnly "bytes" "2.6.34 (cgroup v1)" WithObject
        "The most memory and swap together of a group that eke made; equal to its memory limit for an experiment without swap.";
    "group.cpu.cfs_period_us" "sys/fs/cgroup/cpu/*/cpu.cfs_period_us" Plain "µs" "3.2 (cgroup v1)" WithObject
        "The time of which a group that eke made gets a part: the small CPU of an experiment.";
    "group.cpu.cfs_quota_us" "sys/fs/cgroup/cpu/*/cpu.cfs_quota_us" Plain "µs" "3.2 (cgroup v1)" WithObject
        "That part.";
    "group.cpu.max" "sys/fs/cgroup/*/cpu.max" Plain "µs of µs" "4.15 (cgroup v2)" WithObject
        "The same on cgroup v2.";
    "cgroup.subtree_control" "sys/fs/cgroup/cgroup.subtree_control" WriteOnly "+controller" "4.5 (cgroup v2)" WithObject
        "Turns the memory controller on for groups where it was off; the last group of eke turns it off again.";
}

/// The knob of that name.
pub fn find(name: &str) -> Option<&'static Knob> {
    KNOBS.iter().find(|k| k.name == name)
}

/// A setting that eke never changes, because data could be lost that is safe now.
#[derive(Debug, Clone, Copy)]
pub struct Denied {
    /// What it is called, also by other systems.
    pub names: &'static [&'static str],
    /// Why.
    pub why: &'static str,
}

/// What is never in the table. A test holds it.
pub static DENIED: &[Denied] = &[
    Denied {
        names: &["zfs_nocacheflush", "vfs.zfs.cache_flush_disable", "zfs.nocacheflush"],
        why: "without cache flushes a power cut corrupts the pool, if a disk has a volatile write cache (zfs(4))",
    },
    Denied {
        names: &["zil_nocacheflush", "vfs.zfs.zil_nocacheflush", "zfs.zil_nocacheflush"],
        why: "what fsync(2) acknowledged could be lost in a power cut (zfs(4))",
    },
    Denied {
        names: &["sync", "zil_replay_disable", "sync=disabled"],
        why: "fsync(2) would acknowledge what is only in memory",
    },
    Denied {
        names: &["zfs_txg_timeout", "vfs.zfs.txg.timeout"],
        why: "a longer interval loses more of what was written in a crash",
    },
    Denied {
        names: &["write_cache", "queue/write_cache", "queue.write_cache"],
        why: "\"write through\" makes the kernel flush the disk's cache no more (Documentation/ABI/stable/sysfs-block)",
    },
    Denied {
        names: &["fua", "queue/fua", "queue.fua"],
        why: "the kernel would trust writes that are only in the disk's cache",
    },
    Denied {
        names: &["dirty_writeback_centisecs", "vm.dirty_writeback_centisecs"],
        why: "0 would leave what is written in memory until memory is short",
    },
    Denied {
        names: &["dirty_expire_centisecs", "vm.dirty_expire_centisecs"],
        why: "a longer time loses more of what was written in a crash",
    },
    Denied {
        names: &["laptop_mode", "vm.laptop_mode"],
        why: "what is written would stay in memory for longer",
    },
    Denied {
        names: &["nobarrier", "barrier"],
        why: "a file system without barriers is not whole after a power cut",
    },
];

/// Why a setting of this name is never changed; `None` if it is not one of those.
pub fn denied(name: &str) -> Option<&'static Denied> {
    DENIED.iter().find(|d| d.names.contains(&name))
}

impl Knob {
    /// Its path with `target` for the `*`; `None` if the target is missing, superfluous or would leave its directory.
    pub fn path_for(&self, target: &str) -> Option<String> {
        let wants = self.path.contains('*');
        let safe = target.split('/').all(|part| !part.is_empty() && part != "." && part != "..");
        match (wants, target.is_empty()) {
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
         | Knob | Path | Unit | Since Linux | Comes back | What it does |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    for k in KNOBS {
        let restore = match k.restore {
            Restore::WriteOld => "old value written back",
            Restore::WithObject => "goes with its device or group",
            Restore::Nothing => "nothing is left",
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
            assert!(KNOBS[..i].iter().all(|other| other.name != k.name), "{} stands twice", k.name);
            assert!(
                k.restore != Restore::WriteOld || k.codec != Codec::WriteOnly,
                "{} cannot be restored",
                k.name
            );
        }
    }

    #[test]
    fn codecs_read_what_kernels_show() {
        assert_eq!(Codec::Bracketed.decode("lzo-rle [lz4] zstd\n"), "lz4");
        assert_eq!(Codec::Bool.decode("Y\n"), Codec::Bool.decode("1"));
        assert!(Codec::Plain.same("60\n", "60"));
    }

    #[test]
    fn what_weakens_durability_is_not_in_the_table() {
        let words = |path: &str| path.split(['/', '.']).map(str::to_owned).collect::<Vec<_>>();
        for name in DENIED.iter().flat_map(|d| d.names) {
            assert!(find(name).is_none(), "{name}");
            let last = words(name).pop().unwrap();
            let same = KNOBS.iter().find(|k| words(k.path).last() == Some(&last));
            assert!(same.is_none(), "{name} is {}", same.unwrap().name);
            assert!(denied(name).is_some());
        }
        assert!(denied("queue.nr_requests").is_none());
    }

    #[test]
    fn what_is_beside_a_setting_is_in_the_table_and_in_the_same_place() {
        for knob in KNOBS {
            for name in knob.changes_with_it {
                let other = find(name).unwrap();
                assert_eq!(other.path.contains('*'), knob.path.contains('*'), "{name} beside {}", knob.name);
                assert_eq!(other.restore, Restore::WriteOld);
            }
        }
    }

    #[test]
    fn a_disks_line_is_found_and_compared() {
        let codec = Codec::QosOfDisk;
        let shown = "8:0 enable=1 ctrl=user rpct=95.00 rlat=5000\n8:16 enable=0 ctrl=auto\n";
        let now = codec.decode_for(shown, "8:0 enable=1");
        assert_eq!(now, "8:0 enable=1 ctrl=user rpct=95.00 rlat=5000");
        assert!(codec.same(&now, "8:0 enable=1 rpct=95") && !codec.same(&now, "8:0 enable=0"));
        assert_eq!(codec.decode_for(shown, "259:0 enable=1"), "259:0 enable=0");
        assert_eq!(Codec::LatencyOfDisk.decode_for("", "8:0 target=10"), "8:0 target=max");
        assert_eq!(Codec::Plain.decode_for("5\n", "7"), "5");
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
