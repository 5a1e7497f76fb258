//! Errors of the experiment.

use eke_bench_core::{fault, test_image};

/// See the module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk with the programs, or the removal of what a killed experiment left.
    #[error(transparent)]
    TestImage(#[from] eke_bench_core::test_image::Error),
    /// A kernel file.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// The documents.
    #[error(transparent)]
    Documents(#[from] eke_bench_desktop::documents::Error),
    /// An operation on a file, a directory or a program failed.
    #[error(transparent)]
    Io(#[from] fault::Io),
    /// A program is not installed.
    #[error(transparent)]
    Missing(#[from] fault::Missing),
    /// Options that do not fit this machine or each other.
    #[error("{0}")]
    Usage(String),
    /// A launch without a window or an end, or a program that did not end.
    #[error("{program}: {why}")]
    Launch {
        /// Its name.
        program: String,
        /// The reason, with the program's last messages.
        why: String,
    },
    /// A prefetcher failed.
    #[error("{name} {why}")]
    Prefetcher {
        /// Its name.
        name: &'static str,
        /// The reason.
        why: String,
    },
    /// The screen.
    #[error("no screen: {0}")]
    Screen(String),
    /// The second reader on the disk failed.
    #[error("the other reader {0}")]
    Reader(String),
    /// A signal came.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Does it concern one run only? A disk in use may be free for the next.
    pub fn is_of_one_run(&self) -> bool {
        let in_use = matches!(
            self,
            Self::TestImage(test_image::Error::Busy { .. } | test_image::Error::Copied { .. })
        );
        in_use || matches!(self, Self::Launch { .. } | Self::Prefetcher { .. } | Self::Reader(_))
    }
}

/// The result of everything in [`crate`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
