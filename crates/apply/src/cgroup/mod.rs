//! Control groups with a memory limit, on cgroup v2 or v1.
//!
//! # Layout
//! - [`parent`]: finds where this process may create groups, as root or in a delegated part of cgroup v2
//! - [`eke_linux::cgroup::name`]: group names contain the owner, so that leftovers of a dead owner can be distinguished
//!   from groups in use
//! - [`stats`]: what a group uses
//! - [`quota`]: groups with a share of a CPU
//! - `remove`: kills the members of a group and removes its directory
//! - [`sweep`](fn@sweep): removes the groups of dead owners
//!
//! A cgroup v1 group has a twin in the unified hierarchy of a hybrid machine. The twin has no limits, but it has
//! pressure-stall information and `cgroup.kill`, which v1 lacks.
//!
//! Groups are not in the journal: they contain only processes that eke started, their names contain their owner, and a
//! boot removes them.

pub mod parent;
pub mod quota;
mod remove;
pub mod stats;
mod sweep;
#[cfg(test)]
mod tests;

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

use eke_model::units::Bytes;

use crate::sys;
use crate::write::{locate, write_value};
use eke_linux::cgroup::name;
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

pub use eke_linux::cgroup::Hierarchy;
pub use parent::GroupParent;
pub use stats::{GroupStats, Oom};
pub use sweep::sweep;

/// Attempts to create a group, because another owner may remove the common parent meanwhile.
const MAKE_TRIES: u32 = 5;

/// A group of processes created by this process. Drop kills the members and removes the group.
#[derive(Debug)]
pub struct Group {
    at: Located,
    removed: bool,
}

/// The location of a group: enough to read, fill, kill and remove it.
#[derive(Debug, Clone)]
pub(crate) struct Located {
    pub root: Root,
    pub hierarchy: Hierarchy,
    /// Replaces the `*` of the `group.*` knobs: `eke/NAME`, with its parents on a delegated cgroup v2.
    pub target: String,
    /// The name in `sys/fs/cgroup/unified`, if a cgroup v1 group has a twin there.
    pub twin: Option<String>,
}

impl Group {
    /// Creates an empty group in `parent`, without limits. Its name is `label` (letters and digits) with pid and start
    /// time of the owner, this process.
    ///
    /// # Errors
    /// The kernel's answer; no group is left then.
    pub fn make(root: &Root, parent: &GroupParent, label: &str) -> Result<Self> {
        let name = name::of_this_process(root, label)?;
        let target = format!("{}/{name}", parent.path);
        let twin = parent.twin.as_ref().map(|twin| format!("{twin}/{name}"));
        let group = Self {
            at: Located { root: root.clone(), hierarchy: parent.hierarchy, target, twin },
            removed: false,
        };
        for attempt in 1.. {
            match parent.prepare(root).and_then(|()| group.at.create()) {
                Err(e) if e.is_absent() && attempt < MAKE_TRIES => continue,
                done => {
                    done?;
                    break;
                }
            }
        }
        Ok(group)
    }

    /// Its cgroup version.
    pub fn hierarchy(&self) -> Hierarchy {
        self.at.hierarchy
    }

    /// Its directory, relative to the root.
    pub fn dir(&self) -> String {
        self.at.dir()
    }

    /// Sets its memory limit, rounded down to whole pages. If the group does not fit, cgroup v2 kills processes; cgroup
    /// v1 answers EBUSY after a second of trying to reclaim.
    ///
    /// On cgroup v1 the group is frozen while its limit goes below its usage. The kernel reclaims 32 pages and checks
    /// again (`mem_cgroup_resize_max`); a running group that swaps has those back by then, for seconds (observed on
    /// Linux 6.18).
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn limit(&self, limit: Bytes) -> Result<()> {
        let page = rustix::param::page_size() as u64;
        let bytes = limit.0 / page * page;
        match self.at.hierarchy {
            Hierarchy::V1 => self.limit_v1(bytes),
            Hierarchy::V2 => self.at.set("group.memory.max", &bytes.to_string()),
        }
    }

    fn limit_v1(&self, bytes: u64) -> Result<()> {
        if stats::usage_v1(&self.at)?.0 <= bytes {
            return self.at.set("group.memory.limit_in_bytes", &bytes.to_string());
        }
        self.freeze(true)?;
        let limited = self.at.set("group.memory.limit_in_bytes", &bytes.to_string());
        self.freeze(false)?;
        limited
    }

    /// Freezes or thaws it through its twin. Without one, or before Linux 5.2, it keeps running.
    fn freeze(&self, still: bool) -> Result<()> {
        let Some(twin) = &self.at.twin else { return Ok(()) };
        let value = if still { "1" } else { "0" };
        match write_value(&self.at.root, "group.cgroup.freeze", &format!("unified/{twin}"), value) {
            Err(e) if e.is_absent() => Ok(()),
            done => done,
        }
    }

    /// Keeps it from using swap at all. Set its limit first, and do not change it afterwards. If the kernel does not
    /// account swap per group (`swapaccount=0`), cgroup v1 gets swappiness 0, which forbids swap for a limited group
    /// (`get_scan_count` in mm/vmscan.c).
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn forbid_swap(&self, limit: Bytes) -> Result<()> {
        let page = rustix::param::page_size() as u64;
        let bytes = (limit.0 / page * page).to_string();
        match self.at.hierarchy {
            Hierarchy::V2 => self.at.set("group.memory.swap.max", "0"),
            Hierarchy::V1 => match self.at.set("group.memory.memsw.limit_in_bytes", &bytes) {
                Err(e) if e.is_absent() => self.swappiness(0),
                done => done,
            },
        }
    }

