//! Why the agent does not start, or exits.

use std::io;
use std::path::{Path, PathBuf};

/// A failure that ends the agent. Applied changes stay in place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another agent runs on this machine.
    #[error(
        "an agent runs already (process {pid}); `eke status` shows its state, `eke down` ends it and reverts everything"
    )]
    AlreadyRuns {
        /// Its process id, or `unknown`.
        pid: String,
    },
    /// A system call on a file or the socket failed.
    #[error("cannot {operation} {}: {source}{}", path.display(), if source.kind() == io::ErrorKind::PermissionDenied { "; the agent needs root (try with sudo)" } else { "" })]
    Io {
        /// A verb with its preposition: `listen on`.
        operation: &'static str,
        /// The file or socket.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// poll(2) failed.
    #[error("cannot wait for clients and time: {0}")]
    Wait(io::Error),
    /// A kernel file or setting.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// The user's configuration.
    #[error(transparent)]
    Settings(#[from] eke_linux::settings::SettingsError),
}

impl Error {
    pub(crate) fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { operation, path: path.to_owned(), source }
    }
}

/// `Result` with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;
