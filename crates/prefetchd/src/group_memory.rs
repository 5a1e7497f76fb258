//! How much memory control groups let a process have (cgroup v2).

use std::path::{Path, PathBuf};

use eke_linux::Root;
use eke_linux::parse::{groups, keyed};
use eke_model::units::Bytes;

/// Where cgroup v2 is mounted.
const TOP: &str = "sys/fs/cgroup";
/// `memory.high` is no less a limit: above it the kernel takes pages back (Documentation/admin-guide/cgroup-v2.rst).
const LIMITS: [&str; 2] = ["memory.max", "memory.high"];

/// What groups let their members have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupMemory {
    /// The lowest limit.
    pub(crate) most: Bytes,
    /// What is left of that which has least left.
    pub(crate) left: Bytes,
}

/// The directories of the groups of a process (its number, or `self`), the inmost first; none with cgroup v1.
pub(crate) fn groups_of(root: &Root, process: &str) -> Vec<PathBuf> {
    let text = root.read(format!("proc/{process}/cgroup")).unwrap_or_default();
    let group = groups::own(&text, "").unwrap_or_default().trim_start_matches('/');
    let ways = Path::new(group).ancestors().filter(|way| !way.as_os_str().is_empty());
    ways.map(|way| Path::new(TOP).join(way)).collect()
}

/// What all groups of a process let it have; `None` without a limit.
pub(crate) fn of_process(root: &Root, process: &str) -> Option<GroupMemory> {
    let all = groups_of(root, process).into_iter().filter_map(|group| of_group(root, &group));
    all.reduce(|a, b| GroupMemory { most: a.most.min(b.most), left: a.left.min(b.left) })
}

fn of_group(root: &Root, group: &Path) -> Option<GroupMemory> {
    let text = |file: &str| root.read(group.join(file)).unwrap_or_default();
    let most = LIMITS.iter().filter_map(|file| groups::limit(&text(file))).min()?;
    // Pages that the group does not use any more make room for others.
    let unused = keyed::count(&text("memory.stat"), "inactive_file").unwrap_or(0);
    let used = text("memory.current").trim().parse::<u64>().unwrap_or(most);
    let left = most.saturating_sub(used.saturating_sub(unused));
    Some(GroupMemory { most: Bytes(most), left: Bytes(left) })
}
