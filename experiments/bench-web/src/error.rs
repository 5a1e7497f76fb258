//! Why the experiment could not run.

use std::path::{Path, PathBuf};

use eke_bench_core::fault;
use eke_model::units::Bytes;

/// Why the experiment could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The cache directory, or the removal of a dead experiment's leftovers, failed.
    #[error(transparent)]
    TestImage(#[from] eke_bench_core::test_image::Error),
    /// The slow disk failed.
    #[error(transparent)]
    Disk(#[from] eke_slow_disk::Error),
    /// The box failed.
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
    /// There are no files to cut the content from.
    #[error("{}there is nothing to cut the content from; name a directory with files: --corpus DIR", in_place(place.as_deref()))]
    NoCorpus {
        /// The directory that was given.
        place: Option<PathBuf>,
    },
    /// The images do not fit.
    #[error("the images of the content need up to {need} in {}, and {free} are free; take fewer --clients, or set XDG_CACHE_HOME to a larger disk", dir.display())]
    Space {
        /// The most bytes that they need.
        need: Bytes,
        /// The free bytes.
        free: Bytes,
        /// The directory.
        dir: PathBuf,
    },
    /// An option is wrong.
    #[error("{0}")]
    Usage(String),
    /// A program in a box failed.
    #[error("{name} {what}; its log ends with: {}", or_nothing(log))]
    Program {
        /// Its name.
        name: &'static str,
        /// What happened.
        what: String,
        /// The end of its log.
        log: String,
    },
    /// A command failed.
    #[error(transparent)]
    Command(#[from] fault::Command),
    /// A client failed.
    #[error("a client {0}")]
    Client(String),
    /// A signal came.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// The error of a run in which the kernel killed `kills` processes for lack of memory: probably the cause.
    #[must_use]
    pub fn with_kills(self, kills: u64) -> Self {
        let and = |what: &str| format!("{what}; the kernel killed {kills} processes for lack of memory");
        match self {
            _ if kills == 0 => self,
            Self::Client(what) => Self::Client(and(&what)),
            Self::Program { name, what, log } => Self::Program { name, what: and(&what), log },
            Self::Command(failed) => fault::Command { why: and(&failed.why), ..failed }.into(),
            error => error,
        }
    }
}

fn in_place(place: Option<&Path>) -> String {
    place.map_or_else(String::new, |place| format!("below {} ", place.display()))
}

fn or_nothing(log: &str) -> &str {
    if log.trim().is_empty() { "nothing" } else { log.trim() }
}

/// The result of everything in [`crate`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_what_the_kernel_killed() {
        let of_client = |kills| Error::Client("got nothing".to_owned()).with_kills(kills).to_string();
        assert_eq!(of_client(0), "a client got nothing");
        assert_eq!(of_client(2), "a client got nothing; the kernel killed 2 processes for lack of memory");
        let server = Error::Program { name: "nginx", what: "ended".to_owned(), log: String::new() };
        assert_eq!(
            server.with_kills(1).to_string(),
            "nginx ended; the kernel killed 1 processes for lack of memory; its log ends with: nothing"
        );
        assert!(matches!(Error::Interrupted.with_kills(1), Error::Interrupted));
    }
}
