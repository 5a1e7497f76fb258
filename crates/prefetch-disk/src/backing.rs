//! The block devices below a file system.
//!
//! A partition is part of a disk (`/sys/dev/block/M:N/partition`). Device mapper and md are built on other devices (`slaves/`). A loop device is
//! backed by a file (`loop/backing_file`), whose file system has devices again. btrfs has a device number that sysfs does not know, and overlay has
//! directories of other file systems: for these the mount's source and options decide.

use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_linux::device::{self, Device};
use eke_linux::parse::file_system::{Nature, nature};
use eke_linux::parse::mountinfo::{Mount, mount_of};
use serde::{Deserialize, Serialize};

/// The bound on nested devices, such as loop devices on files on loop devices. No real machine reaches it.
const DEEPEST: u32 = 12;

/// A block device with its own I/O counters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// Its kernel name (`sda`).
    pub name: String,
    /// Its number, as in `st_dev`.
    pub dev: u64,
    /// Its size in bytes; 0 if unknown.
    pub size_bytes: u64,
    /// What it reports of itself. Virtual disks report anything, so a measurement overrides this.
    pub reports_rotational: bool,
}

/// The storage at the lowest level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// Disks, sorted by name, whose counters show others' I/O.
    Disks(Vec<Block>),
    /// A server, which may never answer.
    Network,
    /// Memory: nothing to read.
    Memory,
    /// Unknown, for this reason.
    Unknown(String),
}

/// The devices below a file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backing {
    /// The file system's number in mountinfo. It differs from the files' `st_dev` for btrfs and overlay.
    pub dev: u64,
    /// The type of the file system.
    pub file_system: String,
    /// The device names from the file system's own device downwards, for people.
    pub through: Vec<String>,
    /// The file system's own block device, if it has one: the target of measurements.
    pub own: Option<Block>,
    /// The storage at the lowest level.
    pub storage: Storage,
    /// Whether there is a page cache in between (a loop device without direct I/O). Then the disk may read more than was requested.
    pub cached_between: bool,
}

/// The devices below a mount. `mounts` is all of mountinfo. Reads only sysfs below `root`, so a server that does not answer blocks nobody.
pub fn backing(root: &Root, mount: &Mount, mounts: &[Mount]) -> Backing {
    let mut walk = Walk { root, mounts, through: Vec::new(), cached: false };
    let own = walk.own(mount);
    let storage = walk.mount(mount, 0);
    Backing {
        dev: device::number(&mount.device).unwrap_or(0),
        file_system: mount.kind.clone(),
        through: walk.through,
        own,
        storage,
        cached_between: walk.cached,
    }
}

/// Whether dm-crypt (LUKS, plain, BitLocker) encrypts any device between a file system and its disks.
pub fn is_encrypted(root: &Root, mount: &Mount, mounts: &[Mount]) -> bool {
    // What cryptsetup writes there begins with this for all of its formats.
    let is_crypt = |name: &String| {
        let uuid = root.read(format!("sys/class/block/{}/dm/uuid", name.replace('/', "!")));
        uuid.is_ok_and(|uuid| uuid.starts_with("CRYPT-"))
    };
    backing(root, mount, mounts).through.iter().any(is_crypt)
}

struct Walk<'a> {
    root: &'a Root,
    mounts: &'a [Mount],
    through: Vec<String>,
    cached: bool,
}

