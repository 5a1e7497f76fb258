//! Opens a file only if it is the one that was learned, or one that only its owner can have put in its place.
//!
//! Anybody may have replaced the path. It is resolved without following links to an O_PATH descriptor, which opens nothing: it does not wait at a
//! FIFO and wakes no device. Only a file that compares equal is opened for reading.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{
    Advice, CWD, FileType, Mode, OFlags, ResolveFlags, SeekFrom, Stat, fadvise, fstat, openat, openat2, seek,
};
use rustix::io::Errno;

use super::{file_system, replaced};
use crate::request::ReadRequest;
use eke_prefetch_model::file_set::{Kind, Stamp, is_same_file, is_same_file_system, may_read_for};
use eke_prefetch_model::system::is_system;

/// An open file.
#[derive(Debug)]
pub(crate) struct OpenedFile {
    /// Open for reading.
    pub(crate) fd: OwnedFd,
    /// Its size in bytes; 0 for directories.
    pub(crate) bytes: u64,
}

/// Why a file was not opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// A sentence.
    pub(crate) why: String,
    /// Whether the file is a package's or the program's own and has changed, so that the program must be learned again.
    pub(crate) changed: bool,
    /// Whether nothing is at its path.
    pub(crate) is_gone: bool,
}

impl Refusal {
    /// A refusal that may be temporary.
    pub(crate) fn now(why: String) -> Self {
        Self { why, changed: false, is_gone: false }
    }

    fn changed(why: impl Into<String>) -> Self {
        Self { why: why.into(), changed: true, is_gone: false }
    }
}

/// Opens the directory where paths begin.
///
/// # Errors
/// A sentence with the kernel's answer.
pub(crate) fn top(root: &Path) -> Result<OwnedFd, String> {
    openat(CWD, root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|e| format!("{} cannot be opened: {}", root.display(), io::Error::from(e)))
}

/// Opens the file of a request below `root`, if it is root's or the user's for whom it is read.
///
/// # Errors
/// What is at the path instead, or the kernel's answer.
pub(crate) fn open(root: &OwnedFd, request: &ReadRequest) -> Result<OpenedFile, Refusal> {
    // A user's files come and go: a temporary file, a document. That is no reason to learn the program again; a new version of the program is. A device that
    // is another one is none, either: its name may come back at the next boot.
    let is_packages = is_system(&request.path);
    let refused = |errno| {
        let refusal = refusal(errno);
        Refusal { changed: refusal.changed && is_packages, ..refusal }
    };
    let mut path = look_up(root, &request.path).map_err(refused)?;
    let mut stat = fstat(&path).map_err(refused)?;
    if !is_packages && !request.is_own && is_other_file(request, &stat) {
        let found = replaced::by_owner(root, &request.path, request.user);
        (path, stat) =
            found.filter(|(_, stat)| is_regular(stat)).ok_or_else(|| Refusal::now(ANOTHER.to_owned()))?;
    } else {
        let replaced = |why| Refusal { changed: is_packages || request.is_own, ..Refusal::now(why) };
        compare(request, &stat).and_then(|()| compare_file_system(root, request)).map_err(replaced)?;
    }
    if !may_read_for(request.user, stat.st_uid) {
        return Err(Refusal::now(format!(
            "it belongs to user {}, and is not read for user {}",
            stat.st_uid, request.user
        )));
    }
    let fd = reopen(&path).map_err(refused)?;
    let bytes = match request.kind {
        Kind::File => stamp(&stat).size,
        Kind::Directory => 0,
        Kind::Device => seek(&fd, SeekFrom::End(0)).map_err(refused)?,
    };
    // Read exactly the requested pages: no read-ahead, and no shortened reads. Directories have no advice.
    let _ = fadvise(&fd, 0, None, Advice::Random);
    Ok(OpenedFile { fd, bytes })
}

const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Resolves a path without opening the file. No link is followed.
fn look_up(root: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    match beneath(root, path, ResolveFlags::empty()) {
        // EPERM: a filter of system calls that is older than openat2
        Err(Errno::NOSYS | Errno::PERM) => walk(root, path),
        answer => answer,
    }
}

