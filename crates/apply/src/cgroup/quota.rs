//! A group with a share of one CPU: the small CPU of an experiment.
//!
//! cgroup v1 has `cpu.cfs_quota_us` (sched-bwc.rst), v2 has `cpu.max` (cgroup-v2.rst). On v2 the controller must
//! already be enabled at the top, as systemd does: eke does not enable it for the whole machine.

use std::path::PathBuf;

use super::parent::PARENT;
use super::remove::{kill_all, pids, remove_dir};
use crate::sys;
use crate::write::write_value;
use eke_linux::cgroup::name;
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

const V1: &str = "sys/fs/cgroup/cpu";
const V2: &str = "sys/fs/cgroup";
/// Short, so that processes run slowly rather than in bursts; the kernel accepts 1 ms to 1 s.
const PERIOD_US: u64 = 10_000;
/// The kernel's minimum.
const LEAST_US: u64 = 1_000;

/// A group with a CPU quota. Drop kills the members and removes the group.
#[derive(Debug)]
pub struct Quota {
    root: Root,
    hierarchy: &'static str,
    target: String,
}

impl Quota {
    /// Creates an empty group without a quota. `label` is letters and digits.
    ///
    /// # Errors
    /// `Refused` without a CPU controller; the kernel's answer.
    pub fn make(root: &Root, label: &str) -> Result<Self> {
        let target = format!("{PARENT}/{}", name::of_this_process(root, label)?);
        let quota = Self { root: root.clone(), hierarchy: hierarchy(root)?, target };
        if quota.hierarchy == V2 {
            quota.create(&format!("{V2}/{PARENT}"))?;
            write_value(root, "group.subtree_control", PARENT, "+cpu")?;
        }
        quota.create(&quota.dir())?;
        Ok(quota)
    }

    /// Its directory, relative to the root.
    fn dir(&self) -> String {
        format!("{}/{}", self.hierarchy, self.target)
    }

    fn create(&self, dir: &str) -> Result<()> {
        let path = self.root.path(dir);
        sys::of(&self.root).create_dir(&path, 0o755).map_err(|e| Error::io("make the group", &path, e))
    }

    /// Limits all its members together to `permille` thousandths of one CPU, at least 100.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn permille(&self, permille: u64) -> Result<()> {
        let quota_us = (PERIOD_US * permille / 1000).max(LEAST_US);
        if self.hierarchy == V2 {
            return write_value(
                &self.root,
                "group.cpu.max",
                &self.target,
                &format!("{quota_us} {PERIOD_US}"),
            );
        }
        write_value(&self.root, "group.cpu.cfs_period_us", &self.target, &PERIOD_US.to_string())?;
        write_value(&self.root, "group.cpu.cfs_quota_us", &self.target, &quota_us.to_string())
    }

    /// The file to which a process writes 0 to join.
    pub fn entry(&self) -> PathBuf {
        self.root.path(format!("{}/cgroup.procs", self.dir()))
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = remove(&self.root, &self.dir());
        // Fails while another group exists there.
        let _ = sys::of(&self.root).remove_dir(&self.root.path(format!("{}/{PARENT}", self.hierarchy)));
    }
}

fn hierarchy(root: &Root) -> Result<&'static str> {
    if root.exists(format!("{V1}/cpu.cfs_quota_us")) || root.exists(format!("{V1}/cgroup.procs")) {
        return Ok(V1);
    }
    let on = root.read_if_exists(format!("{V2}/cgroup.subtree_control"))?.unwrap_or_default();
    if on.split_whitespace().any(|c| c == "cpu") {
        return Ok(V2);
    }
    Err(Error::Refused(format!(
        "no CPU controller for groups of processes: neither {} (cgroup v1) nor \"cpu\" in {} (cgroup v2)",
        root.path(V1).display(),
        root.path(format!("{V2}/cgroup.subtree_control")).display()
    )))
}

/// Kills the members of groups of dead owners, and removes the groups.
///
/// # Errors
/// The kernel's answer to the first group that cannot be removed.
pub fn sweep(root: &Root) -> Result<()> {
    // On cgroup v2 the sweep of memory groups removes them, too: they have the same parent.
    let parent = format!("{V1}/{PARENT}");
    for name in root.list(&parent).unwrap_or_default() {
        let Some(owner) = name::owner(&name) else { continue };
        if !name::is_alive(root, owner)? {
            remove(root, &format!("{parent}/{name}"))?;
        }
    }
    let _ = sys::of(root).remove_dir(&root.path(parent));
    Ok(())
}

fn remove(root: &Root, dir: &str) -> Result<()> {
    remove_dir(root, dir, || {
        let procs = root.read_if_exists(format!("{dir}/cgroup.procs"))?.unwrap_or_default();
        kill_all(root, pids(&procs));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(dir: &std::path::Path, path: &str, text: &str) {
        let at = dir.join(path);
        std::fs::create_dir_all(at.parent().unwrap()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a fake root")]
        std::fs::write(at, text).unwrap();
    }

    fn machine(v1: bool) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let pid = std::process::id();
        put(dir.path(), &format!("proc/{pid}/stat"), &format!("{pid} (x) S {}77 1 1", "1 ".repeat(18)));
        if v1 {
            put(dir.path(), "sys/fs/cgroup/cpu/cgroup.procs", "");
        } else {
            put(dir.path(), "sys/fs/cgroup/cgroup.subtree_control", "memory cpu");
            put(dir.path(), "sys/fs/cgroup/eke/cgroup.subtree_control", "");
        }
        let root = Root::at(dir.path());
        (dir, root)
    }

    #[test]
    fn a_share_of_a_cpu_on_either_version() {
        for (v1, files) in [
            (true, &[("cpu.cfs_period_us", "10000"), ("cpu.cfs_quota_us", "2500")][..]),
            (false, &[("cpu.max", "2500 10000")]),
        ] {
            let (dir, root) = machine(v1);
            let quota = Quota::make(&root, "x").unwrap();
            let group = quota.entry().parent().unwrap().to_owned();
            files.iter().for_each(|(name, _)| put(&group, name, ""));
            quota.permille(250).unwrap();
            for (name, value) in files {
                assert_eq!(std::fs::read_to_string(group.join(name)).unwrap(), *value, "{name}");
                std::fs::remove_file(group.join(name)).unwrap();
            }
            drop(quota);
            assert!(!group.exists(), "{dir:?}");
        }
    }

    #[test]
    fn without_a_controller_the_error_names_both_files() {
        let dir = tempfile::tempdir().unwrap();
        let pid = std::process::id();
        put(dir.path(), &format!("proc/{pid}/stat"), &format!("{pid} (x) S {}77 1 1", "1 ".repeat(18)));
        let error = Quota::make(&Root::at(dir.path()), "x").unwrap_err().to_string();
        assert!(error.contains("sys/fs/cgroup/cpu"), "{error}");
    }

    #[test]
    fn leftovers_of_a_dead_owner_are_swept() {
        let (dir, root) = machine(true);
        std::fs::create_dir_all(dir.path().join("sys/fs/cgroup/cpu/eke/x-1-99")).unwrap();
        put(dir.path(), "proc/1/stat", &format!("1 (x) S {}77 1 1", "1 ".repeat(18)));
        sweep(&root).unwrap();
        assert!(!dir.path().join("sys/fs/cgroup/cpu/eke").exists());
    }
}
