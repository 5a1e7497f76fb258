//! Finds and prepares the parent of eke's groups: `eke/` in the hierarchy of the memory controller.

use super::{Hierarchy, Located};
use crate::sys;
use crate::write::write_value;
use eke_linux::error::{Error, Result};
use eke_linux::parse::groups;
use eke_linux::root::Root;

/// The directory that contains all groups of eke.
pub(super) const PARENT: &str = "eke";
/// An empty group that records that eke enabled the memory controller above it, and must disable it again.
const MARK: &str = "eke/turned-memory-on";

/// Where groups can be created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupParent {
    /// The cgroup version.
    pub hierarchy: Hierarchy,
    /// The parent of the groups, relative to the hierarchy: `eke`, or on cgroup v2 `user.slice/.../eke`.
    pub path: String,
    /// The parent in the unified hierarchy of a hybrid machine with cgroup v1.
    pub twin: Option<String>,
}

impl GroupParent {
    /// Finds where this process may create groups: first in cgroup v2 (root: at its top; others: in the nearest group
    /// above this process that is delegated to the user), then in cgroup v1. Changes nothing.
    ///
    /// # Errors
    /// `Io` with the missing permission (see [`Error::is_permission`]); `Refused` on a machine without memory
    /// controller.
    pub fn find(root: &Root) -> Result<Self> {
        for top in ["", "unified"] {
            if has_memory(root, top, "cgroup.controllers") {
                return Self::find_v2(root, top);
            }
        }
        if root.exists("sys/fs/cgroup/memory/memory.limit_in_bytes") {
            return Self::find_v1(root);
        }
        Err(Error::Refused(format!(
            "no memory controller for groups of processes: neither {} nor {} has one; mount cgroup2, or boot without cgroup_disable=memory (on a Raspberry Pi: with cgroup_enable=memory in cmdline.txt)",
            root.path("sys/fs/cgroup/cgroup.controllers").display(),
            root.path("sys/fs/cgroup/memory").display()
        )))
    }

    fn find_v1(root: &Root) -> Result<Self> {
        if !may_write(root, "sys/fs/cgroup/memory") {
            let why = "permission denied; this needs root (try with sudo), because cgroup v1 has no safe delegation";
            return Err(needs(root, "sys/fs/cgroup/memory", why));
        }
        let hybrid =
            root.exists("sys/fs/cgroup/unified/cgroup.procs") && may_write(root, "sys/fs/cgroup/unified");
        Ok(Self {
            hierarchy: Hierarchy::V1,
            path: PARENT.to_owned(),
            twin: hybrid.then(|| PARENT.to_owned()),
        })
    }

    fn find_v2(root: &Root, top: &str) -> Result<Self> {
        let own = own_group(&root.read("proc/self/cgroup")?).unwrap_or_default();
        let above = candidates(top, &own);
        let usable =
            above.iter().find(|dir| may_write(root, &dir_of(dir)) && can_hold_groups(root, dir, top));
        match usable {
            Some(dir) => Ok(Self { hierarchy: Hierarchy::V2, path: join(dir, PARENT), twin: None }),
            None => Err(needs(
                root,
                &dir_of(top),
                "permission denied; this needs root (try with sudo) or a delegated part of cgroup v2: run it under `systemd-run --user --scope`",
            )),
        }
    }

    /// Creates the parent, and enables the memory controller for its groups.
    pub(super) fn prepare(&self, root: &Root) -> Result<()> {
        if self.hierarchy == Hierarchy::V1 {
            return Ok(());
        }
        let top = above(&self.path);
        make_dir(root, &self.path)?;
        if !has_memory(root, top, "cgroup.subtree_control") {
            make_dir(root, &join(top, MARK))?;
            control(root, top, "+memory")?;
        }
        control(root, &self.path, "+memory")
    }
}

fn needs(root: &Root, dir: &str, why: &str) -> Error {
    let source = std::io::Error::new(std::io::ErrorKind::PermissionDenied, why);
    Error::io("make a group in", &root.path(dir), source)
}

/// Removes the empty parents of a group, and disables the controllers that eke enabled for them. If another group is
/// left, the last one does that.
pub(super) fn remove_parents(at: &Located) {
    let remove = |dir: String| sys::of(&at.root).remove_dir(&at.root.path(dir)).is_ok();
    if at.hierarchy == Hierarchy::V1 {
        remove(format!("sys/fs/cgroup/memory/{PARENT}"));
        if at.twin.is_some() {
            remove(format!("sys/fs/cgroup/unified/{PARENT}"));
        }
        return;
    }
    let top = above(above(&at.target));
    let mark = join(top, MARK);
    if at.root.exists(dir_of(&mark)) && only_child(&at.root, &join(top, PARENT), "turned-memory-on") {
        let _ = control(&at.root, &join(top, PARENT), "-memory");
        if !others_use_memory(&at.root, top) {
            let _ = control(&at.root, top, "-memory");
        }
        remove(dir_of(&mark));
    }
    remove(dir_of(&join(top, PARENT)));
}

