//! Why the experiment could not be held.

use std::path::{Path, PathBuf};

use eke_bench_core::fault;
use eke_model::units::Bytes;

/// See the module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The cache, or what a dead experiment left.
    #[error(transparent)]
    Stage(#[from] eke_bench_core::stage::Error),
    /// The slow disk.
    #[error(transparent)]
    Disk(#[from] eke_slow_disk::Error),
    /// The box.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// eke is up, or another experiment is at work.
    #[error(transparent)]
    Peers(#[from] eke_bench_core::peers::Error),
    /// The system's answer about a file, a directory, a mount or a program.
    #[error(transparent)]
    Io(#[from] fault::Io),
    /// A program that the experiment needs.
    #[error(transparent)]
    Missing(#[from] fault::Missing),
    /// Nothing to cut the content from.
    #[error("{}there is nothing to cut the content from; name a directory with files: --corpus DIR", in_place(place.as_deref()))]
    NoCorpus {
        /// As asked for.
        place: Option<PathBuf>,
    },
    /// The images do not fit.
    #[error("the images of the content need up to {need} in {}, and {free} are free; take fewer --clients, or set XDG_CACHE_HOME to a larger disk", dir.display())]
    Room {
        /// The most that they take.
        need: Bytes,
        /// What there is.
        free: Bytes,
        /// Where.
        dir: PathBuf,
    },
    /// What cannot be.
    #[error("{0}")]
    Usage(String),
    /// The web server.
    #[error("{server} {what}; it said: {}", or_nothing(said))]
    Server {
        /// Its name.
        server: &'static str,
        /// What it did, or did not.
        what: String,
        /// The end of its log.
        said: String,
    },
    /// `eke cache` or what it started.
    #[error("`{command}` {answer}")]
    Cache {
        /// The command line.
        command: String,
        /// How it ended, with what it said.
        answer: String,
    },
    /// A client.
    #[error("a client {0}")]
    Client(String),
    /// A signal came.
    #[error("interrupted; everything is as it was before")]
    Interrupted,
}

fn in_place(place: Option<&Path>) -> String {
    place.map_or_else(String::new, |place| format!("below {} ", place.display()))
}

fn or_nothing(said: &str) -> &str {
    if said.trim().is_empty() { "nothing" } else { said.trim() }
}

/// The result of everything in [`crate`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