    /// Sets its own swappiness, 0 to 200; cgroup v2 has none per group.
    ///
    /// # Errors
    /// The kernel's answer, `Refused` on cgroup v2.
    pub fn swappiness(&self, value: u32) -> Result<()> {
        match self.at.hierarchy {
            Hierarchy::V1 => self.at.set("memory.swappiness", &value.to_string()),
            Hierarchy::V2 => Err(Error::Refused(
                "cgroup v2 has no swappiness per group; set vm.swappiness for the machine instead".to_owned(),
            )),
        }
    }

    /// Moves a process into the group.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn admit(&self, pid: u32) -> Result<()> {
        let pid = pid.to_string();
        let knob = match self.at.hierarchy {
            Hierarchy::V1 => "group.v1.cgroup.procs",
            Hierarchy::V2 => "group.v2.cgroup.procs",
        };
        self.at.set(knob, &pid)?;
        match &self.at.twin {
            Some(twin) => write_value(&self.at.root, "group.unified.cgroup.procs", twin, &pid),
            None => Ok(()),
        }
    }

    /// Opens the group for a process that cannot allocate memory or take locks: a child between fork and exec.
    ///
    /// # Errors
    /// The kernel's answer to opening `cgroup.procs`.
    pub fn entry(&self) -> Result<Entry> {
        let knob = match self.at.hierarchy {
            Hierarchy::V1 => "group.v1.cgroup.procs",
            Hierarchy::V2 => "group.v2.cgroup.procs",
        };
        let mut files = vec![self.at.open(knob, &self.at.target)?];
        if let Some(twin) = &self.at.twin {
            files.push(self.at.open("group.unified.cgroup.procs", twin)?);
        }
        Ok(Entry { files })
    }

    /// Reads its current usage and counters.
    ///
    /// # Errors
    /// The kernel's answer if one cannot be read.
    pub fn stats(&self) -> Result<GroupStats> {
        stats::read(&self.at)
    }

    /// The pids of its members.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn pids(&self) -> Result<Vec<u32>> {
        self.at.pids()
    }

    /// Kills all members. They exit soon after, not at once.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn kill(&self) -> Result<()> {
        self.at.kill()
    }

    /// Kills its members and removes it, and removes the parent if no other group is left.
    ///
    /// # Errors
    /// The kernel's answer; EBUSY after two seconds means that a process cannot be killed because it waits in the
    /// kernel.
    pub fn remove(mut self) -> Result<()> {
        self.removed = true;
        self.at.remove()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.removed {
            let _ = self.at.remove();
        }
    }
}

/// Opened `cgroup.procs` files.
#[derive(Debug)]
pub struct Entry {
    files: Vec<File>,
}

impl Entry {
    /// Moves the calling process in with one `write(2)`: "0" means the writer (cgroup-v1/cgroups.rst, cgroup-v2.rst).
    /// It does not use [`write_value`], which allocates memory.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn enter(&self) -> io::Result<()> {
        self.files.iter().try_for_each(|file| (&*file).write(b"0").map(drop))
    }
}

impl Located {
    pub fn dir(&self) -> String {
        match self.hierarchy {
            Hierarchy::V1 => format!("sys/fs/cgroup/memory/{}", self.target),
            Hierarchy::V2 => format!("sys/fs/cgroup/{}", self.target),
        }
    }

    fn twin_dir(&self) -> Option<String> {
        self.twin.as_ref().map(|twin| format!("sys/fs/cgroup/unified/{twin}"))
    }

    /// The directory in the unified hierarchy, which has pressure and `cgroup.kill`.
    pub fn unified_dir(&self) -> Option<String> {
        match self.hierarchy {
            Hierarchy::V1 => self.twin_dir(),
            Hierarchy::V2 => Some(self.dir()),
        }
    }

    fn create(&self) -> Result<()> {
        for dir in [Some(self.dir()), self.twin_dir()].into_iter().flatten() {
            let path = self.root.path(dir);
            sys::of(&self.root)
                .create_dir(&path, 0o755)
                .map_err(|e| Error::io("make the group", &path, e))?;
        }
        Ok(())
    }

    fn set(&self, knob: &str, value: &str) -> Result<()> {
        write_value(&self.root, knob, &self.target, value)
    }

    fn open(&self, knob: &str, target: &str) -> Result<File> {
        let (_, path) = locate(&self.root, knob, target)?;
        OpenOptions::new().write(true).open(&path).map_err(|e| Error::io("open", &path, e))
    }

    fn pids(&self) -> Result<Vec<u32>> {
        let mut pids = Vec::new();
        for dir in [Some(self.dir()), self.twin_dir()].into_iter().flatten() {
            let text = self.root.read_if_exists(format!("{dir}/cgroup.procs"))?.unwrap_or_default();
            pids.extend(remove::pids(&text));
        }
        pids.sort_unstable();
        pids.dedup();
        Ok(pids)
    }

    /// Uses `cgroup.kill` (Linux 5.14), which no fork escapes; without it, kills the members one by one.
    fn kill(&self) -> Result<()> {
        let unified =
            self.unified_dir().and_then(|dir| dir.strip_prefix("sys/fs/cgroup/").map(str::to_owned));
        if let Some(target) = unified {
            match write_value(&self.root, "group.cgroup.kill", &target, "1") {
                Err(e) if e.is_absent() => {}
                Err(e) => return Err(e),
                Ok(()) => {}
            }
        }
        remove::kill_all(&self.root, self.pids()?);
        Ok(())
    }

    /// Kills the members and removes the group, with retries; a missing group is fine.
    pub fn remove(&self) -> Result<()> {
        for dir in [Some(self.dir()), self.twin_dir()].into_iter().flatten() {
            remove::remove_dir(&self.root, &dir, || self.kill())?;
        }
        parent::remove_parents(self);
        Ok(())
    }
}
