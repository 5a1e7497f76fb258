//! eke's swap devices that somebody else swapped off, as `swapoff -a` does, or took away whole. Their entries in the journal stay in force.

use crate::journal;
use crate::journal::replay::Entry;
use crate::revert::has_its_size;
use eke_linux::error::Result;
use eke_linux::read;
use eke_linux::root::Root;
use eke_model::step::{Step, ZramSpec};

/// A swap device of eke's that is no swap now.
#[derive(Debug, Clone, PartialEq)]
pub struct Off {
    /// `zram1`.
    pub name: String,
    /// Its settings.
    pub spec: ZramSpec,
    /// Is it removed or reset? It cannot be swapped on again then, and its number may be another program's.
    pub is_removed: bool,
}

/// The zram devices that `owner` swapped on and that are no swap now; without those that eke itself is removing.
///
/// # Errors
/// The kernel's answer (only root may read the journal).
pub fn devices(root: &Root, owner: &str) -> Result<Vec<Off>> {
    let stays = |e: &Entry| e.done && !e.draining && e.intent.owner == owner;
    let entries = journal::entries(root)?.into_iter().filter(stays);
    let made = entries.filter_map(|entry| match entry.intent.step {
        Step::AddZram(spec) if spec.swap_priority.is_some() => Some((entry.made?, spec)),
        _ => None,
    });
    let mut off = Vec::new();
    for (name, spec) in made {
        let is_removed = !has_its_size(root, &name, &spec);
        if is_removed || read::swap_at(root, &format!("/dev/{name}"))?.is_none() {
            off.push(Off { name, spec, is_removed });
        }
    }
    Ok(off)
}
