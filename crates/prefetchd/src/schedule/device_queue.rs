//! Sorts requests by disk. Compares only paths and numbers, because open(2) may hang.

use std::collections::{BTreeMap, HashSet};

use eke_linux::device;
use eke_linux::parse::mountinfo::Mount;

use crate::file::mount::mount_of_request;
use crate::read::job::disks;
use crate::read::{DeviceQueue, MountedRequest};
use crate::request::ReadRequest;
use eke_prefetch_disk::DiskProfile;

/// The device queues, and the refused requests with their reasons.
pub fn device_queues(
    requests: Vec<ReadRequest>,
    mounts: &[Mount],
    barred: &HashSet<u64>,
    mut profile: impl FnMut(&Mount) -> DiskProfile,
) -> (Vec<DeviceQueue>, Vec<(ReadRequest, String)>) {
    let mut known: BTreeMap<u64, DiskProfile> = BTreeMap::new();
    let mut device_queues: BTreeMap<(Vec<u64>, u64), DeviceQueue> = BTreeMap::new();
    let mut refused = Vec::new();
    for request in requests {
        let mount = match mount_of_request(&request, mounts) {
            Ok(mount) => mount,
            Err(why) => {
                refused.push((request, why));
                continue;
            }
        };
        let dev = device::number(&mount.device).unwrap_or(0);
        let profile = known.entry(mount.id).or_insert_with(|| profile(mount));
        if let Some(why) = off(profile, dev, barred) {
            refused.push((request, why));
            continue;
        }
        let disks = disks(profile);
        let alone = if disks.is_empty() { dev } else { 0 };
        let device = || DeviceQueue { profile: profile.clone(), requests: Vec::new() };
        device_queues
            .entry((disks, alone))
            .or_insert_with(device)
            .requests
            .push(MountedRequest { request, mount: dev });
    }
    (device_queues.into_values().collect(), refused)
}

fn off(profile: &DiskProfile, dev: u64, barred: &HashSet<u64>) -> Option<String> {
    if barred.contains(&dev) {
        return Some("its file system did not answer before, and is not tried yet".to_owned());
    }
    (!profile.strategy.is_enabled)
        .then(|| profile.why.last().cloned().unwrap_or_else(|| "its disk is not read ahead".to_owned()))
}

#[cfg(test)]
mod tests {
    use eke_linux::parse::mountinfo;
    use rustix::fs::makedev;

    use super::*;
    use eke_prefetch_disk::backing::{Backing, Block, Storage};
    use eke_prefetch_disk::decide;
    use eke_prefetch_model::file_set::{Kind, Stamp};
    use eke_prefetch_model::pages::Pages;

    const MOUNTS: &str = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /home rw - xfs /dev/sda2 rw\n\
        3 1 0:40 / /net rw - nfs4 server:/x rw\n4 1 0:6 / /dev rw - devtmpfs udev rw\n5 1 8:17 / /data rw - ext4 /dev/sdb1 rw\n";

    fn request(path: &str, kind: Kind, dev: u64) -> ReadRequest {
        ReadRequest {
            path: path.into(),
            kind,
            stamp: Stamp { dev, ..Stamp::default() },
            pages: Pages::default(),
            user: 0,
            is_own: false,
        }
    }

    fn profile(mount: &Mount) -> DiskProfile {
        let disk = |name: &str, minor| {
            Storage::Disks(vec![Block {
                name: name.into(),
                dev: makedev(8, minor),
                size_bytes: 1 << 30,
                reports_rotational: true,
            }])
        };
        let storage = match mount.device.as_str() {
            "8:1" | "8:2" => disk("sda", 0),
            "8:17" => disk("sdb", 16),
            "0:40" => Storage::Network,
            _ => Storage::Memory,
        };
        let backing = Backing {
            dev: device::number(&mount.device).unwrap(),
            file_system: mount.kind.clone(),
            through: Vec::new(),
            own: None,
            storage,
            cached_between: false,
        };
        decide(backing, None)
    }

    fn sorted(
        requests: Vec<ReadRequest>,
        barred: &HashSet<u64>,
    ) -> (Vec<Vec<String>>, Vec<(String, String)>) {
        let mounts = mountinfo::parse(MOUNTS.as_bytes());
        let (device_queues, refused) = device_queues(requests, &mounts, barred, profile);
        let path = |request: &ReadRequest| request.path.display().to_string();
        (
            device_queues
                .iter()
                .map(|device| device.requests.iter().map(|on| path(&on.request)).collect())
                .collect(),
            refused.iter().map(|(request, why)| (path(request), why.clone())).collect(),
        )
    }

    #[test]
    fn file_systems_of_one_disk_share_a_queue_in_the_order_given() {
        let files = ["/usr/b", "/data/x", "/home/a", "/usr/a"].map(|path| request(path, Kind::File, 0));
        let (device_queues, refused) = sorted(files.to_vec(), &HashSet::new());
        assert_eq!(device_queues, [vec!["/usr/b", "/home/a", "/usr/a"], vec!["/data/x"]]);
        assert!(refused.is_empty());
    }

    #[test]
    fn servers_memory_and_barred_mounts_are_left_out_with_a_reason() {
        let requests = ["/net/x", "/dev/shm", "/data/x", "relative"].map(|path| request(path, Kind::File, 0));
        let (device_queues, refused) = sorted(requests.to_vec(), &HashSet::from([makedev(8, 17)]));
        assert!(device_queues.is_empty());
        let reasons = ["may never answer", "in memory", "did not answer", "no mount"];
        assert_eq!(refused.len(), reasons.len());
        assert!(refused.iter().zip(reasons).all(|((_, why), part)| why.contains(part)), "{refused:?}");
    }

    #[test]
    fn only_the_device_of_a_mounted_file_system_that_keeps_its_metadata_there_is_read() {
        let requests = [
            request("/dev/sda1", Kind::Device, makedev(8, 1)),
            request("/dev/sda2", Kind::Device, makedev(8, 2)),
            request("/dev/sdc", Kind::Device, makedev(8, 32)),
            request("/home/me/sda1", Kind::Device, makedev(8, 1)),
        ];
        let (device_queues, refused) = sorted(requests.to_vec(), &HashSet::new());
        assert_eq!(device_queues, [vec!["/dev/sda1"]]);
        let reasons = ["xfs keeps no", "not the device of", "outside of /dev"];
        assert!(refused.iter().zip(reasons).all(|((_, why), part)| why.contains(part)), "{refused:?}");
    }
}
