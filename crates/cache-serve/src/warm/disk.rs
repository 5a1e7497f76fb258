//! What the disks below the backing directory do, by `/sys/block/*/stat`.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eke_cache_mounts::{Device, at};
use eke_cachefs::tier::Tier;
use eke_linux::Root;
use eke_linux::parse::{disk_stat, mountinfo};

use super::give_way::Activity;

/// Devices over devices: a partition of LVM over RAID over disks, and more than anybody has.
const DEEPEST: u32 = 8;

/// The disks of one backing directory.
#[derive(Debug)]
pub struct Disks {
    /// Their `stat` files. Empty: it is on no disk of this machine, and only the mount's own reads are known.
    stats: Vec<PathBuf>,
    tier: Arc<Tier>,
}

impl Disks {
    /// The disks of the file system that this directory is on.
    pub fn of(root: &Root, dir: BorrowedFd<'_>, tier: Arc<Tier>) -> Self {
        let mut stats = Vec::new();
        if let Some(device) = device(root, dir) {
            find(&root.path(format!("sys/dev/block/{device}")), DEEPEST, &mut stats);
        }
        Self { stats, tier }
    }

    /// What they do now. A disk that is gone does nothing.
    pub fn activity(&self) -> Activity {
        if self.stats.is_empty() {
            let report = self.tier.report();
            return Activity { done: report.misses, in_flight: self.tier.active_reads() };
        }
        let texts = self.stats.iter().filter_map(|path| std::fs::read_to_string(path).ok());
        let stats = texts.filter_map(|text| disk_stat::parse(&text));
        stats.fold(Activity::default(), |sum, stat| Activity {
            done: sum.done + stat.reads.count + stat.writes.count,
            in_flight: sum.in_flight + stat.in_flight,
        })
    }
}

/// The block device of a file system. Some (Btrfs) have numbers of their own; the list of mounts names their device.
fn device(root: &Root, dir: BorrowedFd<'_>) -> Option<Device> {
    let statx = at::stat(dir).ok()?;
    let device = Device { major: statx.stx_dev_major, minor: statx.stx_dev_minor };
    if device.major != 0 {
        return Some(device);
    }
    let mount = at::mount_of(dir.as_fd(), &statx)?;
    let list = mountinfo::parse(&root.read_bytes("proc/self/mountinfo").ok()?);
    let source = list.into_iter().find(|found| found.id == mount)?.source;
    let node = std::fs::metadata(root.path(source.strip_prefix("/").ok()?)).ok()?;
    (node.rdev() != 0).then(|| Device::of(node.rdev()))
}

/// Adds the `stat` files of the disks that a device is on.
fn find(device: &Path, depth: u32, stats: &mut Vec<PathBuf>) {
    let Ok(mut device) = std::fs::canonicalize(device) else { return };
    // Another partition of the same disk waits for the same head.
    if device.join("partition").exists() {
        device.pop();
    }
    let slaves = std::fs::read_dir(device.join("slaves")).into_iter().flatten().flatten();
    let slaves: Vec<PathBuf> = slaves.map(|slave| slave.path()).collect();
    if slaves.is_empty() || depth == 0 {
        let stat = device.join("stat");
        if !stats.contains(&stat) {
            stats.push(stat);
        }
    } else {
        slaves.iter().for_each(|slave| find(slave, depth - 1, stats));
    }
}

#[expect(clippy::disallowed_methods, reason = "files of the test")]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_volume_on_partitions_is_on_their_disks() {
        let root = tempfile::tempdir().unwrap();
        let sys = root.path().join("sys");
        for dir in ["block/sda/sda1", "block/sdb/sdb1", "block/dm-0/slaves", "dev/block"] {
            fs::create_dir_all(sys.join(dir)).unwrap();
        }
        for (disk, done, in_flight) in [("sda", 10, 1), ("sdb", 20, 0), ("dm-0", 99, 9)] {
            let text = format!("{done} 0 8 1 5 0 8 1 {in_flight} 1 1\n");
            fs::write(sys.join("block").join(disk).join("stat"), text).unwrap();
        }
        for part in ["sda/sda1", "sdb/sdb1"] {
            fs::write(sys.join("block").join(part).join("partition"), "1\n").unwrap();
        }
        symlink("../../sda/sda1", sys.join("block/dm-0/slaves/sda1")).unwrap();
        symlink("../../sdb/sdb1", sys.join("block/dm-0/slaves/sdb1")).unwrap();
        symlink("../../block/dm-0", sys.join("dev/block/253:0")).unwrap();
        let mut stats = Vec::new();
        find(&sys.join("dev/block/253:0"), DEEPEST, &mut stats);
        find(&sys.join("block/sda/sda1"), DEEPEST, &mut stats);
        assert_eq!(stats.len(), 2, "{stats:?}");
        let disks = Disks { stats, tier: Arc::new(Tier::default()) };
        assert_eq!(disks.activity(), Activity { done: 40, in_flight: 1 });
        let none = Disks { stats: Vec::new(), tier: Arc::new(Tier::default()) };
        assert_eq!(none.activity(), Activity::default());
    }
}
