//! This process's cgroup and its ancestors, from `/proc/self/cgroup` and `/proc/self/mountinfo` (cgroups(7), proc(5)).

use eke_linux::cgroup::Hierarchy;
use eke_linux::parse::mountinfo::Mount;
use eke_linux::parse::{self, mountinfo};

/// A cgroup's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupDir {
    pub hierarchy: Hierarchy,
    /// Absolute path.
    pub path: String,
}

/// The directories of this process's cgroup and of its visible ancestors, nearest first. Both in the unified hierarchy, which may lack
/// the memory controller, and in cgroup v1's memory hierarchy.
pub(super) fn own(cgroup: &str, mountinfo: &[u8]) -> Vec<GroupDir> {
    let mounts = mountinfo::parse(mountinfo);
    [Hierarchy::V2, Hierarchy::V1]
        .into_iter()
        .filter_map(|hierarchy| {
            let group = group_path(cgroup, hierarchy)?;
            let mount = mounts.iter().find(|mount| is_mount(mount, hierarchy))?;
            Some(
                ancestors(&inside(group, mount.top.to_str()?), mount.place.to_str()?)
                    .map(move |path| GroupDir { hierarchy, path })
                    .collect::<Vec<_>>(),
            )
        })
        .flatten()
        .collect()
}

fn group_path(cgroup: &str, hierarchy: Hierarchy) -> Option<&str> {
    match hierarchy {
        Hierarchy::V2 => parse::groups::own(cgroup, ""),
        Hierarchy::V1 => parse::groups::own(cgroup, "memory"),
    }
}

/// Is the hierarchy mounted there?
fn is_mount(mount: &Mount, hierarchy: Hierarchy) -> bool {
    match hierarchy {
        Hierarchy::V2 => mount.kind == "cgroup2",
        Hierarchy::V1 => mount.kind == "cgroup" && mount.has_option("memory"),
    }
}

/// The cgroup's path below the mount's top; empty for a cgroup outside of it.
fn inside(group: &str, top: &str) -> String {
    let top = top.trim_end_matches('/');
    match group.strip_prefix(top) {
        Some(rest) if rest.starts_with('/') && !rest.contains("..") => rest.trim_end_matches('/').to_owned(),
        _ => String::new(),
    }
}

/// The cgroup and its ancestors up to the mount point.
fn ancestors(group: &str, mount: &str) -> impl Iterator<Item = String> {
    let mut next = Some(group.to_owned());
    std::iter::from_fn(move || {
        let at = next.take()?;
        next = at.rsplit_once('/').map(|(above, _)| above.to_owned());
        Some(at)
    })
    .map(move |at| format!("{mount}{at}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(cgroup: &str, mountinfo: &str) -> Vec<String> {
        own(cgroup, mountinfo.as_bytes()).into_iter().map(|dir| dir.path).collect()
    }

    const HYBRID: &str = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                          41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:3 - cgroup2 cgroup2 rw\n";

    #[test]
    fn a_hybrid_machine_has_cgroups_in_two_hierarchies() {
        assert_eq!(
            paths("4:memory:/a/b\n1:cpu:/x\n0::/\n", HYBRID),
            [
                "/sys/fs/cgroup/unified",
                "/sys/fs/cgroup/memory/a/b",
                "/sys/fs/cgroup/memory/a",
                "/sys/fs/cgroup/memory"
            ]
        );
    }

    #[test]
    fn a_container_sees_the_cgroups_below_its_own_root() {
        let mounted = "41 31 0:38 /docker/7 /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n";
        assert_eq!(paths("0::/docker/7/svc\n", mounted), ["/sys/fs/cgroup/svc", "/sys/fs/cgroup"]);
        assert_eq!(paths("0::/docker/77\n", mounted), ["/sys/fs/cgroup"]);
        assert_eq!(paths("0::/../other\n", mounted), ["/sys/fs/cgroup"]);
    }

    #[test]
    fn a_machine_without_cgroups_has_none() {
        assert!(paths("", HYBRID).is_empty());
        assert!(paths("0::/a\n", "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n").is_empty());
    }
}
