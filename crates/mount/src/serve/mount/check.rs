//! What must be so before a mount: both are directories, and the place is not inside the directory.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, StatVfsMountFlags, StatxFlags, fstatvfs, openat, statx};
use rustix::io::Errno;

use super::error::Error;
use crate::registry::mounts;
use crate::settings::Settings;

/// A directory and a place that go together.
#[derive(Debug)]
pub struct Checked {
    /// The directory below, opened (O_PATH) before anything covers it.
    pub dir: OwnedFd,
    /// The place, without symbolic links.
    pub place: PathBuf,
    /// Permissions and kind of the place, which the mount's root has until it is asked.
    pub mode: u32,
    /// How the file system below is mounted: the mount on it is the same (nosuid, noexec, ro …).
    pub flags: StatVfsMountFlags,
}

/// Looks at both.
///
/// # Errors
/// In words for whoever asked.
pub fn check(settings: &Settings) -> Result<Checked, Error> {
    let dir = directory(&settings.dir)?;
    let at = directory(&settings.place)?;
    for (fd, path) in [(&dir, &settings.dir), (&at, &settings.place)] {
        if is_ours(fd) {
            return Err(Error::AlreadyOurs { path: path.clone() });
        }
    }
    let open = |path: &Path, source: io::Error| Error::Open { path: path.to_owned(), source };
    let place = settings.place.canonicalize().map_err(|e| open(&settings.place, e))?;
    if inside(&at, &dir).map_err(|e| open(&settings.place, e))? {
        return Err(Error::Inside { place, dir: settings.dir.clone() });
    }
    let mode = rustix::fs::fstat(&at).map_err(|e| open(&settings.place, e.into()))?.st_mode;
    let flags = fstatvfs(&dir).map_err(|e| open(&settings.dir, e.into()))?.f_flag;
    Ok(Checked { dir, place, mode, flags })
}

fn directory(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|e| match e {
        Errno::NOTDIR => Error::NotADirectory { path: path.to_owned() },
        Errno::NOTCONN => Error::Dead { path: path.to_owned(), source: e.into() },
        e => Error::Open { path: path.to_owned(), source: e.into() },
    })
}

/// On a mount of ours? An older kernel (before 5.8) does not say which mount a file is on; then the mount comes to lie on
/// another one, which is slow and right.
fn is_ours(fd: &OwnedFd) -> bool {
    let id = statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok();
    let id = id.filter(|s| s.stx_mask & StatxFlags::MNT_ID.bits() != 0).map(|s| s.stx_mnt_id);
    let mounts = mounts::read().unwrap_or_default();
    id.is_some_and(|id| mounts.iter().any(|m| m.id == id))
}

/// Is `place` somewhere below `dir`, and not `dir` itself? Goes up by `..`, so links and bind mounts do not deceive it.
fn inside(place: &OwnedFd, dir: &OwnedFd) -> io::Result<bool> {
    let dir = identity(dir)?;
    let mut at = place.as_fd().try_clone_to_owned()?;
    let mut last = identity(&at)?;
    if last == dir {
        return Ok(false);
    }
    loop {
        at = openat(&at, c"..", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let now = identity(&at)?;
        if now == dir || now == last {
            return Ok(now == dir);
        }
        last = now;
    }
}

fn identity(fd: &OwnedFd) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::fstat(fd)?;
    Ok((stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> OwnedFd {
        directory(path).unwrap()
    }

    #[test]
    fn a_place_inside_is_found_through_links_too() {
        let tmp = tempfile::tempdir().unwrap();
        let (dir, deep, link) = (tmp.path().join("d"), tmp.path().join("d/e/f"), tmp.path().join("link"));
        std::fs::create_dir_all(&deep).unwrap();
        std::os::unix::fs::symlink(&deep, &link).unwrap();
        let dir = open(&dir);
        for (place, is_inside) in [(&deep, true), (&link, true), (&tmp.path().to_owned(), false)] {
            assert_eq!(inside(&open(place), &dir).unwrap(), is_inside, "{place:?}");
        }
        assert!(!inside(&dir, &dir).unwrap());
    }

    #[test]
    fn what_is_no_directory_is_said() {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("file");
        std::os::unix::fs::symlink("/dev/null", &file).unwrap();
        assert!(matches!(directory(&file), Err(Error::NotADirectory { .. })));
        assert!(matches!(directory(&tmp.path().join("none")), Err(Error::Open { .. })));
    }
}
