//! Why the experiment could not run.

use eke_bench_core::fault;

/// Why the experiment could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A box, the content or a connection failed.
    #[error(transparent)]
    Web(#[from] eke_bench_web::Error),
    /// The cache directory, or the removal of a dead experiment's leftovers, failed.
    #[error(transparent)]
    TestImage(#[from] eke_bench_core::test_image::Error),
    /// The slow disk failed.
    #[error(transparent)]
    Disk(#[from] eke_slow_disk::Error),
    /// Groups failed.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// eke is up, or another experiment runs.
    #[error(transparent)]
    Variants(#[from] eke_bench_core::variants::Error),
    /// A file, a directory, a mount or a program failed.
    #[error(transparent)]
    Io(#[from] fault::Io),
    /// A program that the experiment needs is missing.
    #[error(transparent)]
    Missing(#[from] fault::Missing),
    /// A command failed.
    #[error("`{command}` {why}")]
    Command {
        /// The command line.
        command: String,
        /// How it ended, with its standard error.
        why: String,
    },
    /// A program of the farm failed.
    #[error("{what}; its log ends with: {log}")]
    Part {
        /// The program and what happened.
        what: String,
        /// The end of its log.
        log: String,
    },
    /// A client failed.
    #[error("a client {0}")]
    Client(String),
    /// An option is wrong.
    #[error("{0}")]
    Usage(String),
    /// A signal came.
    #[error("interrupted; everything is as it was before")]
    Interrupted,
}

impl Error {
    /// Whether other runs can go on.
    pub fn is_of_one_run(&self) -> bool {
        use eke_bench_web::Error as Web;
        matches!(
            self,
            // Another mount namespace may have a copy of the origin's mount; the disk goes with it.
            Self::Disk(_)
                | Self::Part { .. }
                | Self::Client(_)
                | Self::Command { .. }
                | Self::Web(Web::Cache { .. } | Web::Client(_) | Web::Server { .. })
        )
    }
}

/// The result of everything in [`crate`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
