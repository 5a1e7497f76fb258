//! The state of a path: no file, a text file or a symbolic link. Reads and writes it.

use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::sys;
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;

/// The state of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum State {
    /// No file.
    Absent,
    /// A regular file.
    File {
        /// The whole text.
        text: String,
        /// Permission bits.
        mode: u32,
        /// User and group; `None`: those of the writing process.
        owner: Option<(u32, u32)>,
    },
    /// A symbolic link.
    Symlink {
        /// Its target, as written in the link.
        target: String,
    },
}

impl State {
    /// Whether kind and content are the same, regardless of mode and owner.
    pub fn same_content(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File { text: a, .. }, Self::File { text: b, .. }) => a == b,
            _ => self == other,
        }
    }
}

/// Reads the state of `path`, which must be resolved already.
///
/// # Errors
/// A state that could not be restored byte for byte is refused.
pub fn observe(root: &Root, path: &str) -> Result<State> {
    let full = root.path(path);
    let meta = match root.link_metadata_at(&full) {
        Ok(meta) => meta,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(State::Absent),
        Err(e) => return Err(Error::io("inspect", &full, e)),
    };
    if meta.is_symlink() {
        let target = root.read_link_at(&full).map_err(|e| Error::io("read link", &full, e))?;
        return target
            .into_os_string()
            .into_string()
            .map(|target| State::Symlink { target })
            .map_err(|_| not_text(&full));
    }
    if !meta.is_file() {
        return Err(Error::Refused(format!(
            "{} is not a regular file, so eke leaves it alone (is it masked, or a directory?)",
            full.display()
        )));
    }
    file_state(root, path, &full, &meta)
}

fn file_state(root: &Root, path: &str, full: &Path, meta: &Metadata) -> Result<State> {
    let text = String::from_utf8(root.read_bytes(path)?).map_err(|_| not_text(full))?;
    Ok(State::File { text, mode: meta.mode() & 0o7777, owner: Some((meta.uid(), meta.gid())) })
}

fn not_text(path: &Path) -> Error {
    Error::Refused(format!(
        "{} contains bytes that are not UTF-8, so eke's journal could not restore it byte for byte; change it by hand",
        path.display()
    ))
}

/// Puts `path` into `state`, atomically.
pub fn put(root: &Root, path: &str, state: &State) -> Result<()> {
    let full = root.path(path);
    match state {
        State::Absent => remove(root, &full),
        State::File { text, mode, owner } => {
            sys::of(root)
                .replace(&full, text.as_bytes(), *mode)
                .map_err(|e| Error::io("replace", &full, e))?;
            owner.map_or(Ok(()), |owner| give_to(root, &full, owner))
        }
        State::Symlink { target } => {
            let beside = beside(&full);
            remove(root, &beside)?;
            sys::of(root).link(&full, &beside, target).map_err(|e| Error::io("create link", &full, e))
        }
    }
}

/// Removes the temporary file that an interrupted write left beside `path`.
pub fn clear_leftover(root: &Root, path: &str) -> Result<()> {
    remove(root, &beside(&root.path(path)))
}

fn remove(root: &Root, full: &Path) -> Result<()> {
    if root.link_metadata_at(full).is_err_and(|e| e.kind() == io::ErrorKind::NotFound) {
        return Ok(());
    }
    sys::of(root).remove(full).map_err(|e| Error::io("remove", full, e))
}

fn give_to(root: &Root, full: &Path, owner: (u32, u32)) -> Result<()> {
    let meta = root.metadata_at(full).map_err(|e| Error::io("inspect", full, e))?;
    if (meta.uid(), meta.gid()) == owner {
        return Ok(());
    }
    sys::of(root).give(full, owner).map_err(|e| Error::io("change owner of", full, e))
}

/// The temporary name that [`crate::sys::Sys::replace`] writes to before it renames.
fn beside(full: &Path) -> PathBuf {
    let mut name = OsString::from(full);
    name.push(".eke-new");
    name.into()
}
