//! Which wants are on which disk. Only paths and numbers are looked at: to open a file is to risk that it hangs.

use std::collections::{BTreeMap, HashSet};

use eke_linux::parse::file_system::keeps_metadata_in_device;
use eke_linux::parse::mountinfo::{Mount, mount_of};

use super::Want;
use crate::disk::below::Bottom;
use crate::disk::{DiskKind, Figures, number};
use eke_prefetch_model::file_set::Kind;

/// A want, and the mount that it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnMount {
    /// What is wanted.
    pub want: Want,
    /// The mount's number in mountinfo.
    pub mount: u64,
}

/// What is read by one order, by the same threads: the wants on one disk, or on one server.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    /// What its disk is like.
    pub figures: Figures,
    /// In the order in which they are wanted.
    pub wants: Vec<OnMount>,
}

impl Lane {
    /// The numbers of the disks whose counters show what others do; none where there are no counters.
    pub fn disks(&self) -> Vec<u64> {
        disks(&self.figures)
    }

    /// May it hang for good, as servers do?
    pub fn is_network(&self) -> bool {
        self.figures.kind == DiskKind::Network
    }
}

/// The numbers of the disks below.
pub fn disks(figures: &Figures) -> Vec<u64> {
    match &figures.below.bottom {
        Bottom::Disks(disks) => disks.iter().map(|disk| disk.dev).collect(),
        _ => Vec::new(),
    }
}

/// The lanes, and what is in none, with the reason.
pub fn lanes(
    wants: Vec<Want>,
    mounts: &[Mount],
    barred: &HashSet<u64>,
    mut figures: impl FnMut(&Mount) -> Figures,
) -> (Vec<Lane>, Vec<(Want, String)>) {
    let mut known: BTreeMap<u64, Figures> = BTreeMap::new();
    let mut lanes: BTreeMap<(Vec<u64>, u64), Lane> = BTreeMap::new();
    let mut refused = Vec::new();
    for want in wants {
        let mount = match place(&want, mounts) {
            Ok(mount) => mount,
            Err(why) => {
                refused.push((want, why));
                continue;
            }
        };
        let dev = number::parse(&mount.device).unwrap_or(0);
        let figures = known.entry(mount.id).or_insert_with(|| figures(mount));
        if let Some(why) = off(figures, dev, barred) {
            refused.push((want, why));
            continue;
        }
        let disks = disks(figures);
        let alone = if disks.is_empty() { dev } else { 0 };
        let lane = || Lane { figures: figures.clone(), wants: Vec::new() };
        lanes.entry((disks, alone)).or_insert_with(lane).wants.push(OnMount { want, mount: dev });
    }
    (lanes.into_values().collect(), refused)
}

fn off(figures: &Figures, dev: u64, barred: &HashSet<u64>) -> Option<String> {
    if barred.contains(&dev) {
        return Some("its file system did not answer before, and is not asked again".to_owned());
    }
    (!figures.way.on)
        .then(|| figures.why.last().cloned().unwrap_or_else(|| "its disk is not read ahead".to_owned()))
}

/// The number of the file system that a want is on; none if it is on no mount that is read.
pub(super) fn mount_number(want: &Want, mounts: &[Mount]) -> Option<u64> {
    number::parse(&place(want, mounts).ok()?.device)
}

/// The mount of a want: of files that which covers the path, of a device that which is of it, and keeps its metadata there.
fn place<'a>(want: &Want, mounts: &'a [Mount]) -> Result<&'a Mount, String> {
    if want.kind != Kind::Device {
        return mount_of(&want.path, mounts).ok_or_else(|| "it is on no mount".to_owned());
    }
    if !want.path.starts_with("/dev") {
        return Err("a device outside of /dev is not opened".to_owned());
    }
    let of_it = |mount: &&Mount| number::parse(&mount.device) == Some(want.stamp.dev);
    let mount = mounts
        .iter()
        .find(of_it)
        .ok_or_else(|| "it is not the device of a mounted file system".to_owned())?;
    if keeps_metadata_in_device(&mount.kind) {
        Ok(mount)
    } else {
        Err(format!("{} keeps no metadata in the pages of its device", mount.kind))
    }
}

