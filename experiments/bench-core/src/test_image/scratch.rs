//! Directories and files that are removed with their owner. Their names contain the owner.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use eke_apply::state::make_dir;
use eke_linux::Root;
use eke_linux::cgroup::name;
use eke_linux::root::RUN_DIR;
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};

use super::error::Result;
use crate::fault::on;

/// The beginning of their names, before a number and the owner.
const LABEL: &str = "stage";

/// A directory or a file of this process. Drop unmounts everything in it and removes it.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A directory in `parent`.
    pub fn directory(root: &Root, parent: &Path) -> Result<Self> {
        Self::new(root, parent, |path| rustix::fs::mkdir(path, rustix::fs::Mode::RWXU).map_err(Into::into))
    }

    /// A directory in `/run/eke`.
    pub fn in_run(root: &Root) -> Result<Self> {
        let run = root.path(RUN_DIR);
        make_dir(root, &run, 0o755).map_err(on("make", &run))?;
        Self::directory(root, &run)
    }

    /// A copy of `file` beside it.
    pub(super) fn copy_of(root: &Root, file: &Path) -> Result<Self> {
        let made = Self::new(root, file.parent().unwrap_or(file), |path| {
            std::fs::OpenOptions::new().write(true).create_new(true).open(path).map(drop)
        })?;
        std::fs::copy(file, &made.0).map_err(on("copy", file))?;
        Ok(made)
    }

    /// Takes the first free number of this process.
    fn new(root: &Root, parent: &Path, make: impl Fn(&Path) -> std::io::Result<()>) -> Result<Self> {
        let mut number = 0;
        loop {
            let path = parent.join(name::of_this_process(root, &format!("{LABEL}{number}"))?);
            match make(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(e) if e.kind() == ErrorKind::AlreadyExists => number += 1,
                Err(e) => return Err(on("make", &path)(e).into()),
            }
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = remove(&self.0);
    }
}

/// Removes what killed owners left: mounts, slow disks, loop devices, directories. Returns their names. Leaves alone what belongs
/// to running processes.
///
/// # Errors
/// The first one that cannot be removed, after all others were tried.
pub fn sweep(root: &Root) -> Result<Vec<String>> {
    // The disks first: a file system on a dead disk does not answer.
    let mut swept = eke_slow_disk::sweep(root)?;
    swept.extend(sweep_dir(root, &root.path(RUN_DIR))?);
    Ok(swept)
}

/// The same in one directory.
pub fn sweep_dir(root: &Root, dir: &Path) -> Result<Vec<String>> {
    let (mut swept, mut failed) = (Vec::new(), None);
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    for name in entries.map(|e| e.file_name().to_string_lossy().into_owned()) {
        let Some(owner) = owner(&name) else { continue };
        if name::is_alive(root, owner)? {
            continue;
        }
        match remove(&dir.join(&name)) {
            Ok(()) => swept.push(name),
            Err(e) => failed = failed.or(Some(e)),
        }
    }
    failed.map_or(Ok(swept), Err)
}

/// The owner in `stageN-PID-START`.
fn owner(name: &str) -> Option<name::Owner> {
    let number = name.strip_prefix(LABEL)?.split('-').next()?;
    number.parse::<u32>().ok()?;
    name::owner(name)
}

/// Unmounts everything there, then removes the directory; it may be the mount point of somebody's files. A loop device of
/// `mount -o loop` goes with its mount.
fn remove(path: &Path) -> Result<()> {
    if path.is_file() {
        return Ok(std::fs::remove_file(path).map_err(on("remove", path))?);
    }
    let target = mount_point(path);
    loop {
        match unmount(&target, UnmountFlags::DETACH) {
            Ok(()) => {}
            // A user who may not unmount has mounted nothing.
            Err(Errno::INVAL | Errno::NOENT | Errno::PERM) => break,
            Err(e) => return Err(on("unmount", &target)(e).into()),
        }
    }
    Ok(std::fs::remove_dir_all(path).map_err(on("remove", path))?)
}

/// The mount point of a tree in its directory.
pub fn mount_point(dir: &Path) -> PathBuf {
    dir.join("root")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_have_no_owner() {
        assert!(owner("stage0-1-2").is_some());
        for other in ["stage-1-0123456789abcdef.ext4", "stage-1-2", "slowdisk0-1-2", "stage0", "stagex-1-2"] {
            assert!(owner(other).is_none(), "{other}");
        }
    }

    #[test]
    fn what_a_dead_owner_left_is_swept_and_a_living_one_keeps_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let own = Scratch::directory(&Root::host(), dir.path()).unwrap();
        std::fs::create_dir_all(dir.path().join("stage3-999999999-1/root/x")).unwrap();
        assert_eq!(sweep_dir(&Root::host(), dir.path()).unwrap(), ["stage3-999999999-1"]);
        assert!(own.path().is_dir());
        drop(own);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
