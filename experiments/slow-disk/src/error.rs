//! The errors of a slow disk.

use std::io;
use std::path::{Path, PathBuf};

/// Why a slow disk cannot be attached or detached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An impossible specification.
    #[error("impossible disk: {0}")]
    Spec(String),
    /// The kernel's answer about a file, a directory, a mount or the device.
    #[error("cannot {what} {}: {source}{}", path.display(), hint(source))]
    Io {
        /// The operation, a verb.
        what: &'static str,
        /// The file, directory, mount or device.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A program of the host could not be started, or failed.
    #[error("`{command}` {answer}")]
    Command {
        /// The command line.
        command: String,
        /// Its exit status and output.
        answer: String,
    },
    /// Something still uses the device.
    #[error("{} is in use: {by}", device.display())]
    InUse {
        /// The block device.
        device: PathBuf,
        /// The user of the device, and what to do.
        by: String,
    },
    /// The crates that read and change the machine refused.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// The user interrupted the measurement.
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
    /// Whether root would have been permitted.
    pub fn is_permission(&self) -> bool {
        match self {
            Self::Io { source, .. } => source.kind() == io::ErrorKind::PermissionDenied,
            Self::Kernel(e) => e.is_permission(),
            _ => false,
        }
    }
}

/// The result type of [`crate`].
pub type Result<T> = std::result::Result<T, Error>;

/// Creates an [`Error::Io`], for `map_err`.
pub(super) fn on<E: Into<io::Error>>(what: &'static str, path: &Path) -> impl FnOnce(E) -> Error {
    move |e| Error::Io { what, path: path.to_owned(), source: e.into() }
}
