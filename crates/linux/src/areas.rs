//! Finds the block device of each swap area. The path in `/proc/swaps` is not enough: the kernel prints it relative to
//! the mount in which swapon(2) was called, and once that mount namespace is gone, `/dev/zram1` reads `/zram1`
//! (d_path() in fs/d_path.c).

use std::path::Path;

use eke_model::sample::SwapArea;
use eke_model::units::Bytes;

use crate::root::Root;

/// What d_path() appends to the path of a removed file.
const DELETED: &str = " (deleted)";
/// How `/proc/swaps` names the kind of an area on a block device.
const PARTITION: &str = "partition";
/// The largest page size of Linux: a swap file is one page larger than its area.
const LARGEST_PAGE: u64 = 1 << 16;

/// Returns the areas with their devices. An area known only by its device gets the path `/dev/NAME`, which works here.
pub fn identified(root: &Root, areas: Vec<SwapArea>) -> Vec<SwapArea> {
    let at = |path: &str| root.block_device(path);
    identify(areas, at, |name| capacity(root, name))
}

/// Returns the area on the device or file at `path`.
pub fn find(root: &Root, areas: Vec<SwapArea>, path: &str) -> Option<SwapArea> {
    let device = root.block_device(path);
    let is_it = |area: &SwapArea| match &device {
        Some(name) => area.device.as_ref() == Some(name),
        None => area.path == path,
    };
    let known = areas.iter().position(is_it).or_else(|| {
        let length = std::fs::metadata(root.path(path)).ok().filter(|meta| meta.is_file())?.len();
        file_below(&areas, Path::new(path), Bytes(length))
    });
    known.and_then(|n| areas.into_iter().nth(n))
}

/// Finds a swap file whose path `/proc/swaps` shows without its mount: the end of the path and the size must match.
/// `None` if two areas do.
fn file_below(areas: &[SwapArea], path: &Path, length: Bytes) -> Option<usize> {
    let is_it = |area: &SwapArea| {
        let fits = area.size <= length && length.0 - area.size.0 <= LARGEST_PAGE;
        area.kind != PARTITION && fits && path.ends_with(area.path.trim_start_matches('/'))
    };
    let mut found = areas.iter().enumerate().filter(|(_, area)| is_it(area)).map(|(n, _)| n);
    found.next().filter(|_| found.next().is_none())
}

/// What `/sys/block` knows about the size of a device.
enum Capacity {
    NoDevice,
    Unknown,
    Known(Bytes),
}

impl Capacity {
    fn holds(&self, size: Bytes) -> bool {
        match self {
            Self::NoDevice => false,
            Self::Unknown => true,
            Self::Known(capacity) => *capacity >= size,
        }
    }
}

fn capacity(root: &Root, name: &str) -> Capacity {
    let dirs = [format!("sys/class/block/{name}"), format!("sys/block/{name}")];
    let Some(dir) = dirs.iter().find(|dir| root.exists(dir)) else { return Capacity::NoDevice };
    let sectors = root.read(format!("{dir}/size")).ok().and_then(|text| text.trim().parse::<u64>().ok());
    sectors.map_or(Capacity::Unknown, |n| Capacity::Known(Bytes(n.saturating_mul(512))))
}

/// The device at the path if there is one, else the unused device of the same name. A file never has a device, whatever
/// its name.
fn identify(
    mut areas: Vec<SwapArea>,
    at: impl Fn(&str) -> Option<String>,
    capacity: impl Fn(&str) -> Capacity,
) -> Vec<SwapArea> {
    for area in areas.iter_mut().filter(|a| a.kind == PARTITION) {
        area.device = at(&area.path).filter(|name| capacity(name).holds(area.size));
    }
    let taken: Vec<String> = areas.iter().filter_map(|a| a.device.clone()).collect();
    let unknown = |area: &SwapArea| area.kind == PARTITION && area.device.is_none();
    let claims: Vec<String> = areas.iter().filter(|a| unknown(a)).filter_map(last_name).collect();
    for area in areas.iter_mut().filter(|a| unknown(a)) {
        let Some(name) = last_name(area) else { continue };
        let alone = !taken.contains(&name) && claims.iter().filter(|c| **c == name).count() == 1;
        if alone && capacity(&name).holds(area.size) {
            area.path = format!("/dev/{name}");
            area.device = Some(name);
        }
    }
    areas
}

