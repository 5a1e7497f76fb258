//! Errors of the store.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::schema::{NAME, SCHEMA};

/// An error of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No store exists.
    #[error("there is no {NAME} in {}: nothing was learned yet", .0.display())]
    Nothing(PathBuf),
    /// The disk is full.
    #[error("cannot write {}: the disk or the file is full; what was learned before stays", .0.display())]
    Full(PathBuf),
    /// The directory or its file system is read-only.
    #[error("cannot write {}: it is on a read-only file system; what was learned before stays", .0.display())]
    ReadOnly(PathBuf),
    /// The kernel denies access.
    #[error("only root may use {}: it shows which programs are used", .0.display())]
    NotPermitted(PathBuf),
    /// A newer eke wrote it.
    #[error("{} has schema {version}, and this eke reads up to {SCHEMA}: use a newer eke, or move the file away", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        version: i64,
    },
    /// It is truncated, damaged, or of another program.
    #[error("{} is broken: {why}; the next start of prefetch sets it aside and begins anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The value is too large.
    #[error("cannot store {what} of {bytes} bytes in {}: {most} are left", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The value's name.
        what: String,
        /// Its size in bytes.
        bytes: usize,
        /// The bytes that are left.
        most: usize,
    },
    /// A file operation failed.
    #[error("cannot {operation} {}: {source}", path.display())]
    File {
        /// A verb: make, open, rename.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Another SQLite error.
    #[error("cannot read or write {}: {source}", path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// SQLite's answer.
        source: rusqlite::Error,
    },
}

/// `Result` with this module's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Converts SQLite's errors.
pub(super) fn of(path: &Path) -> impl Fn(rusqlite::Error) -> Error {
    move |source| match source.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => Error::Full(path.to_owned()),
        Some(ErrorCode::ReadOnly) => Error::ReadOnly(path.to_owned()),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            Error::Damaged { path: path.to_owned(), why: source.to_string() }
        }
        Some(ErrorCode::CannotOpen | ErrorCode::SystemIoFailure | ErrorCode::PermissionDenied) => {
            by_disk(path, source)
        }
        _ => Error::Store { path: path.to_owned(), source },
    }
}

/// Finds the cause of what SQLite calls an I/O error: it includes failing to create its log for lack of space or permission.
fn by_disk(path: &Path, source: rusqlite::Error) -> Error {
    let dir = path.parent().unwrap_or(path);
    match rustix::fs::access(dir, rustix::fs::Access::WRITE_OK) {
        Err(rustix::io::Errno::ROFS) => return Error::ReadOnly(path.to_owned()),
        Err(rustix::io::Errno::ACCESS) => return Error::NotPermitted(path.to_owned()),
        _ => {}
    }
    match rustix::fs::statvfs(dir) {
        // less than the log's index takes, or no file more; a file system that counts no files says 0 of 0
        Ok(disk)
            if disk.f_bavail.saturating_mul(disk.f_frsize) < 64 << 10
                || (disk.f_files > 0 && disk.f_favail == 0) =>
        {
            Error::Full(path.to_owned())
        }
        _ => Error::Store { path: path.to_owned(), source },
    }
}

/// Converts errors of file operations.
pub(super) fn file(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full(path.to_owned()),
        io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly(path.to_owned()),
        io::ErrorKind::PermissionDenied => Error::NotPermitted(path.to_owned()),
        _ => Error::File { operation, path: path.to_owned(), source },
    }
}
