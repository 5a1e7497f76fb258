//! Kernel threads that compress, checksum or encrypt data.

use eke_linux::parse::process_stat::ProcessStat;

/// Names of threads or work queues that process data on its way to the disk, each with its task.
const TASKS: [(&str, &str); 6] = [
    ("z_wr_iss", "ZFS' compression and checksums (z_wr_iss)"),
    ("btrfs-delalloc", "btrfs' compression (btrfs-delalloc)"),
    ("btrfs-worker", "btrfs' checksums (btrfs-worker)"),
    ("btrfs-endio", "btrfs' decompression and checksums (btrfs-endio)"),
    ("kcryptd", "dm-crypt (kcryptd)"),
    ("bch_", "bcachefs or bcache (bch_)"),
];

/// The task of a kernel thread; `None` for all others. A kworker's name ends in its work queue (Linux 4.18):
/// `kworker/u8:1-btrfs-delalloc`.
pub fn task(thread: &ProcessStat<'_>) -> Option<&'static str> {
    let found = TASKS.iter().find(|(name, _)| thread.name.contains(name));
    found.filter(|_| thread.is_kernel_thread()).map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use eke_linux::parse::process_stat::parse;

    use super::*;

    fn stat(name: &str, flags: u64) -> String {
        format!("77 ({name}) S 2 0 0 0 -1 {flags} 0 0 0 0 30 12 0 0 20 0 1 0 99 0 0\n")
    }

    #[test]
    fn a_threads_name_gives_its_task() {
        let task = |name, flags| task(&parse(&stat(name, flags)).unwrap());
        assert_eq!(
            task("kworker/u8:1-btrfs-delalloc", 69_238_880),
            Some("btrfs' compression (btrfs-delalloc)")
        );
        assert_eq!(task("z_wr_iss", 4_194_304), None, "a program of that name");
    }
}
