//! Errors that end the process.

use std::path::PathBuf;

use rustix::io::Errno;

/// Why the process ends.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// poll(2) failed.
    #[error("cannot wait: {0}")]
    Wait(#[source] Errno),
    /// The store cannot be read.
    #[error("{0}")]
    Store(#[from] eke_prefetch_store::Error),
    /// A named program was never learned.
    #[error("nothing is known of {0}: `eke prefetch list` shows what was learned, by its path")]
    Unknown(String),
    /// Another process learns into the store.
    #[error(
        "process {pid} learns into {} already; `eke down` ends what the agent started, and --store takes another directory",
        store.display()
    )]
    AlreadyRuns {
        /// Its process id, or `unknown`.
        pid: String,
        /// The store's directory.
        store: PathBuf,
    },
    /// No descriptor or thread is left.
    #[error("cannot begin to read: {0}")]
    Begin(#[source] std::io::Error),
}
