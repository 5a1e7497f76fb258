//! Where mounts show the backing directory and its files, by the list of a mount namespace's mounts. Pure.
//!
//! In this process's namespace a path decides. In another one (a container), the file system's number and the path inside that do.

use std::path::{Path, PathBuf};

use eke_linux::parse::mountinfo::Mount;

/// The backing directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BackingDir {
    /// Its path.
    pub path: PathBuf,
    /// The number of the mount that it is on.
    pub mount: u64,
    /// Its file system's number, as mountinfo writes it.
    device: String,
    /// Its path inside its file system.
    inside: PathBuf,
}

impl BackingDir {
    /// The directory with this path, on the mount with this number.
    pub fn new(path: PathBuf, mount: u64, mounts: &[Mount]) -> Self {
        let home = mounts.iter().find(|m| m.id == mount);
        let inside = home.and_then(|m| inside(m, &path));
        // Without its mount no file system's number matches.
        let device = home.filter(|_| inside.is_some()).map(|m| m.device.clone());
        Self { path, mount, device: device.unwrap_or_default(), inside: inside.unwrap_or_default() }
    }

    /// Is this path, on this mount, the directory's or one inside? `here`: the path is of this process's mount namespace.
    pub fn has(&self, path: &Path, mount: Option<&Mount>, here: bool) -> bool {
        let same = mount.filter(|m| m.device == self.device);
        here && path.starts_with(&self.path)
            || same.and_then(|m| inside(m, path)).is_some_and(|path| path.starts_with(&self.inside))
    }

    /// Where this mount has the directory; `None`: it has not all of it.
    pub fn place_on(&self, mount: &Mount) -> Option<PathBuf> {
        let rest = self.inside.strip_prefix(&mount.top).ok().filter(|_| mount.device == self.device)?;
        // A path joined with an empty one ends with a slash.
        Some(mount.place.components().chain(rest.components()).collect())
    }

    /// Does this mount have a part of it alone?
    pub fn has_part(&self, mount: &Mount) -> bool {
        mount.device == self.device && mount.top != self.inside && mount.top.starts_with(&self.inside)
    }
}

fn inside(mount: &Mount, path: &Path) -> Option<PathBuf> {
    path.strip_prefix(&mount.place).ok().map(|rest| mount.top.join(rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use eke_linux::parse::mountinfo::parse;

    #[test]
    fn a_file_is_found_by_its_path_here_and_by_its_file_system_elsewhere() {
        let here = parse(b"1 0 8:1 / / rw - ext4 a rw\n2 1 8:2 / /srv/inner rw - ext4 b rw\n");
        let srv = BackingDir::new("/srv".into(), 1, &here);
        let there = parse(b"7 0 0:9 / / rw - overlay o rw\n8 7 8:1 /srv/data /data rw - ext4 a rw\n9 7 8:1 /opt /o rw - ext4 a rw\n");
        let has =
            |path: &str, mount: usize, list: &[Mount], here| srv.has(path.as_ref(), list.get(mount), here);
        assert!(has("/srv/x", 0, &here, true) && has("/srv/inner/x", 1, &here, true));
        assert!(has("/srv", 9, &here, true) && !has("/srvx/y", 0, &here, true));
        assert!(has("/data/x", 1, &there, false) && has("/data", 1, &there, false), "bound into a container");
        assert!(!has("/srv/x", 0, &there, false) && !has("/o/x", 2, &there, false));
    }

    #[test]
    fn mounts_have_all_of_it_a_part_or_nothing() {
        let mounts = parse(
            b"1 0 8:1 / / rw - ext4 a rw\n2 1 8:1 /srv /x rw - ext4 a rw\n3 1 8:1 /srv/data /y rw - ext4 a rw\n\
            4 1 8:1 /srv/data/in /z rw - ext4 a rw\n5 1 8:2 / /srv rw - ext4 b rw\n6 1 8:1 /opt /o rw - ext4 a rw\n",
        );
        let dir = BackingDir::new("/srv/data".into(), 1, &mounts);
        let places: Vec<_> = mounts.iter().map(|m| dir.place_on(m)).collect();
        let expected = [Some("/srv/data"), Some("/x/data"), Some("/y"), None, None, None];
        assert_eq!(places, expected.map(|place| place.map(PathBuf::from)));
        assert_eq!(mounts.iter().filter(|m| dir.has_part(m)).map(|m| m.id).collect::<Vec<_>>(), [4]);
    }
}
