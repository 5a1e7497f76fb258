//! Other mounts inside the directory, and which of them may be entered.
//!
//! The kernel stores `nosuid`, `nodev`, `noexec` and `nosymfollow` per mount, and eke's is one mount with its own flags. So
//! nothing on a stricter mount is served: a lookup gets `EXDEV`. The kernel's own file systems are not served either: their
//! answers depend on the process that opens a file, which would be the worker.
//!
//! Flags change, and mounts come and go. So the kernel's list is read again after each change of it; but only for names on
//! another mount than the directory itself.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use eke_linux::parse::mountinfo;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::sync::lock;

const LIST: &str = "/proc/self/mountinfo";
/// No mount has this number.
const NONE: u64 = u64::MAX;
/// The restrictions of a mount, as in mountinfo.
const FLAGS: [&str; 4] = ["nosuid", "nodev", "noexec", "nosymfollow"];
/// The kernel's own file systems: the process that opens a file decides what it shows and does.
const KERNELS: [&str; 20] = [
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "debugfs",
    "tracefs",
    "securityfs",
    "configfs",
    "bpf",
    "pstore",
    "devpts",
    "mqueue",
    "binfmt_misc",
    "efivarfs",
    "fusectl",
    "rpc_pipefs",
    "nsfs",
    "nfsd",
    "selinuxfs",
    "smackfs",
];

/// What waits there for a visitor, to mount what he wants.
const AUTOFS: &str = "autofs";
const OVERLAY: &str = "overlay";

/// True if this file system is one of the kernel's own.
pub fn is_kernels(kind: &str) -> bool {
    KERNELS.contains(&kind)
}

/// A mount inside that is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedMount {
    /// Its mount point.
    pub place: PathBuf,
    /// The reason, as the end of a sentence: "it is nosuid, and this mount is not".
    pub why: String,
}

/// The mounts inside, and their restrictions.
#[derive(Debug)]
pub(super) struct Submounts {
    /// The mount of the directory itself. `None`: the kernel does not report the mount of a file (before 5.8).
    home: Option<u64>,
    /// The mount that serves it; [`NONE`]: it is none of eke's.
    served: AtomicU64,
    /// The directory itself is on an overlayfs.
    is_overlay: bool,
    list: Mutex<MountList>,
    points: Points,
}

#[derive(Debug, Default)]
struct MountList {
    /// poll(2) on it reports changes of the list.
    changes: Option<File>,
    mounts: HashMap<u64, mountinfo::Mount>,
    read: bool,
}

impl Submounts {
    /// For the directory on this mount.
    pub fn new(home: Option<u64>) -> Self {
        let (served, list, points) = (AtomicU64::new(NONE), Mutex::default(), Points::default());
        Self { home, served, is_overlay: false, list, points }
    }

    /// Of a directory on an overlayfs, or not.
    pub fn over_overlay(mut self, is_overlay: bool) -> Self {
        self.is_overlay = is_overlay;
        self
    }

    /// From now on served by this mount, whose flags count.
    pub fn served_by(&self, mount: u64) {
        self.served.store(mount, Relaxed);
    }

    /// True for another mount than that of the directory itself. A subvolume of btrfs is on the same one, though its device is another.
    pub fn is_other(&self, mount: u64) -> bool {
        self.home.is_some_and(|home| home != mount)
    }

    /// True on an overlayfs: an inode there gets the birth of another when it is copied up, and keeps its number. Without a mount, as
    /// before Linux 5.8, it is that of the directory itself.
    pub fn births_change(&self, mount: Option<u64>) -> bool {
        let Some(other) = mount.filter(|mount| self.is_other(*mount)) else { return self.is_overlay };
        let mut list = self.list();
        if !list.mounts.contains_key(&other) {
            list.read = false;
        }
        list.renew();
        list.mounts.get(&other).is_some_and(|mount| mount.kind == OVERLAY)
    }

    /// True if something is mounted at this name of the directory that `parent` returns, a path below the served one. No system call, and no
    /// more than a load for nearly all names.
    pub fn is_point(&self, parent: impl FnOnce() -> Option<PathBuf>, name: &OsStr) -> bool {
        self.points.is_any(name)
            && parent().is_some_and(|parent| self.points.read().contains(&parent.join(name)))
    }