/// Whether a group beside `eke` limits its memory, or enables the controller for its own groups.
fn others_use_memory(root: &Root, top: &str) -> bool {
    let children = root.list(dir_of(top)).unwrap_or_default();
    children.iter().filter(|c| *c != PARENT).any(|c| {
        let child = join(top, c);
        let limit = root.read(format!("{}/memory.max", dir_of(&child)));
        has_memory(root, &child, "cgroup.subtree_control") || limit.is_ok_and(|text| text.trim() != "max")
    })
}

fn only_child(root: &Root, parent: &str, child: &str) -> bool {
    let names = root.list(dir_of(parent)).unwrap_or_default();
    names.iter().filter(|n| root.path(format!("{}/{n}", dir_of(parent))).is_dir()).all(|n| n == child)
}

fn make_dir(root: &Root, name: &str) -> Result<()> {
    let path = root.path(dir_of(name));
    sys::of(root).create_dir(&path, 0o755).map_err(|e| Error::io("make the group", &path, e))
}

fn control(root: &Root, group: &str, change: &str) -> Result<()> {
    match group {
        "" => write_value(root, "cgroup.subtree_control", "", change),
        group => write_value(root, "group.subtree_control", group, change),
    }
}

fn has_memory(root: &Root, group: &str, file: &str) -> bool {
    root.read(format!("{}/{file}", dir_of(group)))
        .is_ok_and(|text| text.split_whitespace().any(|w| w == "memory"))
}

/// A group with processes of its own cannot enable controllers for its children (cgroup-v2.rst, "No Internal Process
/// Constraint"). The machine's root group is the exception; a container's is not.
fn can_hold_groups(root: &Root, group: &str, top: &str) -> bool {
    let is_machine_top = group == top && !root.exists(format!("{}/cgroup.type", dir_of(group)));
    let empty =
        || root.read(format!("{}/cgroup.procs", dir_of(group))).is_ok_and(|text| text.trim().is_empty());
    has_memory(root, group, "cgroup.subtree_control")
        || (has_memory(root, group, "cgroup.controllers") && (is_machine_top || empty()))
}

/// Whether this process may create a directory in `dir`.
fn may_write(root: &Root, dir: &str) -> bool {
    rustix::fs::access(root.path(dir), rustix::fs::Access::WRITE_OK).is_ok()
        && rustix::fs::access(root.path(format!("{dir}/cgroup.procs")), rustix::fs::Access::WRITE_OK).is_ok()
        && !is_read_only(root, dir)
}

fn is_read_only(root: &Root, dir: &str) -> bool {
    use rustix::fs::{StatVfsMountFlags, statvfs};
    statvfs(root.path(dir)).is_ok_and(|s| s.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// The process's group in the unified hierarchy, from the text of `/proc/PID/cgroup`, without the leading slash. `None`
/// if there is none, or if it is outside of what this process can see.
fn own_group(text: &str) -> Option<String> {
    let path = groups::own(text, "")?.strip_prefix('/')?;
    (!path.split('/').any(|part| part == "..")).then(|| path.trim_end_matches('/').to_owned())
}

/// The top, then the process's own group and its parents, nearest first.
fn candidates(top: &str, own: &str) -> Vec<String> {
    let mut all = vec![top.to_owned()];
    let mut at = own;
    while !at.is_empty() {
        all.push(join(top, at));
        at = above(at);
    }
    all
}

fn above(group: &str) -> &str {
    group.rsplit_once('/').map_or("", |(above, _)| above)
}

fn join(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") }
}

fn dir_of(group: &str) -> String {
    join("sys/fs/cgroup", group).trim_end_matches('/').to_owned()
}

/// All possible parents of eke's groups on this machine, whether or not they exist.
pub(super) fn everywhere(root: &Root) -> Vec<GroupParent> {
    let own = own_group(&root.read("proc/self/cgroup").unwrap_or_default()).unwrap_or_default();
    let v2 = |dir: String| GroupParent { hierarchy: Hierarchy::V2, path: join(&dir, PARENT), twin: None };
    let mut all = Vec::new();
    if root.exists("sys/fs/cgroup/memory/memory.limit_in_bytes") {
        let twin = root.exists("sys/fs/cgroup/unified/cgroup.procs").then(|| PARENT.to_owned());
        all.push(GroupParent { hierarchy: Hierarchy::V1, path: PARENT.to_owned(), twin });
    }
    for top in ["", "unified"] {
        if has_memory(root, top, "cgroup.controllers") {
            all.extend(candidates(top, &own).into_iter().map(v2));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_group_is_the_line_without_controllers() {
        assert_eq!(own_group("4:memory:/x\n0::/user.slice/a.scope\n").as_deref(), Some("user.slice/a.scope"));
        assert_eq!(own_group("0::/\n").as_deref(), Some(""));
        assert_eq!(own_group("4:memory:/x\n"), None);
        assert_eq!(own_group("0::/../outside\n"), None);
    }

    #[test]
    fn the_top_comes_first_then_the_nearest() {
        assert_eq!(candidates("", "a/b"), ["", "a/b", "a"]);
        assert_eq!(candidates("unified", ""), ["unified"]);
        assert_eq!(dir_of(""), "sys/fs/cgroup");
        assert_eq!(dir_of("a/b"), "sys/fs/cgroup/a/b");
    }
}
