//! Removes what a dead owner left.

use super::{Hierarchy, Located, Place, place};
use eke_linux::cgroup::name;
use eke_linux::error::Result;
use eke_linux::root::Root;

/// Kills and removes every group of eke whose owner does not run any more (it was killed with SIGKILL), and says which.
/// Groups of owners that run are left alone.
///
/// # Errors
/// The kernel's answer to the first group that cannot be removed, after all others were tried.
pub fn sweep(root: &Root) -> Result<Vec<String>> {
    let mut swept = Vec::new();
    let mut failed = None;
    for place in place::everywhere(root) {
        for name in names(root, &place)? {
            match sweep_one(root, &place, &name) {
                Ok(true) => swept.push(name),
                Ok(false) => {}
                Err(e) => failed = failed.or(Some(e)),
            }
        }
    }
    failed.map_or(Ok(swept), Err)
}

/// A group of cgroup v1 counts even if only its twin is left.
fn names(root: &Root, place: &Place) -> Result<Vec<String>> {
    let mut names = match place.hierarchy {
        Hierarchy::V1 => root.list(format!("sys/fs/cgroup/memory/{}", place.parent))?,
        Hierarchy::V2 => root.list(format!("sys/fs/cgroup/{}", place.parent))?,
    };
    if let Some(twin) = &place.twin {
        names.extend(root.list(format!("sys/fs/cgroup/unified/{twin}"))?);
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn sweep_one(root: &Root, place: &Place, name: &str) -> Result<bool> {
    let Some(owner) = name::owner(name) else { return Ok(false) };
    if name::is_alive(root, owner)? {
        return Ok(false);
    }
    let twin = place.twin.as_ref().map(|parent| format!("{parent}/{name}"));
    Located {
        root: root.clone(),
        hierarchy: place.hierarchy,
        target: format!("{}/{name}", place.parent),
        twin,
    }
    .remove()?;
    Ok(true)
}