    /// What was found at this path below the directory lies on another mount.
    pub fn note_point(&self, place: PathBuf) {
        self.points.add(place);
    }

    /// The devices of the mounts inside the directory, which is at `dir`, as in mountinfo.
    pub fn devices(&self, dir: &Path) -> HashSet<String> {
        let mut list = self.list();
        list.renew();
        let inside = list.mounts.values().filter(|m| m.place != dir && m.place.starts_with(dir));
        inside.filter(|m| self.is_inside(&list, m)).map(|m| m.device.clone()).collect()
    }

    /// True if files on this mount may be served.
    pub fn are_open_to(&self, mount: u64) -> bool {
        if !self.is_other(mount) {
            return true;
        }
        let mut list = self.list();
        list.renew();
        if !list.mounts.contains_key(&mount) {
            // It may have been mounted since.
            list.read = false;
            list.renew();
        }
        // A mount that is in no list was unmounted lazily.
        list.mounts.get(&mount).is_some_and(|inner| self.why_not(&list, inner).is_none())
    }

    /// The mounts inside the directory, which is at `dir`, that are not served.
    pub fn refused(&self, dir: &Path) -> Vec<RefusedMount> {
        let mut list = self.list();
        list.renew();
        let inside = list.mounts.values().filter(|m| m.place != dir && m.place.starts_with(dir));
        let inside = inside.filter(|m| m.kind != AUTOFS && self.is_inside(&list, m));
        let refused = inside
            .filter_map(|m| Some(RefusedMount { place: m.place.clone(), why: self.why_not(&list, m)? }));
        let mut refused: Vec<_> = refused.collect();
        refused.sort_by(|a, b| a.place.cmp(&b.place));
        refused
    }

    /// The numbers of the mounts inside the directory, which is at `dir`. Another mount of another place has another number.
    pub fn inside(&self, dir: &Path) -> BTreeSet<u64> {
        let mut list = self.list();
        list.renew();
        let inside = list.mounts.values().filter(|m| m.place != dir && m.place.starts_with(dir));
        let inside: Vec<_> = inside.filter(|m| self.is_inside(&list, m)).collect();
        let places = inside.iter().filter_map(|m| m.place.strip_prefix(dir).ok());
        self.points.replace(places.map(Path::to_owned).collect());
        inside.iter().map(|m| m.id).collect()
    }

    fn list(&self) -> MutexGuard<'_, MountList> {
        lock(&self.list)
    }

    fn why_not(&self, list: &MountList, inner: &mountinfo::Mount) -> Option<String> {
        let outer = list.mounts.get(&self.served.load(Relaxed));
        let outer = outer.or_else(|| list.mounts.get(&self.home?));
        let why = why_not(inner, outer.map_or("", |outer| outer.flags.as_str()));
        why.or_else(|| {
            let is_view = has(&inner.flags, "ro") && self.is_served_writable(list, &inner.device);
            is_view.then(|| "it is a read-only view of files that are also served writable".to_owned())
        })
    }

    /// A file has one node, whatever mount it was reached by, and so one descriptor.
    fn is_served_writable(&self, list: &MountList, device: &str) -> bool {
        let served = |m: &&mountinfo::Mount| Some(m.id) == self.home || self.is_inside(list, m);
        list.mounts.values().filter(|m| m.device == device && !has(&m.flags, "ro")).any(|m| served(&m))
    }

    /// True if it lies on the directory's mount, directly or on others, and not on the mount that serves it.
    fn is_inside(&self, list: &MountList, mount: &mountinfo::Mount) -> bool {
        let mut at = mount;
        for _ in 0..list.mounts.len() {
            if Some(at.parent) == self.home {
                return true;
            }
            match list.mounts.get(&at.parent) {
                Some(parent) if parent.id != self.served.load(Relaxed) => at = parent,
                _ => return false,
            }
        }
        false
    }
}

/// Why a mount may not be served by one with these flags. Pure.
fn why_not(inner: &mountinfo::Mount, outer: &str) -> Option<String> {
    if inner.kind == AUTOFS {
        return Some("nothing is mounted there now".to_owned());
    }
    if is_kernels(&inner.kind) {
        return Some(format!(
            "{} answers by the process that opens a file, which would be this cache",
            inner.kind
        ));
    }
    let stricter: Vec<_> = FLAGS.into_iter().filter(|f| has(&inner.flags, f) && !has(outer, f)).collect();
    (!stricter.is_empty()).then(|| format!("it is {}, and this cache's mount is not", stricter.join(", ")))
}

