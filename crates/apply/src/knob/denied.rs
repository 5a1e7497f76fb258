//! Settings that eke never changes.

/// A setting that eke never changes, because that could lose data that is safe now.
#[derive(Debug, Clone, Copy)]
pub struct Denied {
    /// Its names, including those on other systems.
    pub names: &'static [&'static str],
    /// The reason.
    pub why: &'static str,
}

/// Settings that must never be in the table; a test checks that.
pub static DENIED: &[Denied] = &[
    never(
        &["zfs_nocacheflush", "vfs.zfs.cache_flush_disable", "zfs.nocacheflush"],
        "without cache flushes a power cut corrupts the pool, if a disk has a volatile write cache (zfs(4))",
    ),
    never(
        &["zil_nocacheflush", "vfs.zfs.zil_nocacheflush", "zfs.zil_nocacheflush"],
        "a power cut could lose data that fsync(2) acknowledged (zfs(4))",
    ),
    never(
        &["sync", "zil_replay_disable", "sync=disabled"],
        "fsync(2) would acknowledge data that is only in memory",
    ),
    never(&["zfs_txg_timeout", "vfs.zfs.txg.timeout"], "after a longer interval, a crash loses more data"),
    never(
        &["write_cache", "queue/write_cache", "queue.write_cache"],
        "with \"write through\" the kernel no longer flushes the disk's cache (Documentation/ABI/stable/sysfs-block)",
    ),
    never(
        &["fua", "queue/fua", "queue.fua"],
        "the kernel would rely on writes that are only in the disk's cache",
    ),
    never(
        &["dirty_writeback_centisecs", "vm.dirty_writeback_centisecs"],
        "0 would keep written data in memory until memory is short",
    ),
    never(
        &["dirty_expire_centisecs", "vm.dirty_expire_centisecs"],
        "after a longer time, a crash loses more data",
    ),
    never(&["laptop_mode", "vm.laptop_mode"], "written data would stay in memory longer"),
    never(&["nobarrier", "barrier"], "a power cut corrupts a file system without barriers"),
];

const fn never(names: &'static [&'static str], why: &'static str) -> Denied {
    Denied { names, why }
}

/// Returns the reason if a setting of this name is never changed.
pub fn denied(name: &str) -> Option<&'static Denied> {
    DENIED.iter().find(|d| d.names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::{KNOBS, find};

    #[test]
    fn settings_that_weaken_durability_are_not_in_the_table() {
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
}
