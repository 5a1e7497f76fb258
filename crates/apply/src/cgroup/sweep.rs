//! Removes the groups of dead owners.

use super::{GroupParent, Hierarchy, Located, parent};
use eke_linux::cgroup::name;
use eke_linux::error::Result;
use eke_linux::root::Root;

/// Kills and removes every group of eke whose owner is dead (killed with SIGKILL), and returns their names. Groups of
/// living owners are left alone.
///
/// # Errors
/// The kernel's answer to the first group that cannot be removed, after trying all others.
pub fn sweep(root: &Root) -> Result<Vec<String>> {
    let mut swept = Vec::new();
    let mut failed = None;
    for parent in parent::everywhere(root) {
        for name in names(root, &parent)? {
            match sweep_one(root, &parent, &name) {
                Ok(true) => swept.push(name),
                Ok(false) => {}
                Err(e) => failed = failed.or(Some(e)),
            }
        }
    }
    failed.map_or(Ok(swept), Err)
}

/// The names of the groups. A cgroup v1 group counts even if only its twin is left.
fn names(root: &Root, parent: &GroupParent) -> Result<Vec<String>> {
    let mut names = match parent.hierarchy {
        Hierarchy::V1 => root.list(format!("sys/fs/cgroup/memory/{}", parent.path))?,
        Hierarchy::V2 => root.list(format!("sys/fs/cgroup/{}", parent.path))?,
    };
    if let Some(twin) = &parent.twin {
        names.extend(root.list(format!("sys/fs/cgroup/unified/{twin}"))?);
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn sweep_one(root: &Root, parent: &GroupParent, name: &str) -> Result<bool> {
    let Some(owner) = name::owner(name) else { return Ok(false) };
    if name::is_alive(root, owner)? {
        return Ok(false);
    }
    let twin = parent.twin.as_ref().map(|twin| format!("{twin}/{name}"));
    Located {
        root: root.clone(),
        hierarchy: parent.hierarchy,
        target: format!("{}/{name}", parent.path),
        twin,
    }
    .remove()?;
    Ok(true)
}