fn has(flags: &str, flag: &str) -> bool {
    flags.split(',').any(|f| f == flag)
}

impl MountList {
    /// Reads the list if it may have changed. The descriptor is opened before the first reading, so that no change is
    /// missed.
    fn renew(&mut self) {
        let changed = match &self.changes {
            Some(file) => has_changed(file),
            None => {
                self.changes = File::open(LIST).ok();
                true
            }
        };
        if changed || !self.read {
            let text = std::fs::read(LIST).unwrap_or_default();
            self.mounts = mountinfo::parse(&text).into_iter().map(|m| (m.id, m)).collect();
            self.read = true;
        }
    }
}

/// poll(2) reports each change once (proc_pid_mounts(5)).
fn has_changed(list: &File) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut watched = [PollFd::new(list, PollFlags::PRI)];
    poll(&mut watched, Some(&now)).map_or(true, |count| count > 0)
}

/// The mount points inside, by their paths below the directory. Nearly every question finds that a name is of none by one load.
#[derive(Debug, Default)]
struct Points {
    /// A bit for each name, and perhaps for others.
    bits: AtomicU64,
    places: RwLock<HashSet<PathBuf>>,
}

/// More are not added one by one.
const MOST_POINTS: usize = 1024;

impl Points {
    fn is_any(&self, name: &OsStr) -> bool {
        let bits = self.bits.load(Relaxed);
        bits != 0
            && bits & bit(name) != 0
            && self.read().iter().any(|place| place.file_name().is_some_and(|last| last == name))
    }

    fn add(&self, place: PathBuf) {
        if self.read().contains(&place) || self.read().len() >= MOST_POINTS {
            return;
        }
        let mut places = self.write();
        self.bits.fetch_or(place.file_name().map_or(0, bit), Relaxed);
        places.insert(place);
    }

    fn replace(&self, places: HashSet<PathBuf>) {
        if *self.read() == places {
            return;
        }
        let mut now = self.write();
        let bits = places.iter().filter_map(|place| place.file_name()).fold(0, |bits, name| bits | bit(name));
        self.bits.store(bits, Relaxed);
        *now = places;
    }

