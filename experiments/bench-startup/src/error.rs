//! Why the experiment could not be measured.

use eke_bench_core::fault;

/// See the module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk with the programs, or what a dead experiment left.
    #[error(transparent)]
    TestImage(#[from] eke_bench_core::test_image::Error),
    /// eke's own layer below refused.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// The documents.
    #[error(transparent)]
    Documents(#[from] eke_bench_desktop::documents::Error),
    /// The system's answer about a file, a directory or a program.
    #[error(transparent)]
    Io(#[from] fault::Io),
    /// A program that the experiment needs.
    #[error(transparent)]
    Missing(#[from] fault::Missing),
    /// What cannot be.
    #[error("{0}")]
    Usage(String),
    /// A launch that did not come to its window or its end, or a program that did not end.
    #[error("{program}: {why}")]
    Launch {
        /// Its name.
        program: String,
        /// What happened, with the end of what it said.
        why: String,
    },
    /// A prefetcher that does not do what it should.
    #[error("{name} {why}")]
    Prefetcher {
        /// Which.
        name: &'static str,
        /// What happened.
        why: String,
    },
    /// The screen.
    #[error("no screen: {0}")]
    Screen(String),
    /// The other reader on the disk.
    #[error("the other reader {0}")]
    Reader(String),
    /// A signal came.
    #[error("interrupted; everything is as it was before")]
    Interrupted,
}

impl Error {
    /// Does it concern one run only?
    pub fn is_of_one_run(&self) -> bool {
        matches!(self, Self::Launch { .. } | Self::Prefetcher { .. } | Self::Reader(_))
    }
}

/// The result of everything in [`crate`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
