//! What can go wrong with a stage, said for people.

use std::io::ErrorKind;
use std::path::PathBuf;

use crate::fault;

/// Why there is no stage, or why it cannot be taken down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Programs that are wanted are not on this machine.
    #[error("not on this machine: {}; `make bench-deps` installs what the experiments need", names.join(", "))]
    Missing {
        /// Their names, as they were asked for.
        names: Vec<String>,
    },
    /// The loader does not find a library of a program: it would not start here either.
    #[error("{} does not start: its library {library} is not found (see `ldd {}`)", program.display(), program.display())]
    Library {
        /// The program.
        program: PathBuf,
        /// The library's name.
        library: String,
    },
    /// The system's answer about a file, a directory or a mount.
    #[error(transparent)]
    Io(#[from] fault::Io),
    /// A program of the host could not be started or failed.
    #[error("`{command}` {answer}")]
    Command {
        /// The command line.
        command: String,
        /// How it ended, with what it said.
        answer: String,
    },
    /// No disk is called so.
    #[error("no disk is called \"{name}\": there are {}", eke_slow_disk::Profile::NAMES.join(", "))]
    Profile {
        /// What was asked for.
        name: String,
    },
    /// Something still uses the tree.
    #[error("{} is in use: a program of the session still runs there (see `fuser -vm {}`)", path.display(), path.display())]
    Busy {
        /// Where it is mounted.
        path: PathBuf,
    },
    /// The slow disk below.
    #[error(transparent)]
    Disk(#[from] eke_slow_disk::Error),
    /// eke's own layer below refused.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
}

impl Error {
    /// Would root have been allowed to?
    pub fn is_permission(&self) -> bool {
        match self {
            Self::Io(e) => e.source.kind() == ErrorKind::PermissionDenied,
            Self::Disk(e) => e.is_permission(),
            Self::Kernel(e) => e.is_permission(),
            _ => false,
        }
    }
}

/// The result of everything in [`crate::test_image`].
pub type Result<T, E = Error> = std::result::Result<T, E>;
