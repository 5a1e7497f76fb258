//! Changes of files that outlive the boot (boot loader, module lists, units), and their way back.
//!
//! # Layout
//! - [`journal`]: `var/lib/eke/files.jsonl`, one record a change, written before the change
//! - [`place`]: where a path really is, without leaving the root
//! - [`state`]: what is at a path, and putting it there
//! - [`mod@revert`]: from the records back to what was
//!
//! Each change belongs to an owner ("boot-config", "enable"); owners are undone one by one, and a file belongs to
//! at most one of them. A record holds the old content, so nothing else is needed for the way back. Whether a
//! recorded change happened is read off the file: its content is the record's new one, its old one, or somebody
//! else's, which is left alone.
//!
//! Not kept: times of change, hard links, extended attributes. Not guarded: two writers at once (the caller's lock).

pub mod journal;
pub mod place;
pub mod revert;
pub mod state;

use crate::sys;
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;
use journal::Record;
pub use revert::{Outcome, Reverted, revert};
use state::State;

/// What is to be at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A text file; `mode` `None` keeps that of the file that is there (0644 for a new one).
    Text {
        /// All of it.
        text: String,
        /// Permission bits.
        mode: Option<u32>,
    },
    /// A symbolic link to this target.
    Symlink(String),
    /// Nothing.
    Absent,
}

/// One file to change; `path` is relative to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file. A text goes to where a symbolic link at this place points; a link or a removal is about the link.
    pub path: String,
    /// What is to be there.
    pub new: Content,
}

impl Change {
    /// A text; an existing file keeps its mode.
    pub fn text(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), new: Content::Text { text: text.into(), mode: None } }
    }

    /// A text with these permission bits.
    pub fn text_with_mode(path: impl Into<String>, text: impl Into<String>, mode: u32) -> Self {
        Self { path: path.into(), new: Content::Text { text: text.into(), mode: Some(mode) } }
    }

    /// A symbolic link.
    pub fn symlink(path: impl Into<String>, target: impl Into<String>) -> Self {
        Self { path: path.into(), new: Content::Symlink(target.into()) }
    }

    /// A removal.
    pub fn removal(path: impl Into<String>) -> Self {
        Self { path: path.into(), new: Content::Absent }
    }
}

/// What [`apply`] did to one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It was not there.
    Created,
    /// It was there and differs now.
    Changed,
    /// It is gone.
    Removed,
    /// It was so already; nothing was recorded.
    Unchanged,
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Relative to the root, symbolic links resolved.
    pub path: String,
    /// What happened.
    pub effect: Effect,
}

/// A file that an owner has changed and not put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Relative to the root.
    pub path: String,
    /// Why it was changed.
    pub reason: String,
    /// Is what eke wrote still there?
    pub stands: bool,
}

/// Makes all `changes` or none; each is in the journal before it happens.
///
/// # Errors
/// A place that cannot be put back byte for byte (not a regular file, not UTF-8) or that belongs to another owner is
/// refused before anything is changed. When a change fails, those before it are undone.
pub fn apply(root: &Root, owner: &str, changes: &[Change], reason: &str) -> Result<Vec<Applied>> {
    let before = journal::load(root)?;
    for change in changes {
        unclaimed(root, &before, &prepare(root, owner, change, reason)?)?;
    }
    let applied: Result<Vec<Applied>> = changes
        .iter()
        .map(|change| {
            // Once more: a change before it may have been a link that leads elsewhere.
            let record = prepare(root, owner, change, reason)?;
            unclaimed(root, &before, &record)?;
            perform(root, record)
        })
        .collect();
    if applied.is_err() {
        // What cannot be undone now stays in the journal, for `revert` to find.
        let _ = revert::since(root, owner, before.len());
    }
    applied
}

/// The files that `owner` has changed, in the order of their first change.
pub fn listed(root: &Root, owner: &str) -> Result<Vec<Listed>> {
    let mut listed: Vec<Listed> = Vec::new();
    for record in journal::load(root)?.into_iter().filter(|r| r.owner == owner) {
        let stands = state::observe(root, &record.path).is_ok_and(|now| now.same_content(&record.new));
        match listed.iter_mut().find(|l| l.path == record.path) {
            Some(known) => (known.reason, known.stands) = (record.reason, stands),
            None => listed.push(Listed { path: record.path, reason: record.reason, stands }),
        }
    }
    Ok(listed)
}

/// A file's text as [`apply`] would find it: symbolic links stay below the root, `None` where there is no file.
///
/// # Errors
/// What is there is not a regular file or not UTF-8.
pub fn read(root: &Root, path: &str) -> Result<Option<String>> {
    match state::observe(root, &place::resolve(root, path, true)?)? {
        State::File { text, .. } => Ok(Some(text)),
        State::Absent | State::Symlink { .. } => Ok(None),
    }
}

fn prepare(root: &Root, owner: &str, change: &Change, reason: &str) -> Result<Record> {
    let path = place::resolve(root, &change.path, matches!(change.new, Content::Text { .. }))?;
    let old = state::observe(root, &path)?;
    let new = wanted(&change.new, &old);
    let made_dirs = if new == State::Absent { Vec::new() } else { place::missing_dirs(root, &path) };
    Ok(Record { owner: owner.to_owned(), path, reason: reason.to_owned(), old, new, made_dirs })
}

fn wanted(content: &Content, old: &State) -> State {
    match content {
        Content::Absent => State::Absent,
        Content::Symlink(target) => State::Symlink { target: target.clone() },
        Content::Text { text, mode } => {
            let (old_mode, owner) = match old {
                State::File { mode, owner, .. } => (*mode, *owner),
                _ => (0o644, None),
            };
            State::File { text: text.clone(), mode: mode.unwrap_or(old_mode), owner }
        }
    }
}

fn unclaimed(root: &Root, records: &[Record], wanted: &Record) -> Result<()> {
    match records.iter().find(|r| r.path == wanted.path && r.owner != wanted.owner) {
        Some(other) => Err(Error::Refused(format!(
            "{} is changed already by eke's \"{}\" ({}); undo that before \"{}\" changes it",
            root.path(&other.path).display(),
            other.owner,
            other.reason,
            wanted.owner
        ))),
        None => Ok(()),
    }
}

fn perform(root: &Root, record: Record) -> Result<Applied> {
    if record.old == record.new {
        return Ok(Applied { path: record.path, effect: Effect::Unchanged });
    }
    journal::append(root, &record)?;
    for dir in &record.made_dirs {
        let dir = root.path(dir);
        sys::of(root).create_dir(&dir, 0o755).map_err(|e| Error::io("create directory", &dir, e))?;
    }
    state::put(root, &record.path, &record.new)?;
    let effect = match (&record.old, &record.new) {
        (State::Absent, _) => Effect::Created,
        (_, State::Absent) => Effect::Removed,
        _ => Effect::Changed,
    };
    Ok(Applied { path: record.path, effect })
}
