//! Other mounts inside the directory: which of them may be entered.
//!
//! The kernel holds `nosuid`, `nodev`, `noexec` and `nosymfollow` with a mount, and eke's is one mount with flags of its own. So what
//! lies on a stricter one is not served: who looks it up gets `EXDEV`. The kernel's own file systems are not served either: they
//! decide by the process that opens, which would be the worker.
//!
//! Flags change and mounts come and go, so the kernel's list is read again whenever it has changed; only at names that lie on
//! another mount than the directory itself.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use eke_linux::parse::mountinfo;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const LIST: &str = "/proc/self/mountinfo";
/// What a mount may forbid, in the words of mountinfo.
const FLAGS: [&str; 4] = ["nosuid", "nodev", "noexec", "nosymfollow"];
/// File systems whose files are the kernel's: who opened them decides what they show and do.
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

/// Is this file system one of the kernel's own?
pub fn is_kernels(kind: &str) -> bool {
    KERNELS.contains(&kind)
}

/// A mount inside that is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Where it is.
    pub place: PathBuf,
    /// As a sentence's end: "it is nosuid, and this mount is not".
    pub why: String,
}

/// What may be entered.
#[derive(Debug)]
pub(super) struct Borders {
    /// The mount that the directory itself is on; `None`: the kernel does not say which mount a file is on (before 5.8).
    home: Option<u64>,
    /// The mount that serves it, if it is one of eke's.
    served: Option<u64>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// Tells by poll(2) that the list has changed.
    changes: Option<File>,
    mounts: HashMap<u64, mountinfo::Mount>,
    read: bool,
}

impl Borders {
    /// Around the directory on this mount.
    pub fn new(home: Option<u64>) -> Self {
        Self { home, served: None, known: Mutex::default() }
    }

    /// Served by this mount, whose flags count.
    pub fn served_by(mut self, mount: u64) -> Self {
        self.served = Some(mount);
        self
    }

    /// May what is on this mount be served?
    pub fn are_open_to(&self, mount: u64) -> bool {
        if self.home.is_none_or(|home| home == mount) {
            return true;
        }
        let mut known = self.known();
        known.renew();
        if !known.mounts.contains_key(&mount) {
            // It may have come since.
            known.read = false;
            known.renew();
        }
        // One that is in no list was unmounted lazily.
        known.mounts.get(&mount).is_some_and(|inner| self.why_not(&known, inner).is_none())
    }

    /// The mounts below `dir`, where the directory is, that are not served.
    pub fn refused(&self, dir: &Path) -> Vec<Refused> {
        let mut known = self.known();
        known.renew();
        let inside = known.mounts.values().filter(|m| m.place != dir && m.place.starts_with(dir));
        let inside = inside.filter(|m| self.is_below(&known, m));
        let refused =
            inside.filter_map(|m| Some(Refused { place: m.place.clone(), why: self.why_not(&known, m)? }));
        let mut refused: Vec<_> = refused.collect();
        refused.sort_by(|a, b| a.place.cmp(&b.place));
        refused
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn why_not(&self, known: &Known, inner: &mountinfo::Mount) -> Option<String> {
        let outer = self.served.and_then(|id| known.mounts.get(&id));
        let outer = outer.or_else(|| known.mounts.get(&self.home?));
        why_not(inner, outer.map_or("", |outer| outer.flags.as_str()))
    }

    /// Does it lie on the directory's mount, by way of others, and not on the one that serves it?
    fn is_below(&self, known: &Known, mount: &mountinfo::Mount) -> bool {
        let mut at = mount;
        for _ in 0..known.mounts.len() {
            if Some(at.parent) == self.home {
                return true;
            }
            match known.mounts.get(&at.parent) {
                Some(parent) if Some(parent.id) != self.served => at = parent,
                _ => return false,
            }
        }
        false
    }
}

/// Pure: what keeps a mount from being served by one with these flags.
fn why_not(inner: &mountinfo::Mount, outer: &str) -> Option<String> {
    if is_kernels(&inner.kind) {
        return Some(format!("{} decides by who opens its files, which would be this cache", inner.kind));
    }
    let has = |flags: &str, flag: &str| flags.split(',').any(|f| f == flag);
    let stricter: Vec<_> = FLAGS.into_iter().filter(|f| has(&inner.flags, f) && !has(outer, f)).collect();
    (!stricter.is_empty()).then(|| format!("it is {}, and this cache's mount is not", stricter.join(", ")))
}

impl Known {
    /// Reads the list if it may have changed. The watch comes before the reading, so that no change is missed.
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

/// poll(2) tells of each change once (proc_pid_mounts(5)).
fn has_changed(list: &File) -> bool {
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut watched = [PollFd::new(list, PollFlags::PRI)];
    poll(&mut watched, Some(&now)).map_or(true, |count| count > 0)
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
        assert!(why_not(&mount("proc", "rw"), "rw").is_some_and(|why| why.starts_with("proc decides")));
        assert!(is_kernels("cgroup2") && !is_kernels("ext4") && !is_kernels("overlay"));
    }

    #[test]
    fn what_lies_on_the_serving_mount_is_not_below() {
        let borders = Borders::new(Some(1)).served_by(5);
        let text = "1 0 8:0 / / rw - ext4 a rw\n5 1 0:3 / /d rw - fuse.eke-cache /d rw\n\
            6 5 0:4 / /d/on rw,nosuid - tmpfs t rw\n7 1 0:5 / /d/in rw,nosuid - tmpfs t rw\n\
            8 7 0:6 / /d/in/in rw,nodev - tmpfs t rw\n9 1 0:7 / /dd rw,nosuid - tmpfs t rw\n";
        let mounts = mountinfo::parse(text.as_bytes());
        *borders.known() = Known {
            changes: File::open(LIST).ok(),
            mounts: mounts.into_iter().map(|m| (m.id, m)).collect(),
            read: true,
        };
        let places: Vec<_> = borders.refused(Path::new("/d")).into_iter().map(|r| r.place).collect();
        assert_eq!(places, [Path::new("/d/in"), Path::new("/d/in/in")]);
    }
}
