//! Which programs do more with a mount than read its files: they keep it in the directory tree.
//!
//! Files that are open to be read do not: they go on. What does: a descriptor that can write, is locked, or is of a directory, from which more
//! may be opened; a working or root directory; a shared writable mapping; a program that runs, whose file others could then write; a watch
//! (inotify, fanotify), which would miss what changes elsewhere; a pipe or a socket with a name, where others would wait for ever.

use std::path::{Path, PathBuf};

use eke_cache_mounts::process::{FileInfo, OpenFile, Process};
use eke_cache_mounts::status::{Refusal, RefusalKind};
use eke_cache_mounts::{Device, Mount, mounts};
use eke_linux::Root;
use eke_linux::parse::maps::Mapping;
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};

use super::exports::export_of;
use super::sockets::socket_in;

const PROC: &str = "/proc";

/// Checks that no program does more than read. Only processes that this one may inspect count.
///
/// # Errors
/// `Busy`, with the name of the first that does.
pub(super) fn check_none(shown: &Mount) -> Result<(), Refusal> {
    let using = Process::all(Path::new(PROC)).find_map(|process| user(&process, shown));
    using.map_or(Ok(()), busy)
}

/// Checks that nothing is inside that the kernel leads others to: a socket with a name, a file of a loop device, or an export of its NFS
/// server.
///
/// # Errors
/// `Busy`.
pub(super) fn check_kernel(place: &Path) -> Result<(), Refusal> {
    let socket = socket_in(Path::new(PROC), place);
    let bound = socket.map(|socket| format!("a program has the socket {}", socket.display()));
    let looped = || {
        let file = loop_files(&Root::host()).into_iter().find(|file| file.starts_with(place))?;
        Some(format!("a loop device uses {}", file.display()))
    };
    let exported = || {
        let export = export_of(&Root::host(), place)?;
        Some(format!("the kernel's NFS server exports {}", export.display()))
    };
    bound.or_else(looped).or_else(exported).map_or(Ok(()), busy)
}

fn loop_files(root: &Root) -> Vec<PathBuf> {
    let devices = root.list("sys/block").unwrap_or_default();
    let loops = devices.into_iter().filter(|name| name.starts_with("loop"));
    let file = |name: String| root.read(format!("sys/block/{name}/loop/backing_file")).ok();
    loops.filter_map(file).map(|file| PathBuf::from(file.trim_end_matches('\n'))).collect()
}

/// Checks that no program has a file there from before a move. Of the others, unmounting knows.
///
/// # Errors
/// With the name of one that has.
pub(crate) fn check_no_file(shown: &Mount) -> Result<(), Refusal> {
    let holder = Process::all(Path::new(PROC)).find(|process| has_older(process, shown));
    holder.map_or(Ok(()), |holder| {
        Err(Refusal {
            what: format!(
                "{} is in use by {}, which has files open from before it stood aside. Close them, or use --lazy: then open files go on until they are closed",
                shown.place.display(),
                name(&holder)
            ),
            kind: RefusalKind::Failed,
        })
    })
}

/// Has the process a file of the file system on none of its mounts?
fn has_older(process: &Process, shown: &Mount) -> bool {
    let files = process.files().unwrap_or_default();
    let mut of_it = files.iter().filter(|file| kind_on(&file.link, shown).is_some()).peekable();
    if of_it.peek().is_none() {
        return false;
    }
    let present = mounts::parse(&process.mountinfo());
    of_it.filter_map(OpenFile::info).any(|file| present.iter().all(|mount| mount.id != file.mount))
}

pub(super) fn busy<T>(what: String) -> Result<T, Refusal> {
    Err(Refusal { what, kind: RefusalKind::Busy })
}

/// How a process uses the mount, as a sentence; `None`: not at all, or only to read.
fn user(process: &Process, shown: &Mount) -> Option<String> {
    let how = works_there(process, shown)
        .or_else(|| opens(process, shown))
        .or_else(|| maps_it(process, shown.device))?;
    Some(format!("{} {how}", name(process)))
}

/// Escaped: other users choose it.
pub(super) fn name(process: &Process) -> String {
    format!("{} ({})", process.name().escape_debug(), process.pid)
}

fn works_there(process: &Process, shown: &Mount) -> Option<&'static str> {
    let links = [process.working_directory(), process.root_directory()];
    links.iter().any(|link| kind_on(link, shown).is_some()).then_some("works there")
}

fn opens(process: &Process, shown: &Mount) -> Option<&'static str> {
    let files = process.files().unwrap_or_default();
    files.iter().filter(|file| file.is_file_or_watch()).find_map(|file| {
        let info = file.info()?;
        if info.watches(shown.device, shown.id) {
            return Some("watches it");
        }
        how(&info, kind_on(&file.link, shown)?)
    })
}

/// The kind of what a link leads to, if that is on the mount's file system. By that, since the mount has another number in another mount
/// namespace, and a file that was opened before a move has that of the mount before. The file system is asked for no fresh attributes.
fn kind_on(link: &Path, shown: &Mount) -> Option<FileType> {
    let found = statx(CWD, link, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE).ok()?;
    let device = Device { major: found.stx_dev_major, minor: found.stx_dev_minor };
    (device == shown.device).then(|| FileType::from_raw_mode(found.stx_mode.into()))
}

/// How an open file of the mount is used; `None`: to read.
fn how(info: &FileInfo, kind: FileType) -> Option<&'static str> {
    match info {
        FileInfo { writes: true, .. } => Some("has a file open for writing"),
        FileInfo { locked: true, .. } => Some("has a file locked"),
        _ if kind == FileType::Fifo => Some("has a pipe open"),
        _ => (kind == FileType::Directory).then_some("has a directory open"),
    }
}

fn maps_it(process: &Process, device: Device) -> Option<&'static str> {
    let how = |mapping: &Mapping| match mapping {
        Mapping { is_writable: true, is_shared: true, .. } => Some("has a file mapped for writing"),
        Mapping { is_executable: true, .. } => Some("runs a program or a library of it"),
        _ => None,
    };
    process.mappings().iter().filter(|mapping| mapping.device == device).find_map(how)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_is_read_lets_the_mount_go() {
        let of = |flags: &str, more: &str, kind| {
            let info = FileInfo::parse(format!("flags:\t{flags}\nmnt_id:\t1\n{more}")).unwrap();
            how(&info, kind)
        };
        let file = FileType::RegularFile;
        assert_eq!(of("0100000", "", file), None);
        assert!(of("0100001", "", file).is_some());
        assert!([FileType::Directory, FileType::Fifo].iter().all(|kind| of("0100000", "", *kind).is_some()));
        assert!(of("0100000", "lock:\t1: FLOCK  ADVISORY  READ 359 00:13:11691 0 EOF\n", file).is_some());
    }
}
