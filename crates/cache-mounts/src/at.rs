//! Names and attributes of backing files, by descriptors.

use std::borrow::Cow;
use std::ffi::{CStr, OsStr};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, Statx, StatxAttributes, StatxFlags, fcntl_setfl, openat, statx,
};
use rustix::io::Errno;
use rustix::path::Arg;

/// The fields that statx(2) fills in.
const FIELDS: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME).union(StatxFlags::MNT_ID);

/// Checks that a name is one entry of a directory: not empty, not `.` or `..`, without `/`. So no call on it leaves its directory.
///
/// # Errors
/// EINVAL if it is not.
pub fn name(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_bytes();
    let none = matches!(bytes, b"" | b"." | b"..") || bytes.contains(&b'/') || bytes.contains(&0);
    if none { Err(Errno::INVAL.into()) } else { Ok(name) }
}

/// An `O_PATH` descriptor of a directory's entry. Does not follow a symbolic link.
///
/// # Errors
/// What openat(2) answers.
pub fn path(dir: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(dir, self::name(name)?, flags, Mode::empty())?)
}

/// The attributes of a directory's entry. Does not follow a symbolic link.
///
/// # Errors
/// What statx(2) answers.
pub fn stat_at(dir: impl AsFd, name: &OsStr) -> io::Result<Statx> {
    Ok(statx(dir, self::name(name)?, AtFlags::SYMLINK_NOFOLLOW, FIELDS)?)
}

/// The same for a list of the directory, which mounts nothing: neither by autofs, nor what an NFS server has mounted there
/// ([`waits_for_mount`]).
///
/// # Errors
/// What statx(2) answers.
pub fn stat_listed(dir: impl AsFd, name: &OsStr) -> io::Result<Statx> {
    Ok(statx(dir, self::name(name)?, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, FIELDS)?)
}

/// The same without a question to the server of a file system that is mounted there, as far as it has answered before
/// (`AT_STATX_DONT_SYNC`).
///
/// # Errors
/// What statx(2) answers.
pub fn stat_listed_unasked(dir: impl AsFd, name: &OsStr) -> io::Result<Statx> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    Ok(statx(dir, self::name(name)?, flags, FIELDS)?)
}

/// True if a visit would mount another file system there (`STATX_ATTR_AUTOMOUNT`).
pub fn waits_for_mount(statx: &Statx) -> bool {
    statx.stx_attributes.contains(StatxAttributes::AUTOMOUNT)
}

/// The attributes of a descriptor.
///
/// # Errors
/// What statx(2) answers.
pub fn stat(file: impl AsFd) -> io::Result<Statx> {
    Ok(statx(file, c"", AtFlags::EMPTY_PATH, FIELDS)?)
}

/// True if the server says that the file does not exist any more (`AT_STATX_FORCE_SYNC`: its attributes are cached).
pub fn is_stale(file: impl AsFd) -> bool {
    let asked = statx(file, c"", AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC, StatxFlags::BASIC_STATS);
    asked.is_err_and(|e| e == Errno::STALE)
}

/// A path to an open file: a link of proc(5). It borrows the descriptor: once that is closed, its number may belong to another
/// file, which a call on the path would then reach.
///
/// ```compile_fail,E0716
/// use std::{fs::File, os::fd::AsFd, sync::Arc};
/// let file = Arc::new(File::open("/")?);
/// let link = eke_cache_mounts::at::link(Arc::clone(&file).as_fd());
/// rustix::fs::stat(link)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Link<'fd> {
    path: String,
    of: PhantomData<BorrowedFd<'fd>>,
}

/// A path to an open file, for system calls that take no descriptor. If the descriptor is of a symbolic link, that link is not
/// followed.
pub fn link(file: BorrowedFd<'_>) -> Link<'_> {
    Link { path: format!("/proc/self/fd/{}", file.as_raw_fd()), of: PhantomData }
}

/// A path to a name in an open directory. It is short, and no rename or link leads it elsewhere.
pub fn inside<'fd>(dir: BorrowedFd<'fd>, name: &str) -> Link<'fd> {
    Link { path: format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()), of: PhantomData }
}

impl AsRef<Path> for Link<'_> {
    fn as_ref(&self) -> &Path {
        self.path.as_ref()
    }
}

impl Arg for Link<'_> {
    fn as_str(&self) -> Result<&str, Errno> {
        Ok(&self.path)
    }

    fn to_string_lossy(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.path)
    }

    fn as_cow_c_str(&self) -> Result<Cow<'_, CStr>, Errno> {
        self.path.as_cow_c_str()
    }

    fn into_c_str<'b>(self) -> Result<Cow<'b, CStr>, Errno>
    where
        Self: 'b,
    {
        self.path.into_c_str()
    }

    fn into_with_c_str<T, F>(self, f: F) -> Result<T, Errno>
    where
        Self: Sized,
        F: FnOnce(&CStr) -> Result<T, Errno>,
    {
        self.path.into_with_c_str(f)
    }
}

/// Opens the file of a descriptor again, with other flags.
///
/// # Errors
/// What openat(2) answers.
pub fn reopen(file: BorrowedFd<'_>, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(openat(CWD, link(file), flags | OFlags::CLOEXEC, Mode::empty())?)
}

/// The same for a regular file, without waiting for another process to give up a lease on it (fcntl(2)).
///
/// # Errors
/// What openat(2) answers; EWOULDBLOCK if there is a lease. The holder has been told.
pub fn reopen_at_once(file: BorrowedFd<'_>, flags: OFlags) -> io::Result<OwnedFd> {
    let fd = reopen(file, flags | OFlags::NONBLOCK)?;
    fcntl_setfl(&fd, flags)?;
    Ok(fd)
}

/// `st_dev`, from the two halves that statx(2) returns.
pub fn dev(statx: &Statx) -> u64 {
    rustix::fs::makedev(statx.stx_dev_major, statx.stx_dev_minor)
}

/// The number of its mount (`STATX_MNT_ID`). `None` before Linux 5.8.
pub fn mount(statx: &Statx) -> Option<u64> {
    (statx.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(statx.stx_mnt_id)
}

/// The number of a descriptor's mount on any kernel: older ones show it in `/proc/self/fdinfo`.
pub fn mount_of(file: impl AsFd, statx: &Statx) -> Option<u64> {
    mount(statx).or_else(|| mount_without_asking(file))
}

/// The same without a question to the file system, whose server may be gone (`/proc/self/fdinfo`, Linux 3.15).
pub fn mount_without_asking(file: impl AsFd) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_fd().as_raw_fd())).ok()?;
    text.lines().find_map(|l| l.strip_prefix("mnt_id:"))?.trim().parse().ok()
}
