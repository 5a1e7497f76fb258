//! Restores files from the journal.

use super::journal::{self, Record};
use super::state::{self, State};
use crate::sys;
use eke_linux::error::{Error, Result};
use eke_linux::root::{Root, STATE_DIR};

/// The result of undoing the changes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Its old content was restored.
    Restored,
    /// eke had created it, and it was removed.
    Removed,
    /// Somebody else changed it since, so it was left alone. The sentence tells the user what to do.
    Kept(String),
    /// It already had its old content.
    Unchanged,
}

/// A file of the journal with the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reverted {
    /// Relative to the root.
    pub path: String,
    /// The result.
    pub outcome: Outcome,
}

/// Undoes all changes of `owner`, the last one first. A second call has nothing to do. The caller holds [`super::lock()`].
///
/// A file that somebody else changed is left alone, and leaves the journal. Its old text is saved in
/// `var/lib/eke/kept/`.
pub fn revert(root: &Root, owner: &str) -> Result<Vec<Reverted>> {
    since(root, owner, 0)
}

/// Undoes the changes of `owner` from record number `first` on.
pub fn since(root: &Root, owner: &str, first: usize) -> Result<Vec<Reverted>> {
    let all = journal::load(root)?.into_iter().enumerate();
    let (mine, others): (Vec<_>, Vec<_>) = all.partition(|(n, r)| *n >= first && r.owner == owner);
    let [mine, mut others] =
        [mine, others].map(|records| records.into_iter().map(|(_, r)| r).collect::<Vec<Record>>());
    let mut reverted = Vec::new();
    for path in newest_first(&mine) {
        let chain: Vec<&Record> = mine.iter().rev().filter(|r| r.path == path).collect();
        let outcome = revert_path(root, &path, &chain)?;
        reverted.push(Reverted { path, outcome });
    }
    for dir in remove_made_dirs(root, &mine) {
        hand_on(dir, &mut others);
    }
    journal::keep(root, &others)?;
    Ok(reverted)
}

fn newest_first(records: &[Record]) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for record in records.iter().rev() {
        if !paths.contains(&record.path) {
            paths.push(record.path.clone());
        }
    }
    paths
}

/// Follows a file's records, newest first, back from `now`. Returns the oldest state reached, and the record at which
/// it stopped. Records may be skipped: an interrupted revert had written the oldest state directly.
fn walk_back<'a>(now: &State, mut chain: &[&'a Record]) -> (State, Option<&'a Record>) {
    let mut state = now;
    while let Some(newest) = chain.first() {
        let known = |r: &&Record| state.same_content(&r.new) || state.same_content(&r.old);
        let Some(n) = chain.iter().position(known) else { return (state.clone(), Some(newest)) };
        state = &chain[n].old;
        chain = &chain[n + 1..];
    }
    (state.clone(), None)
}

fn revert_path(root: &Root, path: &str, chain: &[&Record]) -> Result<Outcome> {
    state::clear_leftover(root, path)?;
    let now = match state::observe(root, path) {
        Err(Error::Refused(_)) => return keep_oldest(root, path, chain),
        now => now?,
    };
    let (before, stopped_at) = walk_back(&now, chain);
    if before != now {
        state::put(root, path, &before)?;
    }
    match stopped_at {
        Some(record) => Ok(Outcome::Kept(keep_old(root, path, &record.old)?)),
        None if before == now => Ok(Outcome::Unchanged),
        None if before == State::Absent => Ok(Outcome::Removed),
        None => Ok(Outcome::Restored),
    }
}

/// The current content is not one that eke wrote.
fn keep_oldest(root: &Root, path: &str, chain: &[&Record]) -> Result<Outcome> {
    let old = chain.last().map_or(&State::Absent, |r| &r.old);
    keep_old(root, path, old).map(Outcome::Kept)
}

fn keep_old(root: &Root, path: &str, old: &State) -> Result<String> {
    let since = "somebody else changed it since, so it was left alone";
    let text = match old {
        State::Absent => {
            return Ok(format!("{since}. It did not exist before eke: remove it if nobody needs it"));
        }
        State::Symlink { target } => {
            return Ok(format!("{since}. It was a symbolic link to {target} before"));
        }
        State::File { text, .. } => text,
    };
    let kept = format!("{STATE_DIR}/kept/{path}");
    let full = root.path(&kept);
    if let Some(dir) = full.parent() {
        sys::of(root).create_dir(dir, 0o700).map_err(|e| Error::io("create directory", dir, e))?;
    }
    sys::of(root)
        .replace(&full, text.as_bytes(), 0o600)
        .map_err(|e| Error::io("save the old text to", &full, e))?;
    Ok(format!(
        "{since}. Its text from before eke is in {}: compare them, and restore what you need",
        full.display()
    ))
}

/// Removes the directories that eke created, innermost first. Returns those that are not empty.
fn remove_made_dirs<'a>(root: &Root, records: &'a [Record]) -> Vec<&'a String> {
    let mut dirs: Vec<&String> = records.iter().flat_map(|r| &r.made_dirs).collect();
    dirs.sort_by_key(|dir| std::cmp::Reverse(dir.len()));
    dirs.retain(|dir| sys::of(root).remove_dir(&root.path(dir)).is_err());
    dirs
}

/// A directory with another record's file is left to that record.
fn hand_on(dir: &str, others: &mut [Record]) {
    let below = format!("{dir}/");
    let heir = others.iter_mut().find(|r| r.path.starts_with(&below));
    if let Some(heir) = heir.filter(|r| !r.made_dirs.iter().any(|d| d == dir)) {
        heir.made_dirs.push(dir.to_owned());
    }
}
