//! The knobs of one disk that the governor may change.

use eke_apply::write::read_value;
use eke_io::governor::TunedKnob;
use eke_io::knobs::{self, THROTTLE};
use eke_io::sensor::devices::directory;
use eke_linux::Root;

/// ZFS writes a burst every `zfs_txg_timeout` (5 s): a shorter window has only part of one.
const TXG_S: f64 = 5.0;
/// What udev stores of a device in a pool (`/run/udev/data`).
const ZFS_MEMBER: &str = "E:ID_FS_TYPE=zfs_member";
/// The largest request.
const SIZE: &str = "queue.max_sectors_kb";
/// The number of requests.
const REQUESTS: &str = "queue.nr_requests";
/// The smallest largest request: 64 KiB still streams well.
const LEAST_SECTORS_KB: u64 = 64;
/// With fewer than 4 requests a disk has nothing to reorder.
const LEAST_REQUESTS: u64 = 4;
/// The throttle's target stays above a quarter of its default; a lower one would throttle on noise.
const THROTTLE_SHARE: u64 = 4;

/// The knobs that this disk has and that can be lowered, in the order of trying.
///
/// - ZFS's asynchronous writes, where ZFS is loaded and this disk has a part of a pool: never below its own minimum (with `max` below `min` its arithmetic goes wrong);
/// - the size of requests: a read waits for the request under way. Not of a path of dm-multipath, which gives whole requests to its paths: larger
///   ones than a path takes fail (`blk_insert_cloned_request()`). Not of a zoned disk, where a zone's writes must stay whole;
/// - the writeback throttle's target, where the throttle is on and ZFS is not loaded: with ZFS it is known to hang (OpenZFS issue 12204). It is not with
///   BFQ, which switches it off: before Linux 6.2 the target reads as if it was on, and any write of it switches it on;
/// - last, the number of requests, since readers use them too. Without a scheduler it is that of the host adapter, which all its disks share.
pub fn of(root: &Root, device: &str) -> Vec<TunedKnob> {
    let target = directory(device);
    let zfs = zfs(root).filter(|_| may_have_pool(root, &target));
    let of_disk = |knob: &'static str, floor: &dyn Fn(u64) -> u64, unit| {
        let start: u64 = read_value(root, knob, &target).ok()?.parse().ok()?;
        Some(TunedKnob {
            name: knob,
            target: target.clone(),
            start,
            now: start,
            floor: floor(start),
            unit,
            window_s: 1.0,
        })
    };
    let size = of_disk(SIZE, &|_| LEAST_SECTORS_KB, 4);
    let throttle = of_disk(THROTTLE, &|start| start / THROTTLE_SHARE, 1);
    let depth = of_disk(REQUESTS, &|_| LEAST_REQUESTS, 1);
    let all = [zfs, size, throttle, depth].into_iter().flatten();
    all.filter(|knob| knob.can_lower() && is_allowed(root, knob.name, &knob.target)).collect()
}

/// Whether a knob may be changed on a disk as it is now: its scheduler and its use change while it is governed. See [`of`].
pub fn is_allowed(root: &Root, knob: &str, disk: &str) -> bool {
    match knob {
        SIZE => !is_zoned(root, disk) && !is_path(root, disk),
        THROTTLE => zfs(root).is_none() && knobs::is_effective(root, THROTTLE, disk),
        REQUESTS => !shares_requests(root, disk),
        _ => true,
    }
}

fn is_zoned(root: &Root, disk: &str) -> bool {
    root.read(format!("sys/block/{disk}/queue/zoned")).is_ok_and(|zoned| zoned.trim() != "none")
}

/// Whether dm-multipath sends requests to this disk.
fn is_path(root: &Root, disk: &str) -> bool {
    let holders = root.list(format!("sys/block/{disk}/holders")).unwrap_or_default();
    let uuid = |holder: &String| root.read(format!("sys/block/{holder}/dm/uuid")).unwrap_or_default();
    holders.iter().any(|holder| uuid(holder).starts_with("mpath-"))
}

/// Whether its requests are those of a SCSI host: the host's disks have one set of tags, and only a scheduler gives a disk its own.
fn shares_requests(root: &Root, disk: &str) -> bool {
    let has_scheduler = read_value(root, "queue.scheduler", disk).is_ok_and(|scheduler| scheduler != "none");
    root.exists(format!("sys/block/{disk}/device/scsi_device")) && !has_scheduler
}

/// Whether ZFS writes to this disk. If udev knows no disk of a pool, as without udev, any disk may be one.
fn may_have_pool(root: &Root, disk: &str) -> bool {
    let has_pool = |disk: &str| has_pool(root, disk, &format!("sys/block/{disk}"));
    has_pool(disk) || !root.list("sys/block").unwrap_or_default().iter().any(|disk| has_pool(disk))
}

