//! Failures of probing and measuring.

use std::io;
use std::path::{Path, PathBuf};

/// A failure of the probe or the measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A kernel file or setting.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// A call on a device or file.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// The attempt: "write a page to".
        operation: &'static str,
        /// The device or file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A page read from a device differs from the page written.
    #[error("page {page} read from {} differs from the page written: do not use {algorithm} of this kernel for swap", path.display())]
    Mismatch {
        /// The device.
        path: PathBuf,
        /// The page's number on it.
        page: usize,
        /// The algorithm.
        algorithm: String,
    },
    /// No file is large enough to read random pages of it.
    #[error(
        "found no file of 1 MiB or more in {dirs} after {} {entries} directory entries",
        if *all { "all" } else { "the first" }
    )]
    NoLargeFile {
        /// The directories.
        dirs: String,
        /// Directory entries that were read.
        entries: usize,
        /// Are these all?
        all: bool,
    },
    /// Large files are there, but every page that was tried is in the page cache.
    #[error(
        "none of the pages tried, of {files} files in {dirs}, came from the disk: the page cache has them, and direct I/O does not go past it"
    )]
    NothingRead {
        /// The directories.
        dirs: String,
        /// Opened files.
        files: usize,
    },
    /// Nothing shows whether a read comes from the disk.
    #[error(
        "{} is on {file_system}, which answers from a cache of its own, so the time of a read says nothing about the disk",
        path.display()
    )]
    OwnCache {
        /// A file.
        path: PathBuf,
        /// `ZFS`.
        file_system: &'static str,
    },
    /// The page would come from no disk, so its time says nothing.
    #[error(
        "{} was never written, as fallocate(1) leaves a swap file: the file system answers a read with zeros, without the disk",
        path.display()
    )]
    Unwritten {
        /// The swap area.
        path: PathBuf,
    },
    /// There is no memory for the sample.
    #[error("cannot get {bytes} bytes for the sample of pages: {source}; close something first")]
    NoMemory {
        /// The requested size.
        bytes: usize,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A scratch device could not be removed.
    #[error("cannot remove {device}, which was made for measuring: {source}; `eke down` tries again")]
    NotRemoved {
        /// The device's name.
        device: String,
        /// The kernel's answer.
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
