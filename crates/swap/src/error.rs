//! What can go wrong while the machine is probed or measured.

use std::io;
use std::path::{Path, PathBuf};

/// A failure of the probe or the measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A kernel file or setting.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// A overrides that cannot be granted.
    #[error(transparent)]
    Overrides(#[from] crate::decide::BadOverride),
    /// A call on a device or file.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// A verb with what is done: "write a page to".
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A page came back from a device other than it was stored.
    #[error("page {page} read from {} differs from the stored one: this kernel's {algorithm} must not be used for swap", path.display())]
    Mismatch {
        /// The device.
        path: PathBuf,
        /// The page's number on it.
        page: usize,
        /// The algorithm that held it.
        algorithm: String,
    },
    /// No memory could be had for the sample.
    #[error("cannot get {bytes} bytes for the sample of pages: {source}; close something first")]
    NoMemory {
        /// How much was asked for.
        bytes: usize,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A scratch device could not be removed.
    #[error("{device} was made to measure and could not be removed: {source}; `eke down` tries again")]
    LeftBehind {
        /// The device's name.
        device: String,
        /// What the kernel said.
        source: eke_linux::Error,
    },
}

impl Error {
    pub(crate) fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { operation, path: path.to_owned(), source }
    }
}

/// `Result` with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;
