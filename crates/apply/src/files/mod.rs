//! Changes of files that outlive the boot (boot loader, module lists, units), and their undo.
//!
//! # Layout
//! - [`mod@lock`]: one process at a time
//! - [`journal`]: `var/lib/eke/files.jsonl`, one record for each change, written before the change
//! - [`links`]: resolves symbolic links without leaving the root
//! - [`state`]: reads and writes the state of a path
//! - [`mod@revert`]: restores files from the records
//!
//! Each change has an owner ("boot-config", "enable"). Owners are undone separately, and a file belongs to at most one.
//! A record contains the old content, so undo needs nothing else. Whether a recorded change happened follows from the
//! file: its content is the record's new one, the old one, or somebody else's, which eke leaves alone.
//!
//! Not restored: modification times, hard links, extended attributes. Whoever changes files or undoes changes holds [`lock()`].

pub mod journal;
pub mod links;
mod lock;
pub mod revert;
pub mod state;

use crate::sys;
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;
use journal::Record;
pub(crate) use lock::lacks_room;
pub use lock::{FilesLock, lock, lock_to_undo};
pub use revert::{Outcome, Reverted, revert};
use state::State;

/// The new content of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A text file; with `mode` `None`, an existing file keeps its mode and a new one gets 0644.
    Text {
        /// The whole text.
        text: String,
        /// Permission bits.
        mode: Option<u32>,
    },
    /// A symbolic link to this target.
    Symlink(String),
    /// No file.
    Absent,
}

/// A change of one file; `path` is relative to the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The file. A text is written to the target of a symbolic link; a link or a removal concerns the link itself.
    pub path: String,
    /// The new content.
    pub new: Content,
}

impl Change {
    /// Writes a text; an existing file keeps its mode.
    pub fn text(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), new: Content::Text { text: text.into(), mode: None } }
    }

    /// Writes a text with these permission bits.
    pub fn text_with_mode(path: impl Into<String>, text: impl Into<String>, mode: u32) -> Self {
        Self { path: path.into(), new: Content::Text { text: text.into(), mode: Some(mode) } }
    }

    /// Creates a symbolic link.
    pub fn symlink(path: impl Into<String>, target: impl Into<String>) -> Self {
        Self { path: path.into(), new: Content::Symlink(target.into()) }
    }

    /// Removes a file.
    pub fn removal(path: impl Into<String>) -> Self {
        Self { path: path.into(), new: Content::Absent }
    }
}

/// What [`apply`] did to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It did not exist before.
    Created,
    /// It existed and was changed.
    Changed,
    /// It was removed.
    Removed,
    /// It already had this content; nothing was recorded.
    Unchanged,
}

/// A file that [`apply`] changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedFile {
    /// Relative to the root, symbolic links resolved.
    pub path: String,
    /// What happened.
    pub effect: Effect,
}

/// A file that an owner has changed and not restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Relative to the root.
    pub path: String,
    /// Why it was changed.
    pub reason: String,
    /// Whether it still has eke's content.
    pub stands: bool,
}

/// Makes all `changes` or none. Each one is in the journal before it happens. The caller holds [`lock()`].
///
/// # Errors
/// Refused before any change: a path that could not be restored byte for byte (not a regular file, not UTF-8), or one
/// of another owner. If a change fails, those before it are undone.
pub fn apply(root: &Root, owner: &str, changes: &[Change], reason: &str) -> Result<Vec<AppliedFile>> {
    let before = journal::load(root)?;
    for change in changes {
        unclaimed(root, &before, &prepare(root, owner, change, reason)?)?;
    }
    let applied: Result<Vec<AppliedFile>> = changes
        .iter()
        .map(|change| {
            // Prepared again, because an earlier change may have been a link that leads elsewhere.
            let record = prepare(root, owner, change, reason)?;
            unclaimed(root, &before, &record)?;
            perform(root, record)
        })
        .collect();
    if applied.is_err() {
        // A change that cannot be undone now stays in the journal for `revert`.
        let _ = revert::since(root, owner, before.len());
    }
    applied
}

/// Whether nothing is left to do for `changes`.
///
/// # Errors
/// As in [`apply`], before any change.
pub fn stand(root: &Root, owner: &str, changes: &[Change]) -> Result<bool> {
    let records: Result<Vec<Record>> = changes.iter().map(|c| prepare(root, owner, c, "")).collect();
    Ok(records?.iter().all(|record| record.old == record.new))
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

/// Reads a file's text as [`apply`] would: symbolic links stay below the root. `None` if there is no file.
///
/// # Errors
/// It is not a regular file, or not UTF-8.
pub fn read(root: &Root, path: &str) -> Result<Option<String>> {
    match state::observe(root, &links::resolve(root, path, true)?)? {
        State::File { text, .. } => Ok(Some(text)),
        State::Absent | State::Symlink { .. } => Ok(None),
    }
}

fn prepare(root: &Root, owner: &str, change: &Change, reason: &str) -> Result<Record> {
    let path = links::resolve(root, &change.path, matches!(change.new, Content::Text { .. }))?;
    let old = state::observe(root, &path)?;
    let new = wanted(&change.new, &old);
    let made_dirs = if new == State::Absent { Vec::new() } else { links::missing_dirs(root, &path) };
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
            "{} was already changed by eke's \"{}\" ({}); undo that before \"{}\" changes it",
            root.path(&other.path).display(),
            other.owner,
            other.reason,
            wanted.owner
        ))),
        None => Ok(()),
    }
}

fn perform(root: &Root, record: Record) -> Result<AppliedFile> {
    if record.old == record.new {
        return Ok(AppliedFile { path: record.path, effect: Effect::Unchanged });
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
    Ok(AppliedFile { path: record.path, effect })
}
