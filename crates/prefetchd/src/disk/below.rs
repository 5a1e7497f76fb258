//! Which block devices are below a file system.
//!
//! A partition is part of a disk (`/sys/dev/block/M:N/partition`), what device mapper and md make is on others (`slaves/`), a
//! loop device is on a file (`loop/backing_file`), whose file system is on something again. btrfs has no device number
//! that sysfs knows, and overlay has directories of others: there the mount's own words are followed.

use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_linux::parse::file_system::{Nature, nature};
use eke_linux::parse::mountinfo::{Mount, mount_of};
use serde::{Deserialize, Serialize};

use super::number;

/// Loops over files on loops, and so on: nobody has more, and what has cannot make this go on for ever.
const DEEPEST: u32 = 12;

/// A block device with counters of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    /// The kernel's name of it (`sda`).
    pub name: String,
    /// Its number, as in `st_dev`.
    pub dev: u64,
    /// Its size in bytes; 0 where sysfs does not say.
    pub size_bytes: u64,
    /// What it says of itself, which is not to be believed: virtual disks say anything.
    pub says_rotational: bool,
}

/// What is at the bottom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bottom {
    /// These disks, in order of their names, whose counters show what others do.
    Disks(Vec<Block>),
    /// A server, which may never answer.
    Network,
    /// Memory: nothing to fetch.
    Memory,
    /// It cannot be told, for this reason.
    Unknown(String),
}

/// What is below a file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Below {
    /// The file system's number in mountinfo. Of btrfs and overlay it differs from its files' `st_dev`.
    pub dev: u64,
    /// The type of the file system.
    pub file_system: String,
    /// The names from the file system's own device downwards, for people.
    pub through: Vec<String>,
    /// The file system's own block device, if it has one: what a measurement reads.
    pub own: Option<Block>,
    /// What is at the bottom.
    pub bottom: Bottom,
    /// Is there a page cache in between (a loop device without direct I/O)? Then more may be read below than was asked for
    /// above.
    pub cached_between: bool,
}

/// What is below a mount. `mounts` are all of mountinfo; sysfs is read below `root`; nothing else is opened, so a server that
/// does not answer holds up nobody.
pub fn below(root: &Root, mount: &Mount, mounts: &[Mount]) -> Below {
    let mut walk = Walk { root, mounts, through: Vec::new(), cached: false };
    let own = walk.own(mount);
    let bottom = walk.mount(mount, 0);
    Below {
        dev: number::parse(&mount.device).unwrap_or(0),
        file_system: mount.kind.clone(),
        through: walk.through,
        own,
        bottom,
        cached_between: walk.cached,
    }
}

struct Walk<'a> {
    root: &'a Root,
    mounts: &'a [Mount],
    through: Vec<String>,
    cached: bool,
}