    fn read(&self) -> RwLockReadGuard<'_, HashSet<PathBuf>> {
        self.places.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashSet<PathBuf>> {
        self.places.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of 64, by FNV-1a.
fn bit(name: &OsStr) -> u64 {
    let hash = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    1 << (name.as_bytes().iter().fold(0x811c_9dc5, hash) >> 26)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(kind: &str, flags: &str) -> mountinfo::Mount {
        let text = format!("7 1 0:9 / /srv/in {flags} shared:1 - {kind} none rw\n");
        mountinfo::parse(text.as_bytes()).remove(0)
    }

    #[test]
    fn a_mount_that_is_as_strict_or_looser_may_be_entered() {
        let why = |flags, outer| why_not(&mount("tmpfs", flags), outer);
        assert_eq!(why("rw,relatime", "rw"), None);
        assert_eq!(why("rw,relatime", "rw,nosuid"), None);
        assert_eq!(why("ro,nosuid,nodev", "rw,nodev,nosuid"), None);
    }

    #[test]
    fn a_stricter_one_may_not() {
        let why = |flags: &str, outer| why_not(&mount("tmpfs", flags), outer).unwrap();
        assert_eq!(why("rw,nosuid,noexec", "rw,noexec"), "it is nosuid, and this cache's mount is not");
        for flag in FLAGS {
            assert!(why(&format!("rw,{flag}"), "rw").contains(flag));
        }
    }

    #[test]
    fn the_kernels_own_file_systems_may_not() {
        assert!(why_not(&mount("proc", "rw"), "rw").is_some_and(|why| why.starts_with("proc answers")));
        assert!(is_kernels("cgroup2") && !is_kernels("ext4") && !is_kernels("overlay"));
    }

    #[test]
    fn a_read_only_view_of_files_that_are_served_writable_may_not() {
        let submounts = Submounts::new(Some(1));
        let text = "1 0 8:0 / / rw - ext4 a rw\n2 1 8:0 /data /d/view ro - ext4 a rw\n3 1 8:1 / /d/other ro - ext4 b rw\n\
            4 1 0:5 / /d/net rw - autofs x rw\n";
        let mounts = mountinfo::parse(text.as_bytes());
        *submounts.list() = MountList {
            changes: File::open(LIST).ok(),
            mounts: mounts.into_iter().map(|m| (m.id, m)).collect(),
            read: true,
        };
        assert_eq!([2, 3, 4].map(|id| submounts.are_open_to(id)), [false, true, false]);
        let refused = submounts.refused(Path::new("/d"));
        assert_eq!(refused.iter().map(|r| r.place.as_path()).collect::<Vec<_>>(), [Path::new("/d/view")]);
        assert!(refused[0].why.contains("read-only view"), "{refused:?}");
    }

    #[test]
    fn mounts_on_the_serving_mount_are_not_inside_the_directory() {
        let submounts = Submounts::new(Some(1));
        submounts.served_by(5);
        let text = "1 0 8:0 / / rw - ext4 a rw\n5 1 0:3 / /d rw - fuse.eke-cache /d rw\n\
            6 5 0:4 / /d/on rw,nosuid - tmpfs t rw\n7 1 0:5 / /d/in rw,nosuid - tmpfs t rw\n\
            8 7 0:6 / /d/in/in rw,nodev - tmpfs t rw\n9 1 0:7 / /dd rw,nosuid - tmpfs t rw\n";
        let mounts = mountinfo::parse(text.as_bytes());
        *submounts.list() = MountList {
            changes: File::open(LIST).ok(),
            mounts: mounts.into_iter().map(|m| (m.id, m)).collect(),
            read: true,
        };
        let places: Vec<_> = submounts.refused(Path::new("/d")).into_iter().map(|r| r.place).collect();
        assert_eq!(places, [Path::new("/d/in"), Path::new("/d/in/in")]);
        assert_eq!(submounts.inside(Path::new("/d")), BTreeSet::from([7, 8]));
        let at = |parent: &'static str| move || Some(PathBuf::from(parent));
        assert!(
            submounts.is_point(at(""), OsStr::new("in")) && submounts.is_point(at("in"), OsStr::new("in"))
        );
        assert!(
            !submounts.is_point(at("other"), OsStr::new("in"))
                && !submounts.is_point(|| None, OsStr::new("in"))
        );
        assert!(["on", "dd", "d"].iter().all(|name| !submounts.is_point(at(""), OsStr::new(name))));
        assert_eq!(submounts.devices(Path::new("/d")), HashSet::from(["0:5", "0:6"].map(str::to_owned)));
        assert!(submounts.is_other(7) && !submounts.is_other(1));
    }

    #[test]
    fn births_change_on_an_overlay_alone() {
        let submounts = |is_overlay| {
            let submounts = Submounts::new(Some(1)).over_overlay(is_overlay);
            let text = "1 0 8:0 / / rw - any a rw\n2 1 0:3 / /d/o rw - overlay o rw\n3 1 8:1 / /d/e rw - ext4 b rw\n";
            *submounts.list() = MountList {
                changes: File::open(LIST).ok(),
                mounts: mountinfo::parse(text.as_bytes()).into_iter().map(|m| (m.id, m)).collect(),
                read: true,
            };
            submounts
        };
        let (overlay, plain) = (submounts(true), submounts(false));
        let of = |submounts: &Submounts| {
            [Some(1), Some(2), Some(3), None].map(|mount| submounts.births_change(mount))
        };
        assert_eq!(of(&overlay), [true, true, false, true]);
        assert_eq!(of(&plain), [false, true, false, false]);
    }

    #[test]
    fn a_point_is_known_until_it_is_replaced() {
        let (points, all) = (Points::default(), ["a", "b", "mnt", ""].map(OsStr::new));
        assert!(!all.iter().any(|name| points.is_any(name)));
        points.add("some/mnt".into());
        assert_eq!(all.map(|name| points.is_any(name)), [false, false, true, false]);
        points.replace(["a", "x/b"].map(PathBuf::from).into());
        assert_eq!(all.map(|name| points.is_any(name)), [true, true, false, false]);
    }
}