#[cfg(test)]
mod tests {
    use eke_linux::parse::mountinfo;
    use rustix::fs::makedev;

    use super::*;
    use crate::disk::below::{Below, Block};
    use crate::disk::decide;
    use eke_prefetch_model::file_set::Stamp;
    use eke_prefetch_model::pages::Pages;

    const MOUNTS: &str = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 8:2 / /home rw - xfs /dev/sda2 rw\n\
        3 1 0:40 / /net rw - nfs4 server:/x rw\n4 1 0:6 / /dev rw - devtmpfs udev rw\n5 1 8:17 / /data rw - ext4 /dev/sdb1 rw\n";

    fn want(path: &str, kind: Kind, dev: u64) -> Want {
        Want { path: path.into(), kind, stamp: Stamp { dev, ..Stamp::default() }, pages: Pages::default() }
    }

    fn figures(mount: &Mount) -> Figures {
        let disk = |name: &str, minor| {
            Bottom::Disks(vec![Block {
                name: name.into(),
                dev: makedev(8, minor),
                size_bytes: 1 << 30,
                says_rotational: true,
            }])
        };
        let bottom = match mount.device.as_str() {
            "8:1" | "8:2" => disk("sda", 0),
            "8:17" => disk("sdb", 16),
            "0:40" => Bottom::Network,
            _ => Bottom::Memory,
        };
        let below = Below {
            dev: number::parse(&mount.device).unwrap(),
            file_system: mount.kind.clone(),
            through: Vec::new(),
            own: None,
            bottom,
            cached_between: false,
        };
        decide(below, None)
    }

    fn sorted(wants: Vec<Want>, barred: &HashSet<u64>) -> (Vec<Vec<String>>, Vec<(String, String)>) {
        let mounts = mountinfo::parse(MOUNTS.as_bytes());
        let (lanes, refused) = lanes(wants, &mounts, barred, figures);
        let path = |want: &Want| want.path.display().to_string();
        (
            lanes.iter().map(|lane| lane.wants.iter().map(|on| path(&on.want)).collect()).collect(),
            refused.iter().map(|(want, why)| (path(want), why.clone())).collect(),
        )
    }

    #[test]
    fn file_systems_of_one_disk_are_one_lane_in_the_order_given() {
        let files = ["/usr/b", "/data/x", "/home/a", "/usr/a"].map(|path| want(path, Kind::File, 0));
        let (lanes, refused) = sorted(files.to_vec(), &HashSet::new());
        assert_eq!(lanes, [vec!["/usr/b", "/home/a", "/usr/a"], vec!["/data/x"]]);
        assert!(refused.is_empty());
    }

    #[test]
    fn servers_memory_and_barred_mounts_are_left_out_with_a_reason() {
        let wants = ["/net/x", "/dev/shm", "/data/x", "relative"].map(|path| want(path, Kind::File, 0));
        let (lanes, refused) = sorted(wants.to_vec(), &HashSet::from([makedev(8, 17)]));
        assert!(lanes.is_empty());
        let reasons = ["not known to be quick", "in memory", "did not answer", "no mount"];
        assert_eq!(refused.len(), reasons.len());
        assert!(refused.iter().zip(reasons).all(|((_, why), part)| why.contains(part)), "{refused:?}");
    }

    #[test]
    fn only_the_device_of_a_mounted_file_system_that_keeps_its_metadata_there_is_read() {
        let wants = [
            want("/dev/sda1", Kind::Device, makedev(8, 1)),
            want("/dev/sda2", Kind::Device, makedev(8, 2)),
            want("/dev/sdc", Kind::Device, makedev(8, 32)),
            want("/home/me/sda1", Kind::Device, makedev(8, 1)),
        ];
        let (lanes, refused) = sorted(wants.to_vec(), &HashSet::new());
        assert_eq!(lanes, [vec!["/dev/sda1"]]);
        let reasons = ["xfs keeps no", "not the device of", "outside of /dev"];
        assert!(refused.iter().zip(reasons).all(|((_, why), part)| why.contains(part)), "{refused:?}");
    }
}
