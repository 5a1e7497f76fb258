//! Maps the kernel's name of a file (its file system and the path inside) to a path on this host: pure, from the table of mounts.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use eke_linux::device::Device;
use eke_linux::parse::file_system::{is_on_disk, may_hang};
use eke_linux::parse::mountinfo::{Mount, mount_of};

/// Builds a path inside a file system from its names, last first, each followed by a zero byte.
pub fn inside(names: &[u8]) -> PathBuf {
    let mut path = PathBuf::from("/");
    path.extend(names.split(|b| *b == 0).rev().filter(|name| !name.is_empty()).map(OsStr::from_bytes));
    path
}

/// The mounts of this host by device.
#[derive(Debug, Default)]
pub struct MountIndex {
    mounts: Vec<Mount>,
    by_device: HashMap<Device, Vec<usize>>,
}

/// A path on this host, with the type of its file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPath<'a> {
    /// From the host's root.
    pub path: PathBuf,
    /// Such as `ext4`.
    pub kind: &'a str,
}

impl MountIndex {
    /// From the mounts in the kernel's order.
    pub fn new(mounts: Vec<Mount>) -> Self {
        let mut by_device: HashMap<Device, Vec<usize>> = HashMap::new();
        for (at, mount) in mounts.iter().enumerate() {
            if let Ok(device) = mount.device.parse() {
                by_device.entry(device).or_default().push(at);
            }
        }
        Self { mounts, by_device }
    }

    /// The type of a mounted file system.
    pub fn kind(&self, device: Device) -> Option<&str> {
        self.by_device.get(&device)?.first().map(|at| self.mounts[*at].kind.as_str())
    }

    /// The host's path of a file, given its path inside the file system. Of several mounts (bind mounts, btrfs subvolumes) the first that shows it;
    /// `None` if no mount does, or others cover it.
    pub fn find(&self, device: Device, inside: &Path) -> Option<HostPath<'_>> {
        self.by_device.get(&device)?.iter().find_map(|at| {
            let mount = &self.mounts[*at];
            let rest = inside.strip_prefix(&mount.top).ok()?;
            let path = if rest.as_os_str().is_empty() { mount.place.clone() } else { mount.place.join(rest) };
            (mount_of(&path, &self.mounts)?.id == mount.id).then_some(HostPath { path, kind: &mount.kind })
        })
    }

    /// All mounts.
    pub fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// The mount that a path leads to, by the mounts alone.
    pub fn mount_at(&self, path: &Path) -> Option<&Mount> {
        mount_of(path, &self.mounts)
    }

    /// The same mount's file system.
    pub fn device_at(&self, path: &Path) -> Option<Device> {
        self.mount_at(path)?.device.parse().ok()
    }

    /// Where file systems that are on a disk and answer are mounted: the first place of each that is not covered.
    pub fn places(&self) -> Vec<PathBuf> {
        let is_shown = |mount: &&Mount| {
            let top = mount_of(&mount.place, &self.mounts).is_some_and(|top| top.id == mount.id);
            top && is_on_disk(&mount.kind) && self.answers(&mount.place)
        };
        let first = |of: &Vec<usize>| of.iter().map(|at| &self.mounts[*at]).find(is_shown);
        self.by_device.values().filter_map(first).map(|mount| mount.place.clone()).collect()
    }

    /// Whether a path lookup cannot hang: no mount on the way, shown or hidden, may hang or mount others.
    pub fn answers(&self, path: &Path) -> bool {
        !self.mounts.iter().any(|mount| may_hang(&mount.kind) && path.starts_with(&mount.place))
    }
}

#[cfg(test)]
mod tests {
    use eke_linux::parse::mountinfo;

    use super::*;

    const MOUNTS: &[u8] = b"\
20 1 8:1 / / rw - ext4 /dev/sda1 rw
21 20 0:5 / /proc rw - proc proc rw
22 20 0:30 /@home /home rw - btrfs /dev/sdb rw
23 20 8:2 / /mnt rw - ext4 /dev/sda2 rw
24 23 8:3 / /mnt rw - xfs /dev/sda3 rw
25 20 8:1 /srv/www /var/www rw - ext4 /dev/sda1 rw
26 20 8:4 /only/part /data rw - ext4 /dev/sda4 rw
27 20 0:44 / /opt/odd\\040one rw - overlay overlay rw
28 20 8:5 / /usr rw - ext4 /dev/sda5 rw
29 20 0:50 / /net rw - fuse.sshfs host: rw
31 29 8:6 / /net/disk rw - ext4 /dev/sda6 rw
32 20 0:51 / /boot rw - autofs systemd-1 rw
";

    fn find(major: u32, minor: u32, path: &str) -> Option<String> {
        let index = MountIndex::new(mountinfo::parse(MOUNTS));
        let found = index.find(Device { major, minor }, Path::new(path))?;
        Some(format!("{} {}", found.path.display(), found.kind))
    }

    #[test]
    fn files_are_found_by_mounts() {
        let table = [
            ((8, 1, "/bin/ls"), Some("/bin/ls ext4")),
            ((8, 1, "/"), Some("/ ext4")),
            ((0, 30, "/@home/u/x"), Some("/home/u/x btrfs")),
            ((0, 30, "/@snapshots/u/x"), None),
            ((0, 30, "/@homeless/x"), None),
            ((8, 2, "/hidden"), None),
            ((8, 3, "/shown"), Some("/mnt/shown xfs")),
            ((8, 1, "/srv/www/i"), Some("/srv/www/i ext4")),
            ((8, 1, "/usr/bin/below"), None),
            ((8, 5, "/bin/below"), Some("/usr/bin/below ext4")),
            ((8, 4, "/only/part"), Some("/data ext4")),
            ((8, 4, "/else"), None),
            ((0, 44, "/a"), Some("/opt/odd one/a overlay")),
            ((9, 9, "/a"), None),
        ];
        for ((major, minor, path), expected) in table {
            assert_eq!(find(major, minor, path).as_deref(), expected, "{major}:{minor} {path}");
        }
    }

    #[test]
    fn what_a_mount_hides_may_show_elsewhere() {
        let text = [MOUNTS, &b"30 20 8:1 /usr /old rw - ext4 /dev/sda1 rw\n"[..]].concat();
        let index = MountIndex::new(mountinfo::parse(&text));
        let found = index.find(Device { major: 8, minor: 1 }, Path::new("/usr/bin/below"));
        assert_eq!(found.map(|found| found.path), Some("/old/bin/below".into()));
    }

    #[test]
    fn paths_lead_to_file_systems() {
        let index = MountIndex::new(mountinfo::parse(MOUNTS));
        let at = |path: &str| index.device_at(Path::new(path)).map(|device| (device.major, device.minor));
        assert_eq!(
            (at("/mnt/x"), at("/usr/x"), at("/x"), at("x")),
            (Some((8, 3)), Some((8, 5)), Some((8, 1)), None)
        );
    }

    #[test]
    fn no_path_below_a_mount_that_may_hang_is_looked_up() {
        let index = MountIndex::new(mountinfo::parse(MOUNTS));
        let table = [
            ("/usr/x", true),
            ("/net/x", false),
            ("/net/disk/x", false),
            ("/boot/x", false),
            ("/network", true),
        ];
        for (path, expected) in table {
            assert_eq!(index.answers(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn names_are_any_bytes() {
        assert_eq!(inside(b"a\nb\0\xff x\0usr\0"), Path::new(OsStr::from_bytes(b"/usr/\xff x/a\nb")));
        assert_eq!(inside(b""), Path::new("/"));
    }
}
