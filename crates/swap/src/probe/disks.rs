//! The disk of a swap area or a directory, and its kind.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

use eke_apply::backing::{EDGES_BYTES, is_of_eke};
use eke_linux::Root;
use eke_linux::parse::file_system::{Nature, may_hang, nature};
use eke_linux::parse::mountinfo;
use eke_linux::parse::mountinfo::{Mount, mount_of};
use eke_linux::virtual_disk::{has_virtual_driver, is_virtual};
use eke_model::sample::SwapArea;
use eke_model::units::Bytes;

use super::signature;
use crate::facts::{DiskArea, DiskKind, Hibernation, WritebackDevice, WritebackDirectory};

/// Facts about each area that is not zram.
pub(crate) fn areas(root: &Root, areas: &[SwapArea], hibernation: Option<&Hibernation>) -> Vec<DiskArea> {
    let mounts = mounts(root);
    areas.iter().filter(|a| a.zram_name().is_none()).map(|a| area(root, &mounts, a, hibernation)).collect()
}

fn mounts(root: &Root) -> Vec<Mount> {
    mountinfo::parse(&root.read_bytes("proc/self/mountinfo").unwrap_or_default())
}

fn area(root: &Root, mounts: &[Mount], area: &SwapArea, hibernation: Option<&Hibernation>) -> DiskArea {
    let location = Location::of_area(root, mounts, area);
    let device = location.block.as_deref().and_then(|block| worst_disk(root, block));
    let (kind, rotational) = match &device {
        _ if location.network => (DiskKind::Network, None),
        Some(disk) => kind(root, disk),
        None => (DiskKind::Unknown, None),
    };
    let hibernation = hibernation.is_some_and(|h| h.device.is_some() && h.device == location.block);
    DiskArea { path: area.path.clone(), device, kind, rotational, hibernation }
}

/// The whole block device of the file system of `path`: `vda`. `None` if it has none, or it is unknown.
pub(crate) fn of_path(root: &Root, path: &str) -> Option<String> {
    worst_disk(root, &Location::of(root, &mounts(root), path).block?)
}

/// Whether the home directories are on a rotating disk, and `/usr` is on another one.
pub(crate) fn homes_rotate(root: &Root) -> bool {
    let of_homes = of_path(root, "/home");
    of_homes != of_path(root, "/usr")
        && of_homes.is_some_and(|disk| kind(root, &disk).0 == DiskKind::Rotating)
}

/// The block device that the settings name by any path; `None` if there is none.
pub(crate) fn writeback(root: &Root, path: &str) -> Option<WritebackDevice> {
    let name = block_name(root, path)?;
    let within = root.list(format!("sys/block/{name}")).unwrap_or_default();
    let is_partitioned = within.iter().any(|file| root.exists(format!("sys/block/{name}/{file}/partition")));
    let lasting = (path == format!("/dev/{name}")).then(|| lasting(root, &name)).flatten();
    Some(WritebackDevice {
        path: path.to_owned(),
        holds: holds(root, path),
        unusable: mapped(root, &name).or_else(|| too_small(root, &name)),
        lasting,
        name,
        is_partitioned,
        may_encrypt: may_encrypt(root),
    })
}

/// A device that another one has open: LVM, mdraid, or somebody's dm-crypt. The kernel refuses it (EBUSY).
fn mapped(root: &Root, name: &str) -> Option<String> {
    let holders = root.list(format!("sys/class/block/{name}/holders")).unwrap_or_default();
    let named = |holder: String| {
        let name = root.read(format!("sys/class/block/{holder}/dm/name")).ok();
        name.map_or(holder, |name| name.trim().to_owned())
    };
    let other = holders.into_iter().map(named).find(|name| !is_of_eke(name))?;
    Some(format!("it is a part of {other}"))
}

fn too_small(root: &Root, name: &str) -> Option<String> {
    let sectors: u64 = root.read(format!("sys/class/block/{name}/size")).ok()?.trim().parse().ok()?;
    let bytes = sectors.saturating_mul(512);
    (bytes <= EDGES_BYTES).then(|| format!("it has only {}", Bytes(bytes)))
}

fn may_encrypt(root: &Root) -> bool {
    super::zram::has_module(root, "dm-crypt")
}

/// What is on the device, as the object of a sentence. A user without root, who only plans, does not learn it.
fn holds(root: &Root, path: &str) -> Option<String> {
    let read = || {
        let mut device = File::open(root.path(path.trim_start_matches('/')))?;
        let size = device.seek(SeekFrom::End(0))?;
        signature::of(&device, size)
    };
    match read() {
        Ok(found) => found.map(str::to_owned),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => None,
        Err(e) => Some(format!("what cannot be read ({e})")),
    }
}

/// A name that udev gives to the same device at each boot.
fn lasting(root: &Root, name: &str) -> Option<String> {
    ["dev/disk/by-partuuid", "dev/disk/by-id", "dev/disk/by-path"].iter().find_map(|dir| {
        let names = root.list(dir).unwrap_or_default().into_iter().map(|file| format!("/{dir}/{file}"));
        names.into_iter().find(|path| block_name(root, path).as_deref() == Some(name))
    })
}

