//! Why the experiment could not run.

use eke_bench_core::fault;

/// Why the experiment could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading the machine failed.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// A measurement failed.
    #[error(transparent)]
    Link(#[from] eke_link::Error),
    /// A file or a program failed.
    #[error(transparent)]
    Io(#[from] fault::Io),
    /// A program that the experiment needs is missing.
    #[error("{program} is not installed, and the experiment needs it (Debian: apt install {package})")]
    Missing {
        /// Its name.
        program: &'static str,
        /// Debian's package.
        package: &'static str,
    },
    /// `ip`, `tc` or `ssh-keygen` failed.
    #[error(transparent)]
    Command(#[from] fault::Command),
    /// The server does not start, or the CPU cannot be limited.
    #[error("{0}")]
    Environment(String),
    /// A signal came.
    #[error("interrupted")]
    Interrupted,
}

/// The result of everything in [`crate`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
