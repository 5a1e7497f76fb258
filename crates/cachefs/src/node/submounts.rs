//! Other mounts inside the directory, and which of them may be entered.
//!
//! The kernel stores `nosuid`, `nodev`, `noexec` and `nosymfollow` per mount, and eke's is one mount with its own flags. So
//! nothing on a stricter mount is served: a lookup gets `EXDEV`. The kernel's own file systems are not served either: their
//! answers depend on the process that opens a file, which would be the worker. Nor is the second view of a directory (`views`).
//!
//! Flags change, and mounts come and go. So the kernel's list is read again after each change of it; but only for names on
//! another mount than the directory itself.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use eke_linux::parse::mountinfo;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::views::{Tree, View, is_nfs};
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
    /// In the order of mounting.
    order: Vec<u64>,
    mounts: HashMap<u64, (mountinfo::Mount, View)>,
    read: bool,
    /// The last number of a view.
    last_view: View,
    /// Second views and the places of the first ones, once they were asked for.
    second_views: Option<HashMap<u64, PathBuf>>,
    /// The mount points inside, when they were compared last.
    points: BTreeSet<Point>,
}

/// A mount point inside, and how what is mounted there is served.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    /// Its path below the directory.
    place: PathBuf,
    mount: u64,
    flags: String,
    is_second: bool,
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
        self.list().second_views = None;
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
        list.mount(other).is_some_and(|mount| mount.kind == OVERLAY)
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
        self.all_inside(&list, dir).map(|m| m.device.clone()).collect()
    }

    /// True if what was found on this mount may be served. A directory may not be on a second view; `dir` is the path of the served one.
    pub fn are_open_to(&self, mount: u64, is_directory: bool, dir: impl FnOnce() -> Option<PathBuf>) -> bool {
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
        let is_open = list.mount(mount).is_some_and(|inner| self.why_not(&list, inner).is_none());
        is_open && !(is_directory && self.second_views(&mut list, dir).contains_key(&mount))
    }

    /// What this mount shows. `None`: it is not known.
    pub fn view(&self, mount: Option<u64>) -> Option<View> {
        let mount = mount?;
        if !self.is_other(mount) {
            return Some(View::HOME);
        }
        Some(self.list().mounts.get(&mount)?.1)
    }

    /// The mounts inside the directory, which is at `dir`, that are not served. `is_file` tells it of what is at a path below it.
    pub fn refused(&self, dir: &Path, is_file: impl Fn(&Path) -> bool) -> Vec<RefusedMount> {
        let mut list = self.list();
        list.renew();
        self.second_views(&mut list, || Some(dir.to_owned()));
        let second = list.second_views.as_ref();
        let why_second = |m: &mountinfo::Mount| {
            let first = second?.get(&m.id)?;
            // A path that leads through other mounts, or to a server, may hang.
            let is_at_hand = Some(m.parent) == self.home && !is_nfs(m);
            let is_file = is_at_hand && m.place.strip_prefix(dir).is_ok_and(&is_file);
            (!is_file).then(|| format!("it shows a directory that is served at {}, too", first.display()))
        };
        let why = |m: &mountinfo::Mount| self.why_not(&list, m).or_else(|| why_second(m));
        let inside = self.all_inside(&list, dir).filter(|m| m.kind != AUTOFS);
        let refused = inside.filter_map(|m| Some(RefusedMount { place: m.place.clone(), why: why(m)? }));
        let mut refused: Vec<_> = refused.collect();
        refused.sort_by(|a, b| a.place.cmp(&b.place));
        refused
    }

    /// The mount points inside the directory, which is at `dir`, whose mount came or went since the last call, or is served in another
    /// way since: by their paths below it; true: it went.
    pub fn changed_points(&self, dir: &Path) -> BTreeMap<PathBuf, bool> {
        let mut list = self.list();
        list.renew();
        let second = self.second_views(&mut list, || Some(dir.to_owned())).clone();
        let point = |m: &mountinfo::Mount| {
            let (place, flags) = (m.place.strip_prefix(dir).ok()?.to_owned(), m.flags.clone());
            Some(Point { place, mount: m.id, flags, is_second: second.contains_key(&m.id) })
        };
        let now: BTreeSet<Point> = self.all_inside(&list, dir).filter_map(point).collect();
        self.points.replace(now.iter().map(|point| point.place.clone()).collect());
        let mut changed = BTreeMap::new();
        for point in list.points.symmetric_difference(&now) {
            let is_there = now.iter().any(|now| (&now.place, now.mount) == (&point.place, point.mount));
            *changed.entry(point.place.clone()).or_default() |= !is_there;
        }
        list.points = now;
        changed
    }

    /// The mounts inside, in the order of mounting.
    fn all_inside<'a>(
        &'a self,
        list: &'a MountList,
        dir: &'a Path,
    ) -> impl Iterator<Item = &'a mountinfo::Mount> {
        list.all().filter(move |m| m.place != dir && m.place.starts_with(dir) && self.is_inside(list, m))
    }

    fn second_views<'a>(
        &self,
        list: &'a mut MountList,
        dir: impl FnOnce() -> Option<PathBuf>,
    ) -> &'a HashMap<u64, PathBuf> {
        if list.second_views.is_none() {
            let found = dir().and_then(|dir| {
                let home = list.mount(self.home?)?;
                let tree = Tree { home, dir: &dir, inside: self.all_inside(list, &dir).collect() };
                Some(tree.second_views(|mount| self.why_not(list, mount).is_none()))
            });
            list.second_views = Some(found.unwrap_or_default());
        }
        list.second_views.get_or_insert_default()
    }

    fn list(&self) -> MutexGuard<'_, MountList> {
        lock(&self.list)
    }

    fn why_not(&self, list: &MountList, inner: &mountinfo::Mount) -> Option<String> {
        let outer = list.mount(self.served.load(Relaxed));
        let outer = outer.or_else(|| list.mount(self.home?));
        let why = why_not(inner, outer.map_or("", |outer| outer.flags.as_str()));
        why.or_else(|| {
            let is_view = has(&inner.flags, "ro") && self.is_served_writable(list, &inner.device);
            is_view.then(|| "it is a read-only view of files that are also served writable".to_owned())
        })
    }

    /// A file has one node, whatever mount it was reached by, and so one descriptor.
    fn is_served_writable(&self, list: &MountList, device: &str) -> bool {
        let served = |m: &&mountinfo::Mount| Some(m.id) == self.home || self.is_inside(list, m);
        list.all().filter(|m| m.device == device && !has(&m.flags, "ro")).any(|m| served(&m))
    }

    /// True if it lies on the directory's mount, directly or on others, and not on the mount that serves it.
    fn is_inside(&self, list: &MountList, mount: &mountinfo::Mount) -> bool {
        let mut at = mount;
        for _ in 0..list.mounts.len() {
            if Some(at.parent) == self.home {
                return true;
            }
            match list.mount(at.parent) {
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
    fn mount(&self, id: u64) -> Option<&mountinfo::Mount> {
        self.mounts.get(&id).map(|(mount, _)| mount)
    }

    /// In the order of mounting.
    fn all(&self) -> impl Iterator<Item = &mountinfo::Mount> {
        self.order.iter().filter_map(|id| self.mount(*id))
    }

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
            self.replace(&std::fs::read(LIST).unwrap_or_default());
        }
    }

    /// A mount at the place of the former one with its number shows the same.
    fn replace(&mut self, text: &[u8]) {
        let before = std::mem::take(&mut self.mounts);
        self.order.clear();
        for mount in mountinfo::parse(text) {
            let same = |m: &mountinfo::Mount| {
                (&m.device, m.parent, &m.place) == (&mount.device, mount.parent, &mount.place)
            };
            let view = before.get(&mount.id).filter(|(m, _)| same(m)).map(|(_, view)| *view);
            let view = view.unwrap_or_else(|| {
                self.last_view = self.last_view.next();
                self.last_view
            });
            self.order.push(mount.id);
            self.mounts.insert(mount.id, (mount, view));
        }
        (self.read, self.second_views) = (true, None);
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
#[path = "submounts_tests.rs"]
mod tests;
