//! Which processes keep a mount busy: open files, working and root directories, mapped files.

use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use crate::process::{MountNamespace, OpenFile, Process};
use crate::{Mount, mounts};

/// A process that keeps a mount busy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// Its number.
    pub pid: u32,
    /// Its name (`comm`).
    pub name: String,
    /// How: `works there`, `has its root there`, `has files open`, `has files mapped`, `is this command itself…`.
    pub how: &'static str,
}

const ITSELF: &str = "is this command itself, which has its working directory or its libraries there";

/// The other processes in `proc` (`/proc`) that keep a mount busy, in order of their numbers. Only root sees those of other users. The
/// mount's server must be alive, since a working directory is asked for its mount.
///
/// This process counts only if there is no other: a command that is to unmount `/usr` has its own libraries mapped from there, and ends anyway.
pub fn holders(proc: &Path, mount: &Mount) -> Vec<Holder> {
    let found = Process::all(proc).filter_map(|process| holder(&process, mount)).collect();
    let mut found = others_first(found, std::process::id());
    found.sort();
    found
}

/// Those that are not this process, or else this one.
fn others_first(found: Vec<Holder>, own: u32) -> Vec<Holder> {
    let (own, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|holder| holder.pid == own);
    if others.is_empty() {
        own.into_iter().map(|own| Holder { how: ITSELF, ..own }).collect()
    } else {
        others
    }
}

/// One process of each other mount namespace that has a copy of the mount. Such a copy keeps the server alive, and so the backing
/// directory busy. Only root sees those of other users.
pub fn elsewhere(proc: &Path, mount: &Mount) -> Vec<Holder> {
    let others = MountNamespace::all(proc).into_iter().skip(1);
    let with_it =
        others.filter(|other| mounts::parse(&other.mountinfo).iter().any(|m| m.device == mount.device));
    let mut found: Vec<Holder> =
        with_it.map(|other| named(&other.process, "has it in mounts of its own")).collect();
    found.sort();
    found
}

fn named(process: &Process, how: &'static str) -> Holder {
    Holder { pid: process.pid, name: process.name(), how }
}

fn holder(process: &Process, mount: &Mount) -> Option<Holder> {
    how(process, mount).map(|how| named(process, how))
}

fn how(process: &Process, mount: &Mount) -> Option<&'static str> {
    if lies_on(&process.working_directory(), mount) {
        return Some("works there");
    }
    if lies_on(&process.root_directory(), mount) {
        return Some("has its root there");
    }
    let files = process.files().unwrap_or_default();
    if files.iter().filter_map(OpenFile::info).any(|file| file.mount == mount.id) {
        return Some("has files open");
    }
    let is_mapped = process.mappings().iter().any(|mapping| mapping.device == mount.device);
    is_mapped.then_some("has files mapped")
}

/// Is what a link leads to on this mount (`STATX_MNT_ID`, Linux 5.8)? The file system is asked for no fresh attributes.
fn lies_on(link: &Path, mount: &Mount) -> bool {
    let found = statx(CWD, link, AtFlags::STATX_DONT_SYNC, StatxFlags::MNT_ID);
    found.is_ok_and(|s| s.stx_mnt_id == mount.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn this_process_keeps_the_mount_of_its_working_directory_busy() {
        let stat = statx(CWD, "/proc/self/cwd", AtFlags::empty(), StatxFlags::MNT_ID).unwrap();
        let mount = Mount {
            id: stat.stx_mnt_id,
            device: Device { major: u32::MAX, minor: 0 },
            place: "/".into(),
            aside: None,
            dir: "/".into(),
            uid: 0,
        };
        let process = Process::this(Path::new("/proc"));
        let own = holder(&process, &mount).unwrap();
        assert_eq!(own.how, "works there");
        let other = Holder { pid: 1, name: "other".into(), how: "has files open" };
        assert_eq!(others_first(vec![own.clone(), other.clone()], own.pid), [other]);
        assert_eq!(others_first(vec![own.clone()], own.pid), [Holder { how: ITSELF, ..own }]);
        assert_eq!(holder(&process, &Mount { id: u64::MAX, ..mount }), None);
    }
}
