//! Where a control group is in the unified hierarchy.

use eke_linux::Root;

/// The unified hierarchy of a hybrid machine.
pub(crate) const UNIFIED: &str = "unified/";

/// The group's path below `/sys/fs/cgroup`: a hybrid machine has the unified hierarchy in a directory of its own.
pub(crate) fn unified(root: &Root, group: &str) -> String {
    if root.exists("sys/fs/cgroup/cgroup.controllers") {
        group.to_owned()
    } else {
        format!("{UNIFIED}{group}")
    }
}

/// The group, or the nearest one above it that has the memory of whole processes. libvirt puts the threads of a virtual machine into
/// threaded groups of their own, which have no memory controller and freeze single threads
/// (Documentation/admin-guide/cgroup-v2.rst, "Threads").
pub(crate) fn of_processes<'g>(root: &Root, group: &'g str) -> &'g str {
    let is_threaded = |group: &str| {
        let text = root.read(format!("sys/fs/cgroup/{}/cgroup.type", unified(root, group)));
        text.is_ok_and(|text| text.trim() == "threaded")
    };
    let mut group = group;
    while let Some((above, _)) = group.rsplit_once('/').filter(|_| is_threaded(group)) {
        group = above;
    }
    group
}
