//! Is a file that another process has open in the backing directory? Pure.
//!
//! In the same mount namespace its path decides. In another one (a container), its file system's number and its path inside that do.

use std::path::{Path, PathBuf};

use eke_linux::parse::mountinfo::Mount;

/// The backing directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BackingDir {
    /// Its path.
    pub path: PathBuf,
    /// Its file system's number, as mountinfo writes it.
    device: String,
    /// Its path inside its file system.
    inside: PathBuf,
}

impl BackingDir {
    /// The directory with this path, on the mount with this number.
    pub fn new(path: PathBuf, mount: u64, mounts: &[Mount]) -> Self {
        let mount = mounts.iter().find(|m| m.id == mount);
        let inside = mount.and_then(|m| inside(m, &path));
        // Without its mount no file system's number matches.
        let device = mount.filter(|_| inside.is_some()).map(|m| m.device.clone());
        Self { path, device: device.unwrap_or_default(), inside: inside.unwrap_or_default() }
    }

    /// Is a file with this path, on this mount, inside? `here`: the path is of this process's mount namespace.
    pub fn has(&self, path: &Path, mount: Option<&Mount>, here: bool) -> bool {
        let by_path = here && path != self.path && path.starts_with(&self.path);
        let same = mount.filter(|m| m.device == self.device);
        by_path || same.and_then(|m| inside(m, path)).is_some_and(|path| path.starts_with(&self.inside))
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
        assert!(!has("/srv", 9, &here, true) && !has("/srvx/y", 0, &here, true));
        assert!(has("/data/x", 1, &there, false), "bound into a container");
        assert!(!has("/srv/x", 0, &there, false) && !has("/o/x", 2, &there, false));
    }
}
