//! Unmounts one mount, and no other: an owner of a part of its path may rename directories and put links there meanwhile.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, openat, openat2, statx};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount as umount2};

use crate::at;
use crate::{Mount, mounts};

const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(25);
/// The program of libfuse 3, or that of libfuse 2, which does as well.
const NAMES: [&str; 2] = ["fusermount3", "fusermount"];
/// Searched after PATH, since a service's PATH may lack them.
const DIRS: &str = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin";

/// Unmounts: root by umount2(2), other users through `fusermount3` or `fusermount`, which are set-user-ID. `lazy`: also while it is busy. A mount that
/// is gone already is no error.
///
/// # Errors
/// What the kernel answers, or what `fusermount3` prints.
pub fn unmount(mount: &Mount, lazy: bool) -> io::Result<()> {
    retry_busy(|| try_once(mount, lazy))
}

/// Tries again while the mount is busy: a program that reads /proc (lsof, another `eke cache mount`) makes it so for a moment.
///
/// # Errors
/// What `unmount` answers in the end.
pub fn retry_busy(unmount: impl Fn() -> io::Result<()>) -> io::Result<()> {
    for _ in 0..TRIES {
        match unmount() {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    unmount()
}

fn try_once(mount: &Mount, lazy: bool) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        return detach(mount, if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() });
    }
    let Some(now) = now(mount)? else { return Ok(()) };
    let program = fusermount()
        .ok_or_else(|| io::Error::other("fusermount3 is missing. Install the package \"fuse3\""))?;
    by_fusermount(&program, now.point(), lazy)
}

/// The path of libfuse's set-user-ID program, if it is installed.
pub fn fusermount() -> Option<PathBuf> {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":");
    path.push(DIRS);
    find_fusermount(&path)
}

fn find_fusermount(path: &OsStr) -> Option<PathBuf> {
    let dirs: Vec<_> = std::env::split_paths(path).filter(|dir| dir.is_absolute()).collect();
    NAMES.iter().find_map(|name| dirs.iter().map(|dir| dir.join(name)).find(|p| p.is_file()))
}

/// Unmounts by libfuse's set-user-ID program.
///
/// # Errors
/// `ResourceBusy` or another kind, with what the program prints.
pub fn by_fusermount(program: &Path, place: &Path, lazy: bool) -> io::Result<()> {
    let mut command = Command::new(program);
    // Its message is read: untranslated.
    command.arg("-u").args(lazy.then_some("-z")).arg("--").arg(place).env("LC_ALL", "C");
    let out = command.stdin(Stdio::null()).output().map_err(|e| not_started(program, &e))?;
    if out.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&out.stderr).trim().to_owned();
    let busy = message.to_ascii_lowercase().contains("busy");
    let kind = if busy { io::ErrorKind::ResourceBusy } else { io::ErrorKind::Other };
    Err(io::Error::new(kind, message))
}

/// The mount with its present path ([`Mount::is`]). `None`: it is gone.
///
/// # Errors
/// The kernel's list cannot be read.
pub fn now(mount: &Mount) -> io::Result<Option<Mount>> {
    let all = mounts::read()?;
    Ok(all.into_iter().find(|m| m.is(mount)))
}

/// A descriptor of the mount's top directory, whatever becomes of its path; while it is open the mount is busy. `None`: the mount is
/// gone, or covered by another.
///
/// # Errors
/// What the kernel answers.
pub fn top(mount: &Mount) -> io::Result<Option<OwnedFd>> {
    let Some(now) = now(mount)? else { return Ok(None) };
    let top = open(now.point())?;
    let found = statx(&top, c"", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::MNT_ID)?;
    Ok((at::mount_of(&top, &found) == Some(mount.id)).then_some(top))
}

/// As root: umount2(2) with these flags. The parent directory is opened without following a link, the mount in it is compared, and
/// then umount2(2) resolves the last name alone; a mount point can be neither renamed nor removed.
///
/// # Errors
/// What the kernel answers; an error with a sentence if another mount covers it.
pub fn detach(mount: &Mount, flags: UnmountFlags) -> io::Result<()> {
    let Some(now) = now(mount)? else { return Ok(()) };
    let point = now.point();
    let (Some(above), Some(name)) = (point.parent(), point.file_name()) else {
        return Ok(umount2(point, UnmountFlags::NOFOLLOW | flags)?);
    };
    let above = open(above)?;
    if on_top(&above, name).is_some_and(|id| id != mount.id) {
        return Err(io::Error::other("another mount covers it: unmount that first"));
    }
    let link = at::link(above.as_fd());
    let dir: &Path = link.as_ref();
    Ok(umount2(dir.join(name), UnmountFlags::NOFOLLOW | flags)?)
}

fn open(dir: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat2(CWD, dir, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS) {
        // Before Linux 5.6.
        Err(Errno::NOSYS) => openat(CWD, dir, flags, Mode::empty()),
        other => other,
    }
}

/// The topmost mount at a name; `None` before Linux 5.8. No request to its server.
fn on_top(dir: &OwnedFd, name: &OsStr) -> Option<u64> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let found = statx(dir, name, flags, StatxFlags::MNT_ID).ok()?;
    (found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id)
}

fn not_started(program: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{} cannot be started: {error}", program.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_program_of_libfuse_2_does_where_that_of_3_is_not() {
        let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let path = std::env::join_paths(dirs.iter().map(tempfile::TempDir::path)).unwrap();
        let install =
            |dir: usize, name: &str| drop(fs::File::create_new(dirs[dir].path().join(name)).unwrap());
        assert_eq!(find_fusermount(&path), None);
        install(0, "fusermount");
        assert_eq!(find_fusermount(&path), Some(dirs[0].path().join("fusermount")));
        install(1, "fusermount3");
        assert_eq!(find_fusermount(&path), Some(dirs[1].path().join("fusermount3")));
        assert_eq!(find_fusermount(OsStr::new("relative:")), None);
    }
}
