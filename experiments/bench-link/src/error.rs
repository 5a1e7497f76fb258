//! Why the experiment could not be held.

use eke_bench_core::fault;

/// See the module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// eke's own layer below refused.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// A measurement.
    #[error(transparent)]
    Link(#[from] eke_link::Error),
    /// The system's answer about a file or a program.
    #[error(transparent)]
    Io(#[from] fault::Io),
    /// A program that the experiment needs.
    #[error("{program} is not installed, and the experiment needs it (Debian: apt install {package})")]
    Missing {
        /// Its name.
        program: &'static str,
        /// Debian's package.
        package: &'static str,
    },
    /// `ip`, `tc` or `ssh-keygen` refused.
    #[error("`{command}` failed: {said}")]
    Command {
        /// The whole line.
        command: String,
        /// What it said.
        said: String,
    },
    /// The server does not come up, or the CPU cannot be made small.
    #[error("{0}")]
    Place(String),
    /// A signal came.
    #[error("interrupted; everything is as it was before")]
    Interrupted,
}

/// The result of everything in [`crate`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