/// The directory that the settings name, through symbolic links; `None` if there is none of that name. What may never answer is not asked for its space.
pub(crate) fn writeback_directory(root: &Root, path: &str) -> Option<WritebackDirectory> {
    let mounts = mounts(root);
    let kind = |path: &Path| mount_of(path, &mounts).map(|mount| mount.kind.clone()).unwrap_or_default();
    let named = kind(Path::new(path));
    let directory = WritebackDirectory { path: path.to_owned(), ..WritebackDirectory::default() };
    if path.is_empty() || may_hang(&named) {
        return (!path.is_empty()).then_some(WritebackDirectory { file_system: named, ..directory });
    }
    let at = std::fs::canonicalize(root.path(path)).ok().filter(|at| at.is_dir())?;
    let space = rustix::fs::statvfs(&at).ok()?;
    let bytes = |blocks: u64| Bytes(blocks.saturating_mul(space.f_frsize));
    Some(WritebackDirectory {
        file_system: kind(&Path::new("/").join(at.strip_prefix(root.path("")).unwrap_or(&at))),
        size: bytes(space.f_blocks),
        free: bytes(space.f_bavail),
        may_encrypt: may_encrypt(root),
        ..directory
    })
}

/// The block device (a partition too) or network of a path.
struct Location {
    block: Option<String>,
    network: bool,
}

impl Location {
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
            block: mount.and_then(|mount| block_of_mount(root, mount)),
            network: mount.is_some_and(|m| nature(&m.kind) == Nature::Network),
        }
    }
}

/// A kernel that mounts the root file system itself, without an initramfs, calls its source `/dev/root`, which is no file; its number is right.
fn block_of_mount(root: &Root, mount: &Mount) -> Option<String> {
    let by_source = || block_name(root, mount.source.to_str()?);
    by_source().or_else(|| block_of_number(root, &mount.device))
}

/// The kernel's name of the block device `MAJOR:MINOR`. `None` for a number of no device, as btrfs and network file systems have.
pub(crate) fn block_of_number(root: &Root, number: &str) -> Option<String> {
    let link = std::fs::read_link(root.path(format!("sys/dev/block/{number}"))).ok()?;
    Some(link.file_name()?.to_string_lossy().into_owned())
}

/// The kernel's name of a device file, through one symbolic link: `/dev/mapper/x` and `/dev/disk/by-uuid/x` are links to `../dm-0`.
pub(crate) fn block_name(root: &Root, device: &str) -> Option<String> {
    let path = root.path(device.strip_prefix("/dev/").map(|d| format!("dev/{d}"))?);
    let name = std::fs::read_link(&path).unwrap_or(path);
    let name = name.file_name()?.to_string_lossy().into_owned();
    root.exists(format!("sys/class/block/{name}")).then_some(name)
}

/// Of the disks below a partition, a mapping, an array or a loop device the one that swapping harms most, or else that is slowest: an array waits for it.
fn worst_disk(root: &Root, block: &str) -> Option<String> {
    let harm = |disk: &String| match kind(root, disk).0 {
        DiskKind::Solid => 0,
        DiskKind::Unknown => 1,
        DiskKind::Rotating => 2,
        DiskKind::Network => 3,
        DiskKind::WearsOut => 4,
    };
    disks(root, block).into_iter().rev().max_by_key(harm)
}

/// All whole disks below a block device.
fn disks(root: &Root, block: &str) -> BTreeSet<String> {
    let (mut waiting, mut seen, mut disks) = (vec![block.to_owned()], BTreeSet::new(), BTreeSet::new());
    while let Some(name) = waiting.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        match below(root, &name) {
            Some(next) if next.is_empty() => _ = disks.insert(name),
            Some(next) => waiting.extend(next),
            // What a mapping names is there, although nothing more is known of it.
            None if name != block => _ = disks.insert(name),
            None => {}
        }
    }
    disks
}

/// What a partition, a mapping or a loop device lies on, by sysfs: `sys/block/DISK/PARTITION`, `sys/block/dm-0/slaves/*`,
/// `sys/block/loop0/loop/backing_file`. Nothing for a whole disk, `None` if it is unknown.
fn below(root: &Root, name: &str) -> Option<Vec<String>> {
    if !root.exists(format!("sys/block/{name}")) {
        let disks = root.list("sys/block").unwrap_or_default();
        let disk = disks.into_iter().find(|disk| root.exists(format!("sys/block/{disk}/{name}")));
        return disk.map(|disk| vec![disk]);
    }
    match root.read(format!("sys/block/{name}/loop/backing_file")) {
        Ok(file) => Location::of(root, &mounts(root), file.trim()).block.map(|block| vec![block]),
        Err(_) => Some(root.list(format!("sys/block/{name}/slaves")).unwrap_or_default()),
    }
}

/// The kind of a whole disk, and its `rotational` flag. By default a virtual disk has that flag on any medium, and a USB stick has it, too.
fn kind(root: &Root, disk: &str) -> (DiskKind, Option<bool>) {
    let flag = |file: &str| root.read(format!("sys/block/{disk}/{file}")).ok().map(|t| t.trim() == "1");
    let rotational = flag("queue/rotational");
    let starts = |prefixes: &[&str]| prefixes.iter().any(|p| disk.starts_with(p));
    let kind = if starts(&["nbd", "rbd", "drbd", "etherd", "zd"]) {
        DiskKind::Network
    } else if starts(&["mmcblk", "mtdblock", "ubiblock"])
        || flag("removable") == Some(true)
        || is_usb_flash(root, disk, rotational)
    {
        DiskKind::WearsOut
    } else if has_virtual_driver(disk) || rotational == Some(true) && is_virtual(root, disk) {
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

/// Is it on USB and not rotational?
fn is_usb_flash(root: &Root, disk: &str, rotational: Option<bool>) -> bool {
    let link = std::fs::read_link(root.path(format!("sys/block/{disk}"))).unwrap_or_default();
    let on_usb = link.iter().any(|part| Path::new(part).to_string_lossy().starts_with("usb"));
    on_usb && rotational == Some(false)
}
