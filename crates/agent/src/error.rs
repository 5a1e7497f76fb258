//! Why the agent does not start, or ends.

use std::io;
use std::path::{Path, PathBuf};

/// A failure that ends the agent. What is applied stays in place.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is one agent a machine.
    #[error(
        "an agent runs already (process {pid}); `eke status` asks it, `eke down` ends it and puts everything back"
    )]
    AlreadyRuns {
        /// Its process, or `unknown`.
        pid: String,
    },
    /// A call on a file or the socket.
    #[error("cannot {operation} {}: {source}{}", path.display(), if source.kind() == io::ErrorKind::PermissionDenied { "; the agent needs root (try with sudo)" } else { "" })]
    Io {
        /// A verb with what is done: "listen on".
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Waiting itself fails.
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
