//! eke's swap devices that somebody else swapped off, as `swapoff -a` does. Their entries in the journal stay in force.

use crate::journal;
use crate::journal::replay::Entry;
use crate::revert::has_its_size;
use eke_linux::error::Result;
use eke_linux::read;
use eke_linux::root::Root;
use eke_model::step::{Step, ZramSpec};

/// The zram devices that `owner` swapped on, that still have their size, and that are no swap now; without those that eke itself is removing.
///
/// # Errors
/// The kernel's answer (only root may read the journal).
pub fn devices(root: &Root, owner: &str) -> Result<Vec<(String, ZramSpec)>> {
    let stays = |e: &Entry| e.done && !e.draining && e.intent.owner == owner;
    let entries = journal::entries(root)?.into_iter().filter(stays);
    let made = entries.filter_map(|entry| match entry.intent.step {
        Step::AddZram(spec) if spec.swap_priority.is_some() => Some((entry.made?, spec)),
        _ => None,
    });
    let mut off = Vec::new();
    for (name, spec) in made.filter(|(name, spec)| has_its_size(root, name, spec)) {
        if read::swap_at(root, &format!("/dev/{name}"))?.is_none() {
            off.push((name, spec));
        }
    }
    Ok(off)
}
