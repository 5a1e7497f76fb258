//! Threads of the kernel that compress, checksum or encrypt what is written.

use eke_linux::parse::process_stat::ProcessStat;

/// What packs data on its way to the disk, by the names of its threads or work queues, with what that is called.
const COMPRESSORS: [(&str, &str); 6] = [
    ("z_wr_iss", "ZFS' compression and checksums (z_wr_iss)"),
    ("btrfs-delalloc", "btrfs' compression (btrfs-delalloc)"),
    ("btrfs-worker", "btrfs' checksums (btrfs-worker)"),
    ("btrfs-endio", "btrfs' decompression and checksums (btrfs-endio)"),
    ("kcryptd", "dm-crypt (kcryptd)"),
    ("bch_", "bcachefs or bcache (bch_)"),
];

/// What a thread of the kernel packs, `None` if it is not known to. A kworker's name ends in what it works on (Linux 4.18):
/// `kworker/u8:1-btrfs-delalloc`.
pub fn packs(thread: &ProcessStat<'_>) -> Option<&'static str> {
    let found = COMPRESSORS.iter().find(|(name, _)| thread.name.contains(name));
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
    fn threads_are_known_by_what_they_work_on() {
        let packs = |name, flags| packs(&parse(&stat(name, flags)).unwrap());
        assert_eq!(
            packs("kworker/u8:1-btrfs-delalloc", 69_238_880),
            Some("btrfs' compression (btrfs-delalloc)")
        );
        assert_eq!(packs("z_wr_iss", 4_194_304), None, "a program of that name");
    }
}
