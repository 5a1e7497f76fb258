//! The own group of processes and those above it, from `/proc/self/cgroup` and `/proc/self/mountinfo` (cgroups(7), proc(5)).

use eke_linux::cgroup::Hierarchy;
use eke_linux::parse::mountinfo::Mount;
use eke_linux::parse::{self, mountinfo};

/// A group's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dir {
    pub hierarchy: Hierarchy,
    /// Absolute.
    pub path: String,
}

/// The directories of the own group and of all above it that can be seen, nearest first; cgroup v1's memory controller
/// and the unified hierarchy, which has the controller or has not.
pub(super) fn own(cgroup: &str, mountinfo: &[u8]) -> Vec<Dir> {
    let mounts = mountinfo::parse(mountinfo);
    [Hierarchy::V2, Hierarchy::V1]
        .into_iter()
        .filter_map(|hierarchy| {
            let group = group_path(cgroup, hierarchy)?;
            let mount = mounts.iter().find(|mount| is_mount(mount, hierarchy))?;
            Some(
                up_from(&below(group, mount.top.to_str()?), mount.place.to_str()?)
                    .map(move |path| Dir { hierarchy, path })
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

/// The group's path below what is mounted; the mount itself for a group that lies outside of it.
fn below(group: &str, top: &str) -> String {
    let top = top.trim_end_matches('/');
    match group.strip_prefix(top) {
        Some(rest) if rest.starts_with('/') && !rest.contains("..") => rest.trim_end_matches('/').to_owned(),
        _ => String::new(),
    }
}

fn up_from(group: &str, mount: &str) -> impl Iterator<Item = String> {
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
    fn a_hybrid_machine_has_two_lines_of_groups() {
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
    fn a_container_sees_from_its_own_top() {
        let mounted = "41 31 0:38 /docker/7 /sys/fs/cgroup ro - cgroup2 cgroup rw,nsdelegate\n";
        assert_eq!(paths("0::/docker/7/svc\n", mounted), ["/sys/fs/cgroup/svc", "/sys/fs/cgroup"]);
        assert_eq!(paths("0::/docker/77\n", mounted), ["/sys/fs/cgroup"]);
        assert_eq!(paths("0::/../other\n", mounted), ["/sys/fs/cgroup"]);
    }

    #[test]
    fn a_machine_without_groups_has_none() {
        assert!(paths("", HYBRID).is_empty());
        assert!(paths("0::/a\n", "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n").is_empty());
    }
}
