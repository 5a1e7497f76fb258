//! Control groups: their swappiness on cgroup v1, and their memory limits.

use std::os::unix::fs::MetadataExt;

use eke_linux::Root;
use eke_linux::cgroup::Hierarchy;
use eke_linux::cgroup::name;
use eke_linux::parse::groups;
use eke_model::units::Bytes;

use super::number;
use crate::facts::{GroupSwappiness, LimitedGroup};

const V1: &str = "sys/fs/cgroup/memory";
/// A hybrid machine has the memory controller in the second one with `cgroup_no_v1=memory`.
const V2: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];
/// The group above eke's boxes.
const BOXES: &str = "eke";
/// The most groups to read.
const GROUPS: usize = 4096;

/// The memory groups of cgroup v1 with their swappiness, from the root down; none on cgroup v2.
pub(crate) fn swappiness_v1(root: &Root) -> Vec<GroupSwappiness> {
    let mut found = Vec::new();
    walk(root, V1, |dir, group| {
        let swappiness = number(root, &format!("{dir}/memory.swappiness"));
        let found_it = swappiness.map(|swappiness| GroupSwappiness { group: group.to_owned(), swappiness });
        let goes_on = found_it.is_some();
        found.extend(found_it);
        goes_on
    });
    found.sort_by(|a, b| a.group.cmp(&b.group));
    found
}

/// The groups in use that may swap and have a limit below this RAM, the largest first; of nested ones the outermost. Boxes of eke's are left out: they
/// are charged for their share of the pool. So are groups that a user has, who may set any limit.
pub(crate) fn limited(root: &Root, ram: Bytes) -> Vec<LimitedGroup> {
    let mut found = Vec::new();
    let unified = V2.map(|top| (top, Hierarchy::V2));
    for (top, hierarchy) in unified.into_iter().chain([(V1, Hierarchy::V1)]) {
        let administrator = owner(root, top);
        walk(root, top, |dir, group| match bound(root, dir, hierarchy, ram) {
            _ if owner(root, dir) != administrator => false,
            Bound::Above => true,
            // the root group's files are not those of a group
            Bound::Elsewhere => group.is_empty(),
            Bound::NoSwap => false,
            Bound::Limit(limit) => {
                let zswap_is_charged = root.exists(format!("{dir}/memory.zswap.current"));
                let group = group.to_owned();
                found.extend((!is_box(&group)).then_some(LimitedGroup { group, limit, zswap_is_charged }));
                false
            }
        });
    }
    found.sort_by(|a, b| b.limit.cmp(&a.limit).then_with(|| a.group.cmp(&b.group)));
    found
}

/// The user whose group it is.
fn owner(root: &Root, dir: &str) -> Option<u32> {
    root.metadata_at(&root.path(dir)).ok().map(|of| of.uid())
}

fn is_box(group: &str) -> bool {
    let mut from_leaf = group.rsplit('/');
    from_leaf.next().and_then(name::owner).is_some() && from_leaf.next() == Some(BOXES)
}

/// Visits the groups from the root down, at most [`GROUPS`]; `visit` gets the directory and the name, and says whether to go further down.
fn walk(root: &Root, top: &str, mut visit: impl FnMut(&str, &str) -> bool) {
    let mut waiting = vec![String::new()];
    let mut visited = 0;
    while let Some(group) = waiting.pop().filter(|_| visited < GROUPS) {
        visited += 1;
        let dir = if group.is_empty() { top.to_owned() } else { format!("{top}/{group}") };
        if !visit(&dir, &group) {
            continue;
        }
        let children = root.list(&dir).unwrap_or_default().into_iter();
        let children = children.filter(|c| root.path(format!("{dir}/{c}")).is_dir());
        waiting.extend(children.map(|c| if group.is_empty() { c } else { format!("{group}/{c}") }));
    }
}

/// What bounds a group.
enum Bound {
    /// Nothing, or what is above it: a limit further down may count.
    Above,
    /// This hierarchy does not count its memory.
    Elsewhere,
    /// It may not swap, nor may those below.
    NoSwap,
    /// Its own limit.
    Limit(Bytes),
}

fn bound(root: &Root, dir: &str, hierarchy: Hierarchy, ram: Bytes) -> Bound {
    let bytes = |file: &str| groups::limit(&root.read(format!("{dir}/{file}")).ok()?).map(Bytes);
    let (limit, used, no_swap) = match hierarchy {
        Hierarchy::V2 => {
            (bytes("memory.max"), bytes("memory.current"), bytes("memory.swap.max") == Some(Bytes(0)))
        }
        Hierarchy::V1 => {
            let limit = bytes("memory.limit_in_bytes");
            // of memory and swap together
            let both = bytes("memory.memsw.limit_in_bytes");
            (limit, bytes("memory.usage_in_bytes"), both.is_some_and(|both| Some(both) <= limit))
        }
    };
    match (used, limit) {
        (None, _) => Bound::Elsewhere,
        _ if no_swap => Bound::NoSwap,
        (Some(used), Some(limit)) if limit < ram && used.0 > 0 => Bound::Limit(limit),
        _ => Bound::Above,
    }
}
