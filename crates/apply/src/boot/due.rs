//! The commands that are still to run after a change of files, so that the next call runs them if this one is interrupted. Saved before the files
//! change, removed after the commands.

use serde::{Deserialize, Serialize};

use super::command::Command;
use crate::state;
use eke_linux::error::Result;
use eke_linux::root::Root;

const FILE: &str = "var/lib/eke/commands-due.json";

/// What the commands put into effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum After {
    Write,
    Undo,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Due {
    owner: String,
    after: After,
    commands: Vec<Command>,
}

fn all(root: &Root) -> Vec<Due> {
    state::load(root, FILE).unwrap_or_default()
}

/// Those that an interrupted call left.
pub(super) fn left(root: &Root, owner: &str, after: After) -> Vec<Command> {
    let of_owner = all(root).into_iter().filter(|due| due.owner == owner && due.after == after);
    of_owner.flat_map(|due| due.commands).collect()
}

/// `commands`, then those of `left` that are not among them.
pub(super) fn with(commands: &[Command], left: &[Command]) -> Vec<Command> {
    let others = left.iter().filter(|due| !commands.iter().any(|c| c.argv == due.argv));
    commands.iter().chain(others).cloned().collect()
}

/// From now on only these are due; none if the list is empty.
///
/// # Errors
/// The kernel's answer.
pub(super) fn set(root: &Root, owner: &str, after: After, commands: &[Command]) -> Result<()> {
    let before = all(root);
    let mut dues = before.clone();
    dues.retain(|due| due.owner != owner);
    if !commands.is_empty() {
        dues.push(Due { owner: owner.to_owned(), after, commands: commands.to_vec() });
    }
    match (before.is_empty(), dues.is_empty()) {
        (true, true) => Ok(()),
        (false, true) => state::forget(root, FILE),
        (_, false) => state::save(root, FILE, &dues),
    }
}
