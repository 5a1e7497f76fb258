//! How the kernel uses a disk: scheduler, requests in flight, read-ahead.

/// The schedulers that a disk can name.
const SCHEDULERS: [&str; 4] = ["none", "mq-deadline", "kyber", "bfq"];
/// Least requests in flight that the kernel accepts (`BLKDEV_MIN_RQ`).
const LEAST_QUEUE: u32 = 4;
/// Most: those of a loop device.
const MOST_QUEUE: u32 = 128;
/// The queue of a SATA drive.
const NCQ: u32 = 32;

/// Settings of the block layer; `None` leaves the kernel's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Host {
    /// The scheduler.
    pub scheduler: Option<&'static str>,
    /// Most requests that the disk has at once; the scheduler has the others.
    pub queue: Option<u32>,
    /// The read-ahead of the block device in KiB; some file systems set their own.
    pub read_ahead_kib: Option<u32>,
}

/// What follows the name of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Suffix {
    pub(super) host: Host,
    pub(super) orders: bool,
}

/// The words after `NAME+`, such as `ncq+mq-deadline+readahead=512`; `None` if one is unknown.
pub(super) fn suffix<'a>(words: impl Iterator<Item = &'a str>) -> Option<Suffix> {
    let mut suffix = Suffix::default();
    for word in words {
        let value = |name: &str| word.strip_prefix(name)?.parse::<u32>().ok();
        if word == "ncq" {
            suffix.orders = true;
            suffix.host.queue.get_or_insert(NCQ);
        } else if let Some(scheduler) = SCHEDULERS.into_iter().find(|name| *name == word) {
            suffix.host.scheduler = Some(scheduler);
        } else if let Some(queue) = value("queue=") {
            suffix.host.queue = Some(queue).filter(|queue| (LEAST_QUEUE..=MOST_QUEUE).contains(queue));
            suffix.host.queue?;
        } else {
            suffix.host.read_ahead_kib = Some(value("readahead=")?);
        }
    }
    Some(suffix)
}
