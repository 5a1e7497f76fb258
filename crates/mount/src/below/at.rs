//! Names and attributes below, by descriptors.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Statx, StatxFlags, openat, statx};
use rustix::io::Errno;

/// What is asked of statx(2).
const WANTED: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// A name that is one: not empty, not `.` or `..`, without `/`. So no call on it leaves its directory.
///
/// # Errors
/// EINVAL if it is none.
pub fn name(name: &OsStr) -> io::Result<&OsStr> {
    let bytes = name.as_bytes();
    let none = matches!(bytes, b"" | b"." | b"..") || bytes.contains(&b'/') || bytes.contains(&0);
    if none { Err(Errno::INVAL.into()) } else { Ok(name) }
}

/// A descriptor of what a directory has under a name, without opening it and without following a symbolic link.
///
/// # Errors
/// What openat(2) answers.
pub fn path(dir: impl AsFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(dir, self::name(name)?, flags, Mode::empty())?)
}

/// The attributes of what a directory has under a name.
///
/// # Errors
/// What statx(2) answers.
pub fn stat_at(dir: impl AsFd, name: &OsStr) -> io::Result<Statx> {
    Ok(statx(dir, self::name(name)?, AtFlags::SYMLINK_NOFOLLOW, WANTED)?)
}

/// The attributes of a descriptor.
///
/// # Errors
/// What statx(2) answers.
pub fn stat(file: impl AsFd) -> io::Result<Statx> {
    Ok(statx(file, c"", AtFlags::EMPTY_PATH, WANTED)?)
}

/// A path to what a descriptor is of, for calls that take none: a link of proc(5) that needs no name to be right. A
/// symbolic link that the descriptor itself is of is not followed.
pub fn link(file: impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

/// Opens what a descriptor is of.
///
/// # Errors
/// What openat(2) answers.
pub fn reopen(file: impl AsFd, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(openat(CWD, link(file), flags | OFlags::CLOEXEC, Mode::empty())?)
}

/// `st_dev` of statx(2)'s two halves.
pub fn dev(statx: &Statx) -> u64 {
    rustix::fs::makedev(statx.stx_dev_major, statx.stx_dev_minor)
}
