//! Checks before a mount: both paths are directories, and the mount point is not inside the backing directory.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use eke_cache_mounts::SocketDirs;
use eke_cache_mounts::at;
use eke_cache_mounts::mounts;
use eke_cache_mounts::settings::Settings;
use eke_cachefs::node::is_kernels;
use eke_linux::parse::mountinfo;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, fstatvfs, openat, openat2};
use rustix::io::Errno;

use super::error::Error;

/// A backing directory and a mount point that passed the checks.
#[derive(Debug)]
pub struct Checked {
    /// The backing directory, opened (O_PATH) before anything covers it.
    pub dir: OwnedFd,
    /// The mount point, opened likewise. The mount is made here, wherever the path leads by then.
    pub at: OwnedFd,
    /// The mount point's path when it was opened, for messages.
    pub place: PathBuf,
    /// The mount point's mode: the mount's root has it until the first request for attributes.
    pub mode: u32,
    /// The flags of the backing file system's mount (nosuid, noexec, ro …): the new mount gets the same.
    pub flags: StatVfsMountFlags,
}

/// Opens and checks both directories.
///
/// # Errors
/// With a message for the user.
pub fn check(settings: &Settings) -> Result<Checked, Error> {
    let dir = directory(&settings.dir)?;
    // Over itself: opened once, so that both are the same directory whatever others do to the path meanwhile.
    let at = if settings.place == settings.dir { same(&dir, settings)? } else { directory(&settings.place)? };
    for (fd, path) in [(&dir, &settings.dir), (&at, &settings.place)] {
        if is_ours(fd) || stands_aside(path) {
            return Err(Error::AlreadyOurs { path: path.clone() });
        }
    }
    let open = |path: &Path, source: io::Error| Error::Open { path: path.to_owned(), source };
    let place = path_of(&at).map_err(|e| open(&settings.place, e))?;
    if inside(&at, &dir).map_err(|e| open(&settings.place, e))? {
        return Err(Error::Inside { place, dir: settings.dir.clone() });
    }
    covers_nothing_needed(&place)?;
    let mode = rustix::fs::fstat(&at).map_err(|e| open(&settings.place, e.into()))?.st_mode;
    let flags = fstatvfs(&dir).map_err(|e| open(&settings.dir, e.into()))?.f_flag;
    is_not_the_kernels(&dir, &settings.dir)?;
    Ok(Checked { dir, at, place, mode, flags })
}

fn same(dir: &OwnedFd, settings: &Settings) -> Result<OwnedFd, Error> {
    dir.try_clone().map_err(|source| Error::Open { path: settings.dir.clone(), source })
}

fn path_of(fd: &OwnedFd) -> io::Result<PathBuf> {
    std::fs::read_link(at::link(fd.as_fd()))
}

/// Opens a directory. Paths come here without symbolic links; if there is one, an owner of a part of the path has put it there since.
pub(crate) fn directory(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // Before Linux 5.6.
        Err(Errno::NOSYS) => openat(CWD, path, flags, Mode::empty()),
        other => other,
    };
    opened.map_err(|e| match e {
        Errno::LOOP => Error::Link { path: path.to_owned() },
        Errno::NOTDIR => Error::NotADirectory { path: path.to_owned() },
        Errno::NOTCONN => Error::Dead { path: path.to_owned(), source: e.into() },
        e => Error::Open { path: path.to_owned(), source: e.into() },
    })
}

/// Is it on a mount of `eke-cache`?
fn is_ours(fd: &OwnedFd) -> bool {
    let (id, mounts) = (mount_of(fd), mounts::read().unwrap_or_default());
    id.is_some_and(|id| mounts.iter().any(|m| m.id == id))
}

/// Does a mount of this directory stand aside?
fn stands_aside(dir: &Path) -> bool {
    mounts::read().unwrap_or_default().iter().any(|m| m.aside.is_some() && m.place == dir)
}

/// The number of its mount.
pub(crate) fn mount_of(fd: &OwnedFd) -> Option<u64> {
    at::mount_of(fd, &at::stat(fd).ok()?)
}

/// Served inside a directory, it gives what it has: devices are opened by the kernel.
const DEVICES: &str = "devtmpfs";
/// What the cache opens while it serves: the device of FUSE, its sockets, and what the kernel reports.
const NEEDED: [&str; 3] = ["/dev/fuse", "/proc/self/mountinfo", "/sys/class/bdi"];

/// Refuses to cover what the cache needs before anybody serves it: its own requests would wait for itself.
fn covers_nothing_needed(place: &Path) -> Result<(), Error> {
    let named = NEEDED.iter().map(PathBuf::from);
    let sockets = SocketDirs::host().make().and_then(|dir| path_of(&dir));
    match sockets.into_iter().chain(named).find(|needed| needed.starts_with(place)) {
        Some(needed) => Err(Error::Covers { place: place.to_owned(), needed }),
        None => Ok(()),
    }
}

/// Refuses /proc, /sys, /dev and the like: their content depends on the process that opens a file, which would be the cache, or is made by
/// the kernel, and none of it is on a disk.
fn is_not_the_kernels(dir: &OwnedFd, path: &Path) -> Result<(), Error> {
    let id = mount_of(dir);
    let all = mountinfo::parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default());
    match all.into_iter().find(|m| Some(m.id) == id && (is_kernels(&m.kind) || m.kind == DEVICES)) {
        Some(m) => Err(Error::Kernels { path: path.to_owned(), kind: m.kind }),
        None => Ok(()),
    }
}

/// Is `place` somewhere below `dir`, and not `dir` itself? It walks up by `..`, so links and bind mounts do not mislead it.
pub(crate) fn inside(place: &OwnedFd, dir: &OwnedFd) -> io::Result<bool> {
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
        rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap()
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

    /// Over itself, without a mount.
    fn checked(dir: &Path) -> Result<Checked, Error> {
        let settings = format!(
            r#"{{"dir":{dir:?},"place":{dir:?},"memory":{{"percent":85}},"compress":"async","others":true,"passthrough":"auto","watch":true}}"#
        );
        check(&serde_json::from_str(&settings).unwrap())
    }

    #[test]
    fn what_the_cache_needs_is_not_covered() {
        let sockets = path_of(&SocketDirs::host().make().unwrap()).unwrap();
        let above = sockets.parent().unwrap();
        for path in [Path::new("/"), Path::new("/dev"), &sockets, above] {
            assert!(matches!(checked(path), Err(Error::Covers { .. })), "{path:?}");
        }
        let tmp = tempfile::tempdir().unwrap();
        checked(&tmp.path().canonicalize().unwrap()).unwrap();
    }

    #[test]
    fn what_is_no_directory_is_refused() {
        let tmp = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| tmp.path().join(name));
        std::fs::File::create_new(&file).unwrap();
        std::os::unix::fs::symlink("/", &link).unwrap();
        assert!(matches!(directory(&file), Err(Error::NotADirectory { .. })));
        assert!(matches!(directory(&link), Err(Error::Link { .. })));
        let proc = open(Path::new("/proc/self"));
        assert!(matches!(is_not_the_kernels(&proc, &file), Err(Error::Kernels { .. })));
        assert!(matches!(directory(&tmp.path().join("none")), Err(Error::Open { .. })));
    }
}
