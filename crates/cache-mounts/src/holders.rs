//! Which processes keep a mount busy: open files, working and root directories, mapped files.

use std::fs::read_dir;
use std::path::Path;

use eke_linux::{Root, read};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};

use crate::{Device, Mount, mounts};

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
    let mut found =
        others_first(pids(proc).filter_map(|pid| holder(proc, pid, mount)).collect(), std::process::id());
    found.sort();
    found
}

/// Without those that can keep whoever looks at them waiting for ever.
fn pids(proc: &Path) -> impl Iterator<Item = u32> {
    read::answering(&Root::at(proc.parent().unwrap_or(proc))).into_iter()
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
    spaces_with(proc, |m| m.device == mount.device)
}

/// The same of copies that serve: not of those that stand aside, as the mount does by now.
pub fn copies(proc: &Path, mount: &Mount) -> Vec<Holder> {
    let hidden = mounts::aside(mount.device);
    // A container may have all of the machine's tree inside its own.
    let hidden = hidden.strip_prefix("/").unwrap_or(&hidden);
    spaces_with(proc, |m| m.device == mount.device && !m.point().ends_with(hidden))
}

fn spaces_with(proc: &Path, has: impl Fn(&Mount) -> bool) -> Vec<Holder> {
    let space = |pid: &str| std::fs::read_link(proc.join(pid).join("ns/mnt")).ok();
    let mut seen: Vec<_> = space("self").into_iter().collect();
    let mut found: Vec<Holder> = pids(proc)
        .filter_map(|pid| {
            let space = space(&pid.to_string()).filter(|space| !seen.contains(space))?;
            seen.push(space);
            let dir = proc.join(pid.to_string());
            let mounts = mounts::parse(&std::fs::read(dir.join("mountinfo")).ok()?);
            mounts.iter().any(&has).then(|| Holder {
                pid,
                name: name(&dir),
                how: "has it in mounts of its own",
            })
        })
        .collect();
    found.sort();
    found
}

fn name(process: &Path) -> String {
    let name = std::fs::read(process.join("comm")).unwrap_or_default();
    String::from_utf8_lossy(name.trim_ascii()).into_owned()
}

fn holder(proc: &Path, pid: u32, mount: &Mount) -> Option<Holder> {
    let dir = proc.join(pid.to_string());
    let how = how(&dir, mount)?;
    Some(Holder { pid, name: name(&dir), how })
}

fn how(process: &Path, mount: &Mount) -> Option<&'static str> {
    if lies_on(&process.join("cwd"), mount) {
        return Some("works there");
    }
    if lies_on(&process.join("root"), mount) {
        return Some("has its root there");
    }
    let text = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned();
    let mut open = read_dir(process.join("fdinfo")).into_iter().flatten().flatten();
    if open.any(|fd| mount_id(&text(&fd.path())) == Some(mount.id)) {
        return Some("has files open");
    }
    maps(&text(&process.join("maps")), mount.device).then_some("has files mapped")
}

/// Is what a link leads to on this mount (`STATX_MNT_ID`, Linux 5.8)? The file system is asked for no fresh attributes.
fn lies_on(link: &Path, mount: &Mount) -> bool {
    let found = statx(CWD, link, AtFlags::STATX_DONT_SYNC, StatxFlags::MNT_ID);
    found.is_ok_and(|s| s.stx_mnt_id == mount.id)
}

/// `mnt_id` of `/proc/PID/fdinfo/FD` (Linux 3.15).
fn mount_id(fdinfo: &str) -> Option<u64> {
    fdinfo.lines().find_map(|l| l.strip_prefix("mnt_id:"))?.trim().parse().ok()
}

/// Is a file of this file system mapped? The fourth field of `/proc/PID/maps` is the file system's number, in hexadecimal.
fn maps(text: &str, device: Device) -> bool {
    let number = format!("{:02x}:{:02x}", device.major, device.minor);
    text.lines().any(|l| l.split_ascii_whitespace().nth(3) == Some(number.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fdinfo_and_maps_name_the_mount() {
        assert_eq!(mount_id("pos:\t0\nflags:\t0100000\nmnt_id:\t51\nino:\t9\n"), Some(51));
        assert_eq!(mount_id("pos:\t0\n"), None);
        let text = "7f1c-7f1d r--p 00000000 00:39 42 /srv/a\n55aa-55ab rw-p 00000000 00:00 0 [heap]\n";
        assert!(maps(text, Device { major: 0, minor: 0x39 }));
        assert!(!maps(text, Device { major: 0, minor: 0x3a }));
    }

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
        let own = holder(Path::new("/proc"), std::process::id(), &mount).unwrap();
        assert_eq!(own.how, "works there");
        let other = Holder { pid: 1, name: "other".into(), how: "has files open" };
        assert_eq!(others_first(vec![own.clone(), other.clone()], own.pid), [other]);
        assert_eq!(others_first(vec![own.clone()], own.pid), [Holder { how: ITSELF, ..own }]);
        assert!(holder(Path::new("/proc"), std::process::id(), &Mount { id: u64::MAX, ..mount }).is_none());
    }
}
