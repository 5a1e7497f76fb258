//! Taking a mount away, and no other one: whoever owns a part of its path can rename directories and put links there meanwhile.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, openat, openat2, statx};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount as umount2};

use crate::at;
use crate::{Mount, mounts};

const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_millis(25);

/// Unmounts: root by umount2(2), others through `fusermount3`, which is set-user-ID. `lazy`: also while it is busy. One that is gone
/// already is no error.
///
/// # Errors
/// What the kernel answers, or what `fusermount3` says.
pub fn unmount(mount: &Mount, lazy: bool) -> io::Result<()> {
    patiently(|| at_once(mount, lazy))
}

/// Who only looks through /proc (lsof, another `eke cache mount`) keeps a mount busy for a moment.
///
/// # Errors
/// What `unmount` answers in the end.
pub fn patiently(unmount: impl Fn() -> io::Result<()>) -> io::Result<()> {
    for _ in 0..TRIES {
        match unmount() {
            Err(e) if e.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(PAUSE),
            done => return done,
        }
    }
    unmount()
}

fn at_once(mount: &Mount, lazy: bool) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        return detach(mount, if lazy { UnmountFlags::DETACH } else { UnmountFlags::empty() });
    }
    let Some(now) = now(mount)? else { return Ok(()) };
    let mut command = Command::new("fusermount3");
    command.arg("-u").args(lazy.then_some("-z")).arg("--").arg(now.place);
    let out = command.stdin(Stdio::null()).output().map_err(|e| named(&e))?;
    if out.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&out.stderr).trim().to_owned();
    let busy = said.to_ascii_lowercase().contains("busy");
    let kind = if busy { io::ErrorKind::ResourceBusy } else { io::ErrorKind::Other };
    Err(io::Error::new(kind, said))
}

/// The mount where it is now: a directory above it may have another name since. None: it is gone. The kernel gives the numbers of
/// one that is gone to the next one, so all the rest must be the same, too.
///
/// # Errors
/// The kernel's list cannot be read.
pub fn now(mount: &Mount) -> io::Result<Option<Mount>> {
    let all = mounts::read()?;
    Ok(all.into_iter().find(|m| Mount { place: mount.place.clone(), ..m.clone() } == *mount))
}

/// A descriptor of its top, whatever becomes of its path meanwhile; while it is open the mount is busy. None: it is gone, or covered.
///
/// # Errors
/// What the kernel answers.
pub fn top(mount: &Mount) -> io::Result<Option<OwnedFd>> {
    let Some(now) = now(mount)? else { return Ok(None) };
    let top = open(&now.place)?;
    let found = statx(&top, c"", AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC, StatxFlags::MNT_ID)?;
    Ok((at::mount_of(&top, &found) == Some(mount.id)).then_some(top))
}

/// As root: umount2(2) with these flags. The directory above is opened without following a link, what lies in it is compared with
/// the mount, and then the last name is all that is resolved; a mountpoint itself can be neither renamed nor removed.
///
/// # Errors
/// What the kernel answers; if another mount covers it, a sentence.
pub fn detach(mount: &Mount, flags: UnmountFlags) -> io::Result<()> {
    let Some(now) = now(mount)? else { return Ok(()) };
    let (Some(above), Some(name)) = (now.place.parent(), now.place.file_name()) else {
        return Ok(umount2(&now.place, UnmountFlags::NOFOLLOW | flags)?);
    };
    let above = open(above)?;
    if on_top(&above, name).is_some_and(|id| id != mount.id) {
        return Err(io::Error::other("another mount lies on it: unmount that first"));
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

/// The mount that is seen under a name; none where the kernel does not say (before 5.8). Its server is not asked.
fn on_top(dir: &OwnedFd, name: &OsStr) -> Option<u64> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let found = statx(dir, name, flags, StatxFlags::MNT_ID).ok()?;
    (found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id)
}

fn named(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("fusermount3 cannot be started: {error}"))
}
