//! Which programs do more with a mount than read its files: they keep it in the directory tree.
//!
//! Files that are open to be read do not: they go on. What does: a descriptor that can write, is locked, or is of a directory, from which more
//! may be opened; a working or root directory; a shared writable mapping; a watch (inotify, fanotify), which would miss what changes elsewhere.

use std::fs::{read_dir, read_to_string};
use std::path::Path;

use eke_cache_mounts::holders::{copies, lies_on};
use eke_cache_mounts::status::{Refusal, RefusalKind};
use eke_cache_mounts::{Device, Mount, mounts};
use eke_linux::parse::{maps, mountinfo};
use eke_linux::{Root, read};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, statx};

use super::writers::parse::{self, OpenFile};

const PROC: &str = "/proc";

/// Checks that no program does more than read. Only processes that this one may inspect count.
///
/// # Errors
/// `Busy`, with the name of the first that does.
pub(super) fn check_none(shown: &Mount) -> Result<(), Refusal> {
    let using = read::answering(&Root::host()).into_iter().find_map(|pid| user(pid, shown));
    using.map_or(Ok(()), |what| Err(Refusal { what, kind: RefusalKind::Busy }))
}

/// Checks that nothing is mounted inside: it would go with the mount that it is on, or be hidden by its return.
///
/// # Errors
/// `Busy`.
pub(super) fn check_nothing_inside(place: &Path) -> Result<(), Refusal> {
    let all = mountinfo::parse(&std::fs::read("/proc/self/mountinfo").unwrap_or_default());
    let inside = all.iter().find(|m| m.place != place && m.place.starts_with(place));
    let what = inside.map(|m| format!("another file system is mounted inside, at {}", m.place.display()));
    what.map_or(Ok(()), |what| Err(Refusal { what, kind: RefusalKind::Busy }))
}

/// Checks that no other mount leads to the same files: a bind mount, or a copy in another mount namespace that does not follow this one's
/// changes. Call it when the mount is aside.
///
/// # Errors
/// `Busy`.
pub(super) fn check_not_elsewhere(shown: &Mount) -> Result<(), Refusal> {
    let here = mounts::read().unwrap_or_default();
    let bound = here.iter().find(|m| m.device == shown.device && m.aside.is_none());
    let bound = bound.map(|m| format!("it is mounted at {}, too", m.place.display()));
    let copied = || {
        let holder = copies(Path::new(PROC), shown).into_iter().next()?;
        Some(format!("{} ({}) has it in mounts of its own", holder.name.escape_debug(), holder.pid))
    };
    bound.or_else(copied).map_or(Ok(()), |what| Err(Refusal { what, kind: RefusalKind::Busy }))
}

/// How a process uses the mount, as a sentence; `None`: not at all, or only to read.
fn user(pid: u32, shown: &Mount) -> Option<String> {
    let process = Path::new(PROC).join(pid.to_string());
    let how = works_there(&process, shown)
        .or_else(|| opens(&process, shown))
        .or_else(|| maps_it(&process, shown.device))?;
    let name = std::fs::read(process.join("comm")).unwrap_or_default();
    Some(format!("{} ({pid}) {how}", String::from_utf8_lossy(name.trim_ascii()).escape_debug()))
}

fn works_there(process: &Path, shown: &Mount) -> Option<&'static str> {
    let works = lies_on(&process.join("cwd"), shown) || lies_on(&process.join("root"), shown);
    works.then_some("works there")
}

fn opens(process: &Path, shown: &Mount) -> Option<&'static str> {
    let files = read_dir(process.join("fd")).ok()?.flatten();
    files.filter_map(|file| file.file_name().into_string().ok()).find_map(|number| {
        let text = read_to_string(process.join("fdinfo").join(&number)).ok()?;
        if parse::watches(&text, shown.device, shown.id) {
            return Some("watches it");
        }
        let open = parse::open(&text).filter(|open| open.mount == shown.id)?;
        how(open, || is_directory(&process.join("fd").join(&number)))
    })
}

/// How an open file of the mount is used; `None`: to read.
fn how(open: OpenFile, is_directory: impl FnOnce() -> bool) -> Option<&'static str> {
    match open {
        OpenFile { writes: true, .. } => Some("has a file open for writing"),
        OpenFile { locked: true, .. } => Some("has a file locked"),
        _ => is_directory().then_some("has a directory open"),
    }
}

/// The file system is asked for no fresh attributes.
fn is_directory(link: &Path) -> bool {
    let found = statx(CWD, link, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE);
    found.is_ok_and(|s| FileType::from_raw_mode(s.stx_mode.into()) == FileType::Directory)
}

fn maps_it(process: &Path, device: Device) -> Option<&'static str> {
    let text = std::fs::read(process.join("maps")).ok()?;
    let of = |mapping: &maps::Mapping| mapping.is_writable && mapping.is_shared && mapping.device == device;
    maps::parse(&text).iter().any(of).then_some("has a file mapped for writing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_is_read_lets_the_mount_go() {
        let of = |writes, locked, is_directory| how(OpenFile { mount: 1, writes, locked }, || is_directory);
        assert_eq!(of(false, false, false), None);
        assert!(
            of(true, false, false).is_some()
                && of(false, true, false).is_some()
                && of(false, false, true).is_some()
        );
    }
}