/// The same before Linux 5.6, name by name: a link on the way is no directory.
fn walk(root: &OwnedFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    let mut at = openat(root, ".", PATH_ONLY, Mode::empty())?;
    for part in path.components() {
        match part {
            Component::RootDir => {}
            Component::Normal(name) => at = openat(&at, name, PATH_ONLY, Mode::empty())?,
            _ => return Err(Errno::XDEV),
        }
    }
    Ok(at)
}

/// The same, also with other restrictions of the way. ENOSYS before Linux 5.6.
pub(crate) fn beneath(root: &OwnedFd, path: &Path, more: ResolveFlags) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::BENEATH | more;
    openat2(root, relative(path), PATH_ONLY, Mode::empty(), resolve)
}

fn relative(path: &Path) -> &Path {
    Path::new(OsStr::from_bytes(trim(path.as_os_str().as_bytes())))
}

fn trim(path: &[u8]) -> &[u8] {
    let begin = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
    match &path[begin..] {
        [] => b".",
        rest => rest,
    }
}

const ANOTHER: &str = "another file is there now";

fn is_regular(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// Whether another file has taken the place of a learned one.
fn is_other_file(request: &ReadRequest, stat: &Stat) -> bool {
    request.kind == Kind::File && is_regular(stat) && request.stamp.ino != stamp(stat).ino
}

/// Checks that the file is the one that was learned.
#[allow(clippy::unnecessary_cast, reason = "the field's type differs between architectures")]
fn compare(request: &ReadRequest, stat: &Stat) -> Result<(), String> {
    let (expected, found) = (request.stamp, stamp(stat));
    let kind = FileType::from_raw_mode(stat.st_mode);
    match (request.kind, kind) {
        (Kind::File, FileType::RegularFile) if expected.ino != found.ino => Err(ANOTHER.to_owned()),
        (Kind::File, FileType::RegularFile) if is_same_file(&request.path, &expected, &found) => Ok(()),
        (Kind::File, FileType::RegularFile) => Err("it was changed since it was learned".to_owned()),
        (Kind::Directory, FileType::Directory) if expected.ino == found.ino => Ok(()),
        (Kind::Directory, FileType::Directory) => Err("another directory is there now".to_owned()),
        (Kind::Device, FileType::BlockDevice) if expected.dev == stat.st_rdev as u64 => Ok(()),
        (Kind::Device, FileType::BlockDevice) => Err("another device is there now".to_owned()),
        (_, kind) => Err(format!("{} is there now", kind_name(kind))),
    }
}

/// Checks that the file system on a device is the one that was learned: its pages are of that one's layout.
fn compare_file_system(root: &OwnedFd, request: &ReadRequest) -> Result<(), String> {
    let Stamp { dev, ino, .. } = request.stamp;
    let is_same =
        || is_same_file_system(&request.stamp, &Stamp { ino: file_system::on(root, dev), ..request.stamp });
    if request.kind != Kind::Device || ino == 0 || is_same() {
        Ok(())
    } else {
        Err("another file system is on it now".to_owned())
    }
}

fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice => "a character device",
        FileType::BlockDevice => "a block device",
        FileType::Unknown => "something unknown",
    }
}

/// The stamp of a file.
#[allow(clippy::unnecessary_cast, reason = "the fields' types differ between architectures")]
pub(crate) fn stamp(stat: &Stat) -> Stamp {
    let whole = (stat.st_mtime as i64).saturating_mul(1_000_000_000);
    Stamp {
        dev: stat.st_dev as u64,
        ino: stat.st_ino as u64,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mtime_ns: whole.saturating_add(stat.st_mtime_nsec as i64),
    }
}

/// Opens the descriptor's file for reading, whatever is at its path now. O_NOATIME, because prefetch is not use; without permission for it, the
/// access time changes.
fn reopen(path: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let name = format!("/proc/self/fd/{}", path.as_fd().as_raw_fd());
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match openat(CWD, name.as_str(), flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => openat(CWD, name.as_str(), flags, Mode::empty()),
        answer => answer,
    }
}

fn refusal(errno: Errno) -> Refusal {
    match errno {
        Errno::NOENT | Errno::NOTDIR => Refusal { is_gone: true, ..Refusal::changed("it is gone") },
        Errno::LOOP => Refusal::changed("a symbolic link is in its path now"),
        Errno::AGAIN => Refusal::now("another process holds a lease on it".to_owned()),
        errno => Refusal::now(format!("it cannot be opened: {}", io::Error::from(errno))),
    }
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
