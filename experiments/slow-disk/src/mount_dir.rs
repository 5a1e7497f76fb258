//! The directory on which a slow disk's file server is mounted, and the removal of a dead owner's disks.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use eke_apply::state::make_dir;
use eke_linux::Root;
use eke_linux::cgroup::name;
use eke_linux::root::RUN_DIR;
use rustix::mount::{UnmountFlags, unmount};

use super::connection::Connection;
use super::device::Device;
use super::error::{Result, on};
use super::mounts;

/// The source of the file server's mount in `/proc/mounts`.
pub(super) const SOURCE: &str = "eke-slow-disk";
/// Prefix of the directory's name, before a number and the owner.
const LABEL: &str = "slowdisk";

/// A mount directory, removed when dropped, with the mount on it. Its name is `slowdiskN-PID-START`, which shows
/// another eke whether its owner lives.
#[derive(Debug)]
pub(super) struct MountDir(PathBuf);

impl MountDir {
    /// Creates the directory with the first free number of this process.
    pub(super) fn make(root: &Root) -> Result<Self> {
        let run = root.path(RUN_DIR);
        make_dir(root, &run, 0o755).map_err(on("make", &run))?;
        let mut number = 0;
        loop {
            let dir = run.join(name::of_this_process(root, &format!("{LABEL}{number}"))?);
            match rustix::fs::mkdir(&dir, rustix::fs::Mode::RWXU) {
                Ok(()) => return Ok(Self(dir)),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(e) => return Err(on("make", &dir)(e)),
            }
        }
    }

    /// The directory's path.
    pub(super) fn dir(&self) -> &Path {
        &self.0
    }

    /// Unmounts it lazily and removes it, whatever still uses it.
    pub(super) fn leave(&self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
        let _ = std::fs::remove_dir(&self.0);
    }
}

impl Drop for MountDir {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Takes down every slow disk whose owner is dead (killed with SIGKILL): its mounts, the loop device, the file server's
/// mount and its directory. Returns the directories' names. Disks of living owners are left alone. Nothing here waits
/// for a dead server.
///
/// # Errors
/// The kernel's answer to the first disk that cannot be removed, after trying all others.
pub fn sweep(root: &Root) -> Result<Vec<String>> {
    let mut swept = Vec::new();
    let mut failed = None;
    for name in root.list(RUN_DIR)? {
        match sweep_one(root, &name) {
            Ok(true) => swept.push(name),
            Ok(false) => {}
            Err(e) => failed = failed.or(Some(e)),
        }
    }
    failed.map_or(Ok(swept), Err)
}

fn sweep_one(root: &Root, name: &str) -> Result<bool> {
    let Some(owner) = name.strip_prefix(LABEL).and_then(|_| name::owner(name)) else { return Ok(false) };
    if name::is_alive(root, owner)? {
        return Ok(false);
    }
    let dir = root.path(RUN_DIR).join(name);
    // A thread of the owner may wait for the disk, and then the owner's file server cannot end.
    if let Some(connection) = Connection::of(root, &dir) {
        let _ = connection.abort(root);
    }
    for device in Device::all_below(root, &dir)? {
        device.unmount_all(root)?;
        device.detach(root)?;
    }
    if mounts::is_target(&root.read_if_exists("proc/mounts")?.unwrap_or_default(), &dir) {
        unmount(&dir, UnmountFlags::DETACH).map_err(on("unmount", &dir))?;
    }
    std::fs::remove_dir(&dir).map_err(on("remove", &dir))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root_with(names: &[&str]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            std::fs::create_dir_all(dir.path().join(RUN_DIR).join(name)).unwrap();
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn only_disks_of_dead_owners_are_swept() {
        let (dir, root) = root_with(&["slowdisk0-1-2", "slowdisk1-7-8", "other-1-2", "slowdisk"]);
        let alive = dir.path().join("proc/7");
        std::fs::create_dir_all(&alive).unwrap();
        let stat = format!("7 (x) S{} 8 0 0", " 0".repeat(18));
        let mut file = std::fs::OpenOptions::new();
        let mut file = file.write(true).create_new(true).open(alive.join("stat")).unwrap();
        std::io::Write::write_all(&mut file, stat.as_bytes()).unwrap();
        assert_eq!(sweep(&root).unwrap(), ["slowdisk0-1-2"]);
        assert_eq!(root.list(RUN_DIR).unwrap(), ["other-1-2", "slowdisk", "slowdisk1-7-8"]);
    }

    #[test]
    fn without_disks_nothing_is_swept() {
        assert!(sweep(&Root::at("/nonexistent")).unwrap().is_empty());
    }
}
