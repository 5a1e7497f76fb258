//! Threads of the kernel that compress, checksum or encrypt what is written.

/// What a process' `stat` says of it (proc_pid_stat(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thread {
    /// Its name; a kworker's has what it works on at its end (since 4.18): `kworker/u8:1-btrfs-delalloc`.
    pub name: String,
    /// Is it a thread of the kernel?
    pub is_kernels: bool,
    /// CPU time in clock ticks.
    pub ticks: u64,
}

/// `PF_KTHREAD` (include/linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// From `/proc/PID/stat`.
pub fn parse(text: &str) -> Option<Thread> {
    let (_, rest) = text.split_once('(')?;
    let (name, rest) = rest.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // the first of these is the third of the file
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    Some(Thread {
        name: name.to_owned(),
        is_kernels: field(9)? & KERNEL_THREAD != 0,
        ticks: field(14)? + field(15)?,
    })
}

/// What packs data on its way to the disk, by the names of its threads or work queues, with what that is called.
const COMPRESSORS: [(&str, &str); 6] = [
    ("z_wr_iss", "ZFS' compression and checksums (z_wr_iss)"),
    ("btrfs-delalloc", "btrfs' compression (btrfs-delalloc)"),
    ("btrfs-worker", "btrfs' checksums (btrfs-worker)"),
    ("btrfs-endio", "btrfs' decompression and checksums (btrfs-endio)"),
    ("kcryptd", "dm-crypt (kcryptd)"),
    ("bch_", "bcachefs or bcache (bch_)"),
];

/// What a thread of the kernel packs, `None` if it is not known to.
pub fn packs(thread: &Thread) -> Option<&'static str> {
    let found = COMPRESSORS.iter().find(|(name, _)| thread.name.contains(name));
    found.filter(|_| thread.is_kernels).map(|(_, what)| *what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &str, flags: u64) -> String {
        format!("77 ({name}) S 2 0 0 0 -1 {flags} 0 0 0 0 30 12 0 0 20 0 1 0 99 0 0\n")
    }

    #[test]
    fn threads_are_known_by_what_they_work_on() {
        let thread = parse(&stat("kworker/u8:1-btrfs-delalloc", 69_238_880)).unwrap();
        assert_eq!((thread.ticks, packs(&thread)), (42, Some("btrfs' compression (btrfs-delalloc)")));
        let odd = parse(&stat("a) (b", 4_194_304)).unwrap();
        assert_eq!((odd.name.as_str(), odd.is_kernels), ("a) (b", false));
        let impostor = parse(&stat("z_wr_iss", 4_194_304)).unwrap();
        assert_eq!(packs(&impostor), None, "a program of that name");
        assert_eq!((parse(""), parse("1 (x) S"), parse("1 )x( S 1")), (None, None, None));
    }
}
