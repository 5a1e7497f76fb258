//! The mounts of this host, read again when they changed.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_linux::parse::file_system::is_on_disk;
use eke_linux::parse::mountinfo;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::places::{Device, Place, Places};
use eke_prefetch_model::file_set::{Kind, Stamp};
use eke_prefetch_model::learn::Found;

const MOUNTINFO: &str = "proc/self/mountinfo";
const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// The mounts and the block devices of this host.
#[derive(Debug)]
pub struct Mounts {
    root: Root,
    /// Tells of changes: poll(2) says so (proc_pid_mounts(5), since Linux 2.6.15).
    changes: Option<File>,
    places: Places,
    devices: HashMap<Device, Option<PathBuf>>,
}

impl Mounts {
    /// As they are now.
    pub fn read(root: &Root) -> Self {
        let changes = File::open(root.path(MOUNTINFO)).ok();
        let mut mounts =
            Self { root: root.clone(), changes, places: Places::default(), devices: HashMap::new() };
        mounts.read_again();
        mounts
    }

    fn read_again(&mut self) {
        let text = self.root.read_bytes(MOUNTINFO).unwrap_or_default();
        self.places = Places::new(mountinfo::parse(&text));
        self.devices.clear();
    }

    /// Reads them again if they changed.
    pub fn refresh(&mut self) {
        let Some(file) = &self.changes else { return self.read_again() };
        let mut fds = [PollFd::new(file, PollFlags::PRI)];
        let has_changed = poll(&mut fds, Some(&NO_WAIT))
            .is_ok_and(|_| fds[0].revents().intersects(PollFlags::PRI | PollFlags::ERR));
        if has_changed {
            self.read_again();
        }
    }

    /// Where a file is.
    pub fn find(&self, device: Device, inside: &Path) -> Option<Place<'_>> {
        self.places.find(device, inside)
    }

    /// The type of a mounted file system.
    pub fn kind(&self, device: Device) -> Option<&str> {
        self.places.kind(device)
    }

    /// Does a path lead to this file system, by the mounts alone, and can it be looked up without waiting for others?
    pub fn shows(&self, device: Device, path: &Path) -> bool {
        self.places.device_at(path) == Some(device) && self.places.answers(path)
    }

    /// A file by its file system, the path in it and its state; `None` if it is none that could be read before. btrfs gives each subvolume a
    /// number of its own in `st_dev`, which only stat(2) tells.
    pub fn file(&self, device: Device, inside: &Path, kind: Kind, stamp: Stamp) -> Option<Found> {
        let place = self.find(device, inside).filter(|place| is_on_disk(place.kind))?;
        let dev = match place.kind {
            "btrfs" | "bcachefs" if self.places.answers(&place.path) => {
                std::fs::symlink_metadata(&place.path).map_or(stamp.dev, |m| m.dev())
            }
            _ => stamp.dev,
        };
        Some(Found { path: place.path, kind, stamp: Stamp { dev, ..stamp } })
    }

    /// A block device, as `/dev/sda1`.
    pub fn device(&mut self, device: Device) -> Option<Found> {
        let root = &self.root;
        let path = self.devices.entry(device).or_insert_with(|| device_node(root, device)).clone()?;
        let stamp = Stamp { dev: device.st_dev(), ..Stamp::default() };
        Some(Found { path, kind: Kind::Device, stamp })
    }
}

fn device_node(root: &Root, device: Device) -> Option<PathBuf> {
    let uevent = root.read(format!("sys/dev/block/{}:{}/uevent", device.major, device.minor)).ok()?;
    let name = uevent.lines().find_map(|line| line.strip_prefix("DEVNAME="))?;
    Some(Path::new("/dev").join(name))
}
