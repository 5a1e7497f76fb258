//! The temporary swap file.

use std::fs::OpenOptions;
use std::io::{Result as IoResult, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use eke_apply::swap_area;
use eke_linux::cgroup::name;
use eke_linux::{Root, magic, read};
use eke_model::units::Bytes;
use rustix::fs::{FallocateFlags, fallocate, fstatfs};

/// File systems without a disk, or on which a new file cannot be swap, by `statfs(2)`'s `f_type`.
const UNFIT: [(u32, &str); 5] = [
    (magic::TMPFS, "tmpfs, which is memory"),
    (magic::RAMFS, "ramfs, which is memory"),
    (magic::OVERLAYFS, "overlayfs, which cannot hold swap"),
    (magic::BTRFS, "btrfs, which needs a specially made file for swap"),
    (magic::NFS, "NFS, which is not this machine's disk"),
];
/// The begin of the file's name, before its owner.
const LABEL: &str = "ekedemoswap";

/// A file with a swap header. Drop overwrites and removes it, because it has other programs' pages, too; swap it off before.
#[derive(Debug)]
pub struct DiskFile {
    path: PathBuf,
}

/// Why no swap file could be made.
#[derive(Debug, thiserror::Error)]
#[error("{what} {}: {why}", path.display())]
pub struct NoFile {
    what: &'static str,
    path: PathBuf,
    why: String,
}

/// The default directory of the file: `/var/tmp`, which outlives a boot and so is on a disk. Without symbolic links, as in `/proc/swaps`.
pub fn default_dir() -> PathBuf {
    let dir = PathBuf::from("/var/tmp");
    dir.canonicalize().unwrap_or(dir)
}

impl DiskFile {
    /// Makes the file in `dir`, of `size` plus 16 MiB, after removing files of dead owners.
    ///
    /// # Errors
    /// No room, or a file system that cannot hold swap; no file is left then.
    pub fn make(root: &Root, dir: &Path, size: Bytes) -> Result<Self, NoFile> {
        sweep(root, dir);
        let failed =
            |what, e: &dyn std::fmt::Display| NoFile { what, path: dir.to_owned(), why: e.to_string() };
        let name =
            name::of_this_process(root, LABEL).map_err(|e| failed("cannot name a swap file in", &e))?;
        let file = Self { path: dir.join(name) };
        let handle = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&file.path);
        let handle = handle.map_err(|e| failed("cannot make a swap file in", &e))?;
        if let Some(why) = fstatfs(&handle).ok().and_then(|s| unfit(s.f_type)) {
            return Err(failed("no swap file in", &format!("it is on {why}")));
        }
        let bytes = (size + Bytes::mib(16)).0;
        fallocate(&handle, FallocateFlags::empty(), 0, bytes)
            .map_err(|e| failed("no room for a swap file in", &format!("{e} ({} needed)", Bytes(bytes))))?;
        let relative = file.path.to_string_lossy();
        swap_area::write_header(root, &relative, bytes).map_err(|e| failed("no swap file in", &e))?;
        Ok(file)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for DiskFile {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// What cannot be overwritten is removed all the same: nobody is there to be told.
fn remove(path: &Path) {
    let _ = overwrite(path);
    let _ = std::fs::remove_file(path);
}

/// Overwrites a file of this user with zeros, on the disk. One that another user could have put there is left alone: everybody may write to the directory.
fn overwrite(path: &Path) -> IoResult<()> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut file = OpenOptions::new().write(true).custom_flags(flags.bits() as i32).open(path)?;
    let found = file.metadata()?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw() && found.nlink() == 1;
    if !found.is_file() || !is_own {
        return Ok(());
    }
    let zeros = vec![0; 1 << 20];
    let mut left = found.len();
    while left > 0 {
        let part = left.min(zeros.len() as u64);
        file.write_all(&zeros[..part as usize])?;
        left -= part;
    }
    file.sync_data()
}

fn unfit(kind: impl TryInto<i64>) -> Option<&'static str> {
    let kind = kind.try_into().ok()?;
    UNFIT.iter().find(|(magic, _)| i64::from(*magic) == kind).map(|(_, why)| *why)
}

/// Removes swap files in `dir` whose owner was killed by SIGKILL. Files in use as swap stay: `eke down` swaps them off first.
pub fn sweep(root: &Root, dir: &Path) {
    let files = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in files {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(owner) = name.strip_prefix(LABEL).and_then(|_| name::owner(&name)) else { continue };
        let in_use = read::swap_at(root, &path.to_string_lossy()).map_or(true, |area| area.is_some());
        if !in_use && name::is_alive(root, owner).is_ok_and(|alive| !alive) {
            remove(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_no_disk() {
        assert!(unfit(0x0102_1994_i64).is_some_and(|why| why.contains("memory")));
        assert!(unfit(0xef53_i64).is_none(), "ext4");
    }

    #[test]
    fn files_of_dead_owners_are_removed_and_others_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let me = name::of_this_process(&Root::host(), LABEL).unwrap();
        let dead = format!("{LABEL}-{}-1", std::process::id());
        for name in [me.as_str(), &dead, "something-1-1"] {
            OpenOptions::new().write(true).create_new(true).open(dir.path().join(name)).unwrap();
        }
        sweep(&Root::host(), dir.path());
        assert!(dir.path().join(me).exists() && dir.path().join("something-1-1").exists());
        assert!(!dir.path().join(dead).exists());
    }

    #[test]
    fn an_own_file_is_overwritten_and_what_a_link_leads_to_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str| {
            let path = dir.path().join(name);
            let mut file = OpenOptions::new().write(true).create_new(true).open(&path).unwrap();
            file.write_all(b"a page of somebody").unwrap();
            path
        };
        let (own, other, twice) = (put("own"), put("other"), put("twice"));
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        std::fs::hard_link(&twice, dir.path().join("second")).unwrap();
        for path in [&own, &link, &twice] {
            let _ = overwrite(path);
        }
        assert_eq!(std::fs::read(&own).unwrap(), [0; 18]);
        for kept in [other, twice] {
            assert_eq!(std::fs::read(kept).unwrap(), b"a page of somebody");
        }
    }

    #[test]
    fn the_error_for_a_missing_directory_names_it() {
        let why =
            DiskFile::make(&Root::host(), Path::new("/nonexistent"), Bytes::mib(1)).unwrap_err().to_string();
        assert!(why.starts_with("cannot make a swap file in /nonexistent"), "{why}");
    }
}
