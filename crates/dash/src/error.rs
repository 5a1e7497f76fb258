//! Errors.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// `Result` of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the server or its history.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address is in use, not of this machine, or not permitted to this user.
    #[error("cannot listen on {address}: {source}; choose another with --listen ADDRESS:PORT")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The kernel's error.
        source: io::Error,
    },
    /// The server ended with an error.
    #[error("the server ends: {0}")]
    Serve(#[source] io::Error),
    /// A file or directory of the history.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The history's file.
    #[error("the history in {} cannot be used: {source}", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// The history's file is no history, or damaged.
    #[error("{} is not a history of eke's: {why}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The damage.
        why: String,
    },
    /// Another process has locked it.
    #[error("{} is written by another eke dash", .0.display())]
    Taken(PathBuf),
    /// A newer eke wrote it.
    #[error("{} has a newer schema (version {version}): use a newer eke", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema's version.
        version: i64,
    },
}

impl Error {
    /// For `map_err` of a file.
    pub(crate) fn file(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::File { what, path, source }
    }

    /// For `map_err` of the history's file.
    pub(crate) fn store(path: &Path) -> impl Fn(rusqlite::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Store { path: path.clone(), source }
    }
}
