//! What can go wrong with a slow disk, said for people.

use std::io;
use std::path::{Path, PathBuf};

/// Why there is no slow disk, or why it cannot be taken down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The specification asks for what cannot be.
    #[error("no such disk: {0}")]
    Spec(String),
    /// The kernel's answer about a file, a directory, a mount or the device.
    #[error("cannot {what} {}: {source}{}", path.display(), hint(source))]
    Io {
        /// What was tried, as a verb.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A program of the host could not be started or failed.
    #[error("`{command}` {answer}")]
    Command {
        /// The command line.
        command: String,
        /// How it ended, with what it said.
        answer: String,
    },
    /// Something still uses the device.
    #[error("{} is in use: {by}", device.display())]
    InUse {
        /// The block device.
        device: PathBuf,
        /// Who uses it and what to do.
        by: String,
    },
    /// eke's own layer below refused.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// The user ended it.
    #[error("interrupted")]
    Interrupted,
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "; this needs root (try with sudo)",
        io::ErrorKind::StorageFull => "; no space is left there",
        _ => "",
    }
}

impl Error {
    /// Would root have been allowed to?
    pub fn is_permission(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
            Self::Kernel(e) => e.is_permission(),
            _ => false,
        }
    }
}

/// The result of everything in [`crate`].
pub type Result<T> = std::result::Result<T, Error>;

/// Makes an [`Error::Io`]: for `map_err`.
pub(super) fn on<E: Into<io::Error>>(what: &'static str, path: &Path) -> impl FnOnce(E) -> Error {
    move |e| Error::Io { what, path: path.to_owned(), source: e.into() }
}
