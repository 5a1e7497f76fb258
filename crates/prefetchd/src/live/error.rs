//! Why the process does not go on.

use std::path::PathBuf;

use rustix::io::Errno;

/// Why it does not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// poll(2) failed.
    #[error("cannot wait: {0}")]
    Wait(#[source] Errno),
    /// A program that was asked for is not known, or the store cannot be read.
    #[error("{0}")]
    Store(#[from] eke_prefetch_store::Error),
    /// Nothing is known of it.
    #[error("nothing is known of {0}: `eke prefetch list` shows what was learned, by its path")]
    Unknown(String),
    /// One process learns into a store.
    #[error(
        "process {pid} learns into {} already; `eke down` ends what the agent started, and --store takes another directory",
        store.display()
    )]
    AlreadyRuns {
        /// That process, or `unknown`.
        pid: String,
        /// The directory.
        store: PathBuf,
    },
    /// There is no descriptor or thread.
    #[error("cannot begin to read: {0}")]
    Begin(#[source] std::io::Error),
}