impl Walk<'_> {
    fn mount(&mut self, mount: &Mount, depth: u32) -> Storage {
        match nature(&mount.kind) {
            Nature::Network | Nature::Trigger => Storage::Network,
            Nature::Memory => Storage::Memory,
            Nature::Opaque => Storage::Unknown(format!("{} does not report its devices", mount.kind)),
            Nature::Overlay => self.overlay(mount, depth),
            Nature::Disk => match self.devices_of(mount) {
                devices if devices.is_empty() => Storage::Unknown(format!(
                    "no block device of {} ({}) is in sysfs",
                    mount.source.display(),
                    mount.device
                )),
                devices => all(devices.into_iter().map(|dev| self.device(dev, depth + 1))),
            },
        }
    }

    /// The devices of all its directories: a file may be in any of them.
    fn overlay(&mut self, mount: &Mount, depth: u32) -> Storage {
        if depth > DEEPEST {
            return too_deep();
        }
        let backing: Vec<&Mount> =
            overlay_dirs(&mount.options).iter().filter_map(|dir| mount_of(dir, self.mounts)).collect();
        let others = backing.into_iter().filter(|other| other.id != mount.id);
        all(others.map(|other| self.mount(other, depth + 1)).collect::<Vec<_>>().into_iter())
    }

    /// The file system's own devices: by its number, else by its source's name; for btrfs all devices of that file system.
    fn devices_of(&self, mount: &Mount) -> Vec<u64> {
        let by_number = device::number(&mount.device).filter(|dev| self.sys(*dev, "").exists());
        let by_source = || {
            let name = mount.source.strip_prefix("/dev").ok()?.to_str()?.replace('/', "!");
            device::number(&self.root.read(format!("sys/class/block/{name}/dev")).ok()?)
        };
        let Some(first) = by_number.or_else(by_source) else { return Vec::new() };
        if mount.kind == "btrfs" { self.all_of_btrfs(first) } else { vec![first] }
    }

    /// `/sys/fs/btrfs/UUID/devices/NAME` (Linux 3.14).
    fn all_of_btrfs(&self, one: u64) -> Vec<u64> {
        let ids = self.root.list("sys/fs/btrfs").unwrap_or_default();
        let each = ids.into_iter().map(|id| {
            let dir = format!("sys/fs/btrfs/{id}/devices");
            let names = self.root.list(&dir).unwrap_or_default().into_iter();
            let numbers =
                names.filter_map(|name| device::number(&self.root.read(format!("{dir}/{name}/dev")).ok()?));
            numbers.collect::<Vec<u64>>()
        });
        each.into_iter().find(|devices| devices.contains(&one)).unwrap_or_else(|| vec![one])
    }

    fn own(&self, mount: &Mount) -> Option<Block> {
        if nature(&mount.kind) != Nature::Disk {
            return None;
        }
        self.devices_of(mount).first().map(|dev| self.block(*dev))
    }

    fn device(&mut self, dev: u64, depth: u32) -> Storage {
        let name = self.name(dev);
        if !self.through.contains(&name) {
            self.through.push(name.clone());
        }
        if depth > DEEPEST {
            return too_deep();
        }
        if self.sys(dev, "partition").exists() {
            return match self.read(dev, "../dev").as_deref().and_then(device::number) {
                Some(disk) => self.device(disk, depth + 1),
                None => Storage::Unknown(format!("sysfs does not show the disk of partition {name}")),
            };
        }
        if let Some(file) = self.read(dev, "loop/backing_file") {
            return self.loop_device(dev, Path::new(file.trim_end_matches('\n')), depth);
        }
        let slaves = self.slaves(dev);
        if !slaves.is_empty() {
            return all(slaves
                .into_iter()
                .map(|slave| self.device(slave, depth + 1))
                .collect::<Vec<_>>()
                .into_iter());
        }
        if name.starts_with("zram") || name.starts_with("ram") {
            return Storage::Memory;
        }
        Storage::Disks(vec![self.block(dev)])
    }

    /// The disk of a loop device's file. If it has no disk with counters, the loop device itself, whose counters are the best available.
    fn loop_device(&mut self, dev: u64, file: &Path, depth: u32) -> Storage {
        let through = self.through.len();
        let backing = match mount_of(file, self.mounts) {
            Some(mount) => self.mount(mount, depth + 1),
            None => Storage::Unknown(format!("{} is on no mount", file.display())),
        };
        if matches!(backing, Storage::Disks(_)) {
            self.cached |= self.read(dev, "loop/dio").as_deref().map(str::trim) != Some("1");
            return backing;
        }
        self.through.truncate(through);
        Storage::Disks(vec![self.block(dev)])
    }

    fn slaves(&self, dev: u64) -> Vec<u64> {
        let names =
            self.root.list(Path::new("sys/dev/block").join(Device::of(dev).to_string()).join("slaves"));
        let names = names.unwrap_or_default().into_iter();
        names.filter_map(|name| device::number(&self.read(dev, &format!("slaves/{name}/dev"))?)).collect()
    }

    fn block(&self, dev: u64) -> Block {
        let number = |file: &str| self.read(dev, file).and_then(|text| text.trim().parse::<u64>().ok());
        // Partitions have no queue of their own.
        let rotational = number("queue/rotational").or_else(|| number("../queue/rotational"));
        Block {
            name: self.name(dev),
            dev,
            size_bytes: number("size").unwrap_or(0).saturating_mul(512),
            reports_rotational: rotational == Some(1),
        }
    }

    fn name(&self, dev: u64) -> String {
        let text = self.read(dev, "uevent").unwrap_or_default();
        device_name(&text).unwrap_or_else(|| Device::of(dev).to_string())
    }

    fn read(&self, dev: u64, file: &str) -> Option<String> {
        self.root.read(Path::new("sys/dev/block").join(Device::of(dev).to_string()).join(file)).ok()
    }

    fn sys(&self, dev: u64, file: &str) -> PathBuf {
        self.root.path(Path::new("sys/dev/block").join(Device::of(dev).to_string()).join(file))
    }
}

fn too_deep() -> Storage {
    Storage::Unknown(format!("there are more than {DEEPEST} devices on top of each other"))
}

/// The storage of several devices: a network or unknown storage takes precedence over disks, and disks over memory.
fn all(storages: impl Iterator<Item = Storage>) -> Storage {
    let mut disks: Vec<Block> = Vec::new();
    let mut other = None;
    for storage in storages {
        match storage {
            Storage::Disks(more) => disks.extend(more),
            // A network may hang, so it takes precedence over unknown storage.
            Storage::Network => other = Some(Storage::Network),
            storage => other = other.or(Some(storage)),
        }
    }
    disks.sort_by(|a, b| a.name.cmp(&b.name));
    disks.dedup();
    match other {
        Some(Storage::Memory) if !disks.is_empty() => Storage::Disks(disks),
        Some(other) => other,
        None if disks.is_empty() => Storage::Unknown("it has no device".to_owned()),
        None => Storage::Disks(disks),
    }
}

/// `DEVNAME=sda1` in a device's `uevent`.
fn device_name(uevent: &str) -> Option<String> {
    uevent.lines().find_map(|line| line.strip_prefix("DEVNAME=")).map(str::to_owned)
}

/// The directories of an overlay's options (Documentation/filesystems/overlayfs.rst): `lowerdir=a:b`, `upperdir=c`, and since Linux 6.7
/// `lowerdir+=a`. A backslash escapes a colon in a name.
fn overlay_dirs(options: &str) -> Vec<PathBuf> {
    let lists = options.split(',').filter_map(|option| {
        let (key, value) = option.split_once('=')?;
        matches!(key, "lowerdir" | "lowerdir+" | "upperdir").then_some(value)
    });
    let escaped = lists.flat_map(|list| {
        let kept = list.replace("\\:", "\0");
        kept.split(':').map(|dir| dir.replace('\0', ":")).collect::<Vec<_>>()
    });
    escaped.filter(|dir| dir.starts_with('/')).map(PathBuf::from).collect()
}

#[cfg(test)]
#[path = "backing_tests.rs"]
mod tests;