impl Walk<'_> {
    fn mount(&mut self, mount: &Mount, depth: u32) -> Bottom {
        match nature(&mount.kind) {
            Nature::Network | Nature::Trigger => Bottom::Network,
            Nature::Memory => Bottom::Memory,
            Nature::Opaque => Bottom::Unknown(format!("{} does not tell its devices", mount.kind)),
            Nature::Overlay => self.overlay(mount, depth),
            Nature::Disk => match self.devices_of(mount) {
                devices if devices.is_empty() => Bottom::Unknown(format!(
                    "no block device of {} ({}) is in sysfs",
                    mount.source.display(),
                    mount.device
                )),
                devices => all(devices.into_iter().map(|dev| self.device(dev, depth + 1))),
            },
        }
    }

    /// Overlays are searched in all their directories: a file may be in any.
    fn overlay(&mut self, mount: &Mount, depth: u32) -> Bottom {
        if depth > DEEPEST {
            return too_deep();
        }
        let below: Vec<&Mount> =
            overlay_dirs(&mount.options).iter().filter_map(|dir| mount_of(dir, self.mounts)).collect();
        let others = below.into_iter().filter(|other| other.id != mount.id);
        all(others.map(|other| self.mount(other, depth + 1)).collect::<Vec<_>>().into_iter())
    }

    /// The file system's own devices: by its number, by its source's name, and all of a btrfs that has that one.
    fn devices_of(&self, mount: &Mount) -> Vec<u64> {
        let by_number = number::parse(&mount.device).filter(|dev| self.sys(*dev, "").exists());
        let by_source = || {
            let name = mount.source.strip_prefix("/dev").ok()?.to_str()?.replace('/', "!");
            number::parse(&self.root.read(format!("sys/class/block/{name}/dev")).ok()?)
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
                names.filter_map(|name| number::parse(&self.root.read(format!("{dir}/{name}/dev")).ok()?));
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

    fn device(&mut self, dev: u64, depth: u32) -> Bottom {
        let name = self.name(dev);
        if !self.through.contains(&name) {
            self.through.push(name.clone());
        }
        if depth > DEEPEST {
            return too_deep();
        }
        if self.sys(dev, "partition").exists() {
            return match self.read(dev, "../dev").as_deref().and_then(number::parse) {
                Some(disk) => self.device(disk, depth + 1),
                None => Bottom::Unknown(format!("sysfs does not tell whose partition {name} is")),
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
            return Bottom::Memory;
        }
        Bottom::Disks(vec![self.block(dev)])
    }

    /// The disk below a loop device's file; the loop device itself where there is none with counters: then its own are the best
    /// there are.
    fn loop_device(&mut self, dev: u64, file: &Path, depth: u32) -> Bottom {
        let through = self.through.len();
        let below = match mount_of(file, self.mounts) {
            Some(mount) => self.mount(mount, depth + 1),
            None => Bottom::Unknown(format!("no mount has {}", file.display())),
        };
        if matches!(below, Bottom::Disks(_)) {
            self.cached |= self.read(dev, "loop/dio").as_deref().map(str::trim) != Some("1");
            return below;
        }
        self.through.truncate(through);
        Bottom::Disks(vec![self.block(dev)])
    }

    fn slaves(&self, dev: u64) -> Vec<u64> {
        let names = self.root.list(Path::new("sys/dev/block").join(number::text(dev)).join("slaves"));
        let names = names.unwrap_or_default().into_iter();
        names.filter_map(|name| number::parse(&self.read(dev, &format!("slaves/{name}/dev"))?)).collect()
    }

    fn block(&self, dev: u64) -> Block {
        let number = |file: &str| self.read(dev, file).and_then(|text| text.trim().parse::<u64>().ok());
        // A partition has no queue of its own.
        let rotational = number("queue/rotational").or_else(|| number("../queue/rotational"));
        Block {
            name: self.name(dev),
            dev,
            size_bytes: number("size").unwrap_or(0).saturating_mul(512),
            says_rotational: rotational == Some(1),
        }
    }

    fn name(&self, dev: u64) -> String {
        let text = self.read(dev, "uevent").unwrap_or_default();
        device_name(&text).unwrap_or_else(|| number::text(dev))
    }

    fn read(&self, dev: u64, file: &str) -> Option<String> {
        self.root.read(Path::new("sys/dev/block").join(number::text(dev)).join(file)).ok()
    }

    fn sys(&self, dev: u64, file: &str) -> PathBuf {
        self.root.path(Path::new("sys/dev/block").join(number::text(dev)).join(file))
    }
}

fn too_deep() -> Bottom {
    Bottom::Unknown(format!("there are more than {DEEPEST} devices on top of each other"))
}

/// The disks of several; where one has none, that is what is said.
fn all(bottoms: impl Iterator<Item = Bottom>) -> Bottom {
    let mut disks: Vec<Block> = Vec::new();
    let mut other = None;
    for bottom in bottoms {
        match bottom {
            Bottom::Disks(more) => disks.extend(more),
            // What may hang counts before what is merely unknown.
            Bottom::Network => other = Some(Bottom::Network),
            bottom => other = other.or(Some(bottom)),
        }
    }
    disks.sort_by(|a, b| a.name.cmp(&b.name));
    disks.dedup();
    match other {
        Some(Bottom::Memory) if !disks.is_empty() => Bottom::Disks(disks),
        Some(other) => other,
        None if disks.is_empty() => Bottom::Unknown("it is on nothing".to_owned()),
        None => Bottom::Disks(disks),
    }
}

/// `DEVNAME=sda1` in a device's `uevent`.
fn device_name(uevent: &str) -> Option<String> {
    uevent.lines().find_map(|line| line.strip_prefix("DEVNAME=")).map(str::to_owned)
}

/// The directories of an overlay's options (Documentation/filesystems/overlayfs.rst): `lowerdir=a:b`, `upperdir=c`; since Linux 6.7
/// `lowerdir+=a`, too. A colon in a name is escaped by a backslash.
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
#[path = "below_tests.rs"]
mod tests;
