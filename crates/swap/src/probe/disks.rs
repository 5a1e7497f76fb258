//! The disk below a swap area or a directory, and what kind it is.

use std::path::Path;

use eke_linux::Root;
use eke_linux::parse::file_system::{Nature, nature};
use eke_linux::parse::mountinfo;
use eke_linux::parse::mountinfo::{Mount, mount_of};
use eke_model::sample::SwapArea;

use crate::facts::{DiskArea, DiskKind, Hibernation};

/// A mapping of a mapping of a mapping, and then it is enough.
const DEPTH: usize = 8;

/// What is known about each area that is not zram.
pub(crate) fn areas(root: &Root, areas: &[SwapArea], hibernation: Option<&Hibernation>) -> Vec<DiskArea> {
    let mounts = mounts(root);
    areas.iter().filter(|a| a.zram_name().is_none()).map(|a| area(root, &mounts, a, hibernation)).collect()
}

fn mounts(root: &Root) -> Vec<Mount> {
    mountinfo::parse(&root.read_bytes("proc/self/mountinfo").unwrap_or_default())
}

fn area(root: &Root, mounts: &[Mount], area: &SwapArea, hibernation: Option<&Hibernation>) -> DiskArea {
    let place = Place::of_area(root, mounts, area);
    let device = place.block.as_deref().and_then(|b| whole_disk(root, b, DEPTH));
    let (kind, rotational) = match &device {
        _ if place.network => (DiskKind::Network, None),
        Some(disk) => kind(root, disk),
        None => (DiskKind::Unknown, None),
    };
    let hibernation = hibernation.is_some_and(|h| h.device.is_some() && h.device == place.block);
    DiskArea { path: area.path.clone(), device, kind, rotational, hibernation }
}

/// The whole block device below the file system that holds `path`: `vda`. `None` if it has none, or it cannot be told.
pub(crate) fn below_path(root: &Root, path: &str) -> Option<String> {
    let block = Place::of(root, &mounts(root), path).block?;
    whole_disk(root, &block, DEPTH)
}

/// Where a path is: on which block device (a partition too), or on a network.
struct Place {
    block: Option<String>,
    network: bool,
}

impl Place {
    fn of_area(root: &Root, mounts: &[Mount], area: &SwapArea) -> Self {
        match &area.device {
            Some(device) => Self { block: Some(device.clone()), network: false },
            None => Self::of(root, mounts, &area.path),
        }
    }

    fn of(root: &Root, mounts: &[Mount], path: &str) -> Self {
        if path.starts_with("/dev/") {
            return Self { block: block_name(root, path), network: false };
        }
        let mount = mount_of(Path::new(path), mounts);
        Self {
            block: mount.and_then(|m| block_name(root, m.source.to_str()?)),
            network: mount.is_some_and(|m| nature(&m.kind) == Nature::Network),
        }
    }
}

/// The kernel's name of a device file, through one symbolic link (`/dev/mapper/x` and `/dev/disk/by-uuid/x` are links to
/// `../dm-0`): `dm-0`.
pub(crate) fn block_name(root: &Root, device: &str) -> Option<String> {
    let path = root.path(device.strip_prefix("/dev/").map(|d| format!("dev/{d}"))?);
    let name = std::fs::read_link(&path).unwrap_or(path);
    let name = name.file_name()?.to_string_lossy().into_owned();
    root.exists(format!("sys/class/block/{name}")).then_some(name)
}

/// The disk that a partition, a mapping or a loop device is on, by sysfs: `sys/block/DISK/PARTITION`,
/// `sys/block/dm-0/slaves/*` (the first), `sys/block/loop0/loop/backing_file`.
fn whole_disk(root: &Root, name: &str, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let below = |next: String| whole_disk(root, &next, depth).or(Some(next));
    if !root.exists(format!("sys/block/{name}")) {
        let disks = root.list("sys/block").unwrap_or_default();
        return disks
            .into_iter()
            .find(|disk| root.exists(format!("sys/block/{disk}/{name}")))
            .and_then(below);
    }
    if let Some(first) = root.list(format!("sys/block/{name}/slaves")).unwrap_or_default().into_iter().next()
    {
        return below(first);
    }
    match root.read(format!("sys/block/{name}/loop/backing_file")) {
        Ok(file) => Place::of(root, &mounts(root), file.trim()).block.and_then(below),
        Err(_) => Some(name.to_owned()),
    }
}

/// The kind of a whole disk, and its own word on rotating. A virtual disk (virtio, Xen) says "rotates" by default
/// whatever is below it, and a USB stick does too.
fn kind(root: &Root, disk: &str) -> (DiskKind, Option<bool>) {
    let flag = |file: &str| root.read(format!("sys/block/{disk}/{file}")).ok().map(|t| t.trim() == "1");
    let rotational = flag("queue/rotational");
    let starts = |prefixes: &[&str]| prefixes.iter().any(|p| disk.starts_with(p));
    let kind = if starts(&["nbd", "rbd", "drbd", "etherd"]) {
        DiskKind::Network
    } else if starts(&["mmcblk", "mtdblock", "ubiblock"])
        || flag("removable") == Some(true)
        || is_usb_flash(root, disk, rotational)
    {
        DiskKind::WearsOut
    } else if starts(&["vd", "xvd"]) {
        DiskKind::Unknown
    } else {
        match rotational {
            Some(true) => DiskKind::Rotating,
            Some(false) => DiskKind::Solid,
            None => DiskKind::Unknown,
        }
    };
    (kind, rotational)
}

/// Something on USB that does not say it rotates.
fn is_usb_flash(root: &Root, disk: &str, rotational: Option<bool>) -> bool {
    let link = std::fs::read_link(root.path(format!("sys/block/{disk}"))).unwrap_or_default();
    let on_usb = link.iter().any(|part| Path::new(part).to_string_lossy().starts_with("usb"));
    on_usb && rotational == Some(false)
}
