//! Errors: the operation, the path, the value, the kernel's answer, and what to do.

use std::io;
use std::path::{Path, PathBuf};

/// A failure of the kernel's interface.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel refused a call.
    #[error("cannot {operation} {}{}: {source}{}", path.display(), shown(value), hint(source, operation))]
    Io {
        /// A verb: `read`, `write`, `swap on`.
        operation: &'static str,
        /// The file or device.
        path: PathBuf,
        /// The value, if one was written.
        value: Option<String>,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A setting accepted a value, but reads differently.
    #[error("wrote \"{wrote}\" to {}, but it reads \"{found}\": this kernel does not take that value", path.display())]
    ReadBack {
        /// The setting.
        path: PathBuf,
        /// What was written.
        wrote: String,
        /// What it reads now.
        found: String,
    },
    /// A kernel file has an unexpected format.
    #[error("{}: {message}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What was expected, and what was found.
        message: String,
    },
    /// Another process has eke's journal.
    #[error("another eke is changing this machine ({} is locked); try again when it has finished", .0.display())]
    Locked(PathBuf),
    /// eke refuses the step: it would do harm or could not be undone.
    #[error("{0}")]
    Refused(String),
}

fn shown(value: &Option<String>) -> String {
    value.as_ref().map(|v| format!(" (value \"{v}\")")).unwrap_or_default()
}

fn hint(source: &io::Error, operation: &str) -> &'static str {
    match source.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => "; this needs root (try with sudo)",
        Some(libc::EBUSY) => "; something else still uses it (try again, or see `lsof` on it)",
        Some(libc::ENOSPC) => "; no space is left there",
        Some(libc::ENOENT) if operation == "write" => "; this kernel does not have that setting",
        Some(libc::ENOMEM) => "; there is not enough free memory",
        _ => "",
    }
}

impl Error {
    /// An `Io` error without a value.
    pub fn io(operation: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { operation, path: path.to_owned(), value: None, source }
    }

    /// Whether the file or device does not exist here, as opposed to another failure.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }

    /// Whether another eke delays it.
    pub fn is_locked(&self) -> bool {
        matches!(self, Self::Locked(_))
    }

    /// Whether root would have been permitted.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }
}

/// `Result` with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;
