//! Why the experiment could not run.

use eke_bench_core::{fault, kept};

/// Why the experiment could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading the machine failed.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// A file failed.
    #[error(transparent)]
    Io(#[from] fault::Io),
    /// A program that the experiment needs is missing.
    #[error(transparent)]
    Missing(#[from] fault::Missing),
    /// A program failed, or QEMU did not start.
    #[error(transparent)]
    Program(#[from] eke_vm::Error),
    /// There are no documents to show.
    #[error(transparent)]
    Documents(#[from] eke_bench_desktop::documents::Error),
    /// A document has no JSON.
    #[error("a file of the experiment has no JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A client did not do what it should.
    #[error("{what}; the last lines of its console: {console}")]
    Client {
        /// What happened.
        what: String,
        /// The end of its console.
        console: String,
    },
    /// Something of eke is missing beside the running program.
    #[error("{name} is not beside the running eke-bench: build it first (make build)")]
    NotBuilt {
        /// The program.
        name: &'static str,
    },
    /// What would be continued is of other code, or cannot be kept.
    #[error(transparent)]
    Kept(#[from] kept::Error),
    /// A signal came.
    #[error("interrupted; everything is as it was before")]
    Interrupted,
}

/// The result of everything in [`crate`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
