//! Why the experiment could not be held.

use std::io;
use std::path::{Path, PathBuf};

/// See the module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk with the programs, or what a dead experiment left.
    #[error(transparent)]
    Stage(#[from] crate::stage::Error),
    /// eke's own layer below refused.
    #[error(transparent)]
    Kernel(#[from] eke_kernel::Error),
    /// The documents.
    #[error(transparent)]
    Documents(#[from] crate::documents::Error),
    /// The system's answer about a file, a directory or a program.
    #[error("cannot {what} {}: {source}{}", path.display(), hint(source))]
    Io {
        /// What was tried, as a verb.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// A program that the experiment needs.
    #[error(
        "{program} is not installed, and {needs} it; `make bench-deps` installs what experiments need (Debian: apt install {package})"
    )]
    Missing {
        /// Its name.
        program: String,
        /// `the variant "preload" needs`
        needs: String,
        /// Debian's package.
        package: String,
    },
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

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::PermissionDenied => "; this needs root (try with sudo)",
        io::ErrorKind::StorageFull => "; no space is left there",
        _ => "",
    }
}

/// The result of everything in [`crate::startup`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Makes an [`Error::Io`]: for `map_err`.
pub(super) fn on<E: Into<io::Error>>(what: &'static str, path: &Path) -> impl FnOnce(E) -> Error {
    move |e| Error::Io { what, path: path.to_owned(), source: e.into() }
}