/// Whether udev found a part of a pool on a device, its partitions, or what is made of them (dm-crypt).
fn has_pool(root: &Root, name: &str, dir: &str) -> bool {
    let number = root.read(format!("{dir}/dev")).unwrap_or_default();
    let known = root.read(format!("run/udev/data/b{}", number.trim())).unwrap_or_default();
    let partitions = root.list(dir).unwrap_or_default();
    let mut partitions = partitions.iter().filter(|entry| entry.starts_with(name));
    let holders = root.list(format!("{dir}/holders")).unwrap_or_default();
    known.lines().any(|line| line == ZFS_MEMBER)
        || partitions.any(|part| has_pool(root, part, &format!("{dir}/{part}")))
        || holders.iter().any(|holder| has_pool(root, holder, &format!("sys/block/{holder}")))
}

fn zfs(root: &Root) -> Option<TunedKnob> {
    let read = |knob: &str| read_value(root, knob, "").ok()?.parse::<u64>().ok();
    let knob = "zfs.async_write_max_active";
    let (start, least) = (read(knob)?, read("zfs.async_write_min_active")?);
    Some(TunedKnob {
        name: knob,
        target: String::new(),
        start,
        now: start,
        floor: least.max(1),
        unit: 1,
        window_s: TXG_S,
    })
}

#[cfg(test)]
mod tests {
    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;

    fn knobs(root: &Root) -> Vec<(&'static str, u64, u64)> {
        of(root, "sda").into_iter().map(|l| (l.name, l.start, l.floor)).collect()
    }

    #[test]
    fn knobs_are_what_the_machine_has() {
        let machine = FakeKernel::new();
        let root = machine.root();
        assert!(knobs(&root).is_empty());
        machine.put("sys/block/sda/queue/nr_requests", "64\n");
        machine.put("sys/block/sda/queue/max_sectors_kb", "32\n");
        machine.put("sys/block/sda/queue/wbt_lat_usec", "2000\n");
        assert_eq!(
            knobs(&root),
            [("queue.wbt_lat_usec", 2000, 500), ("queue.nr_requests", 64, 4)],
            "requests are small already"
        );
        machine.put("sys/block/sda/queue/wbt_lat_usec", "0\n");
        assert_eq!(knobs(&root).len(), 1, "a throttle that is off stays off");
    }

    #[test]
    fn requests_of_paths_and_zoned_disks_keep_their_size() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/max_sectors_kb", "1280\n");
        machine.put("sys/block/sda/queue/zoned", "none\n");
        machine.put("sys/block/sda/holders/dm-0", "");
        machine.put("sys/block/dm-0/dm/uuid", "LVM-abc\n");
        assert_eq!(knobs(&root), [("queue.max_sectors_kb", 1280, 64)]);
        machine.put("sys/block/dm-0/dm/uuid", "mpath-360000\n");
        assert!(knobs(&root).is_empty(), "a path of dm-multipath");
        machine.put("sys/block/dm-0/dm/uuid", "CRYPT-abc\n");
        machine.put("sys/block/sda/queue/zoned", "host-managed\n");
        assert!(knobs(&root).is_empty(), "zoned");
    }

    #[test]
    fn requests_of_a_whole_host_stay() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/nr_requests", "64\n");
        machine.put("sys/block/sda/queue/scheduler", "[none] mq-deadline\n");
        assert_eq!(knobs(&root).len(), 1, "it is alone");
        machine.put("sys/block/sda/device/scsi_device/0:0:0:0/dev", "");
        assert!(knobs(&root).is_empty());
        machine.put("sys/block/sda/queue/scheduler", "none [mq-deadline]\n");
        assert_eq!(knobs(&root).len(), 1, "the scheduler's");
    }

    #[test]
    fn with_bfq_the_throttle_is_not_touched() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/wbt_lat_usec", "75000\n");
        machine.put("sys/block/sda/queue/scheduler", "none mq-deadline [bfq]\n");
        assert!(knobs(&root).is_empty(), "BFQ has switched it off, whatever the file says");
        machine.put("sys/block/sda/queue/scheduler", "none [mq-deadline] bfq\n");
        assert_eq!(knobs(&root), [("queue.wbt_lat_usec", 75_000, 18_750)]);
    }

    #[test]
    fn where_zfs_is_the_throttle_is_not_touched() {
        let machine = FakeKernel::new();
        let root = machine.root();
        machine.put("sys/block/sda/queue/wbt_lat_usec", "2000\n");
        machine.put("sys/module/zfs/parameters/zfs_vdev_async_write_max_active", "10\n");
        machine.put("sys/module/zfs/parameters/zfs_vdev_async_write_min_active", "2\n");
        assert_eq!(knobs(&root), [("zfs.async_write_max_active", 10, 2)]);
    }
}