fn last_name(area: &SwapArea) -> Option<String> {
    let path = area.path.strip_suffix(DELETED).unwrap_or(&area.path);
    Some(Path::new(path).file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn area(path: &str, kind: &str, mib: u64) -> SwapArea {
        SwapArea { path: path.into(), kind: kind.into(), size: Bytes::mib(mib), ..SwapArea::default() }
    }

    /// A machine with `/dev/vda2`, and the zram devices 1 and 2 of 64 MiB.
    fn devices(areas: Vec<SwapArea>) -> Vec<(String, Option<String>)> {
        let at = |path: &str| path.strip_prefix("/dev/").filter(|n| *n != "zram2").map(str::to_owned);
        let capacity = |name: &str| match name {
            "zram1" | "zram2" => Capacity::Known(Bytes(64 * MIB)),
            "vda2" => Capacity::Unknown,
            _ => Capacity::NoDevice,
        };
        identify(areas, at, capacity).into_iter().map(|a| (a.path, a.device)).collect()
    }

    fn known(path: &str, device: &str) -> (String, Option<String>) {
        (path.into(), Some(device.into()))
    }

    fn unknown(path: &str) -> (String, Option<String>) {
        (path.into(), None)
    }

    #[test]
    fn an_area_whose_mount_is_gone_is_identified_by_its_device() {
        let shown = ["/zram1", "/mnt/zram1", "/dev/zram1", "/zram1 (deleted)"];
        for path in shown {
            assert_eq!(devices(vec![area(path, PARTITION, 63)]), [known("/dev/zram1", "zram1")], "{path}");
        }
        assert_eq!(devices(vec![area("/dev/zram2", PARTITION, 63)]), [known("/dev/zram2", "zram2")]);
        assert_eq!(devices(vec![area("/dev/vda2", PARTITION, 99)]), [known("/dev/vda2", "vda2")]);
    }

    #[test]
    fn a_file_is_never_a_device() {
        for path in ["/zram1", "/dev/zram1", "/home/user/zram1"] {
            assert_eq!(devices(vec![area(path, "file", 63)]), [unknown(path)]);
        }
    }

    #[test]
    fn a_name_alone_is_not_enough() {
        let too_large = area("/zram1", PARTITION, 65);
        assert_eq!(devices(vec![too_large]), [unknown("/zram1")]);
        assert_eq!(devices(vec![area("/other", PARTITION, 1)]), [unknown("/other")]);
        let two = vec![area("/a/zram1", PARTITION, 63), area("/b/zram1", PARTITION, 63)];
        assert_eq!(devices(two), [unknown("/a/zram1"), unknown("/b/zram1")]);
        let beside = vec![area("/chroot/zram1", PARTITION, 63), area("/dev/zram1", PARTITION, 63)];
        assert_eq!(devices(beside), [unknown("/chroot/zram1"), known("/dev/zram1", "zram1")]);
    }

    #[test]
    fn a_swap_file_is_found_without_the_path_of_its_mount() {
        let areas =
            [area("/tmp/demo", "file", 16), area("/demo", PARTITION, 16), area("/x/demo", "file", 16)];
        let length = Bytes(16 * MIB + 4096);
        assert_eq!(file_below(&areas, Path::new("/var/tmp/demo"), length), Some(0));
        assert_eq!(file_below(&areas, Path::new("/var/tmp/demo"), Bytes(20 * MIB)), None);
        assert_eq!(file_below(&areas, Path::new("/var/tmp/other"), length), None);
        let alike = [area("/tmp/demo", "file", 16), area("/demo", "file", 16)];
        assert_eq!(file_below(&alike, Path::new("/var/tmp/demo"), length), None);
    }
}
