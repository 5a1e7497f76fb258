//! Errors of test images.

use std::io::ErrorKind;
use std::path::PathBuf;

use crate::fault;

/// Why a test image cannot be prepared or torn down.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Programs are not installed.
    #[error("not on this machine: {}; `make bench-deps` installs what the experiments need", names.join(", "))]
    Missing {
        /// Their names, as given.
        names: Vec<String>,
    },
    /// The loader does not find a library of a program. The program does not start on this machine either.
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
    #[error(transparent)]
    Command(#[from] fault::Command),
    /// There is no such disk.
    #[error("no disk is called \"{name}\": there are {}", eke_slow_disk::Profile::NAMES.join(", "))]
    Profile {
        /// The given name.
        name: String,
    },
    /// Something still uses the tree.
    #[error("{} is in use: a program of the session still runs there (see `fuser -vm {}`)", path.display(), path.display())]
    Busy {
        /// Where it is mounted.
        path: PathBuf,
    },
    /// It is unmounted here, but not where another process copied the mount.
    #[error("{} is still mounted in another mount namespace: a service or a container that started meanwhile has it (see `grep {} /proc/*/mounts`)", path.display(), path.display())]
    Copied {
        /// Where it was mounted.
        path: PathBuf,
    },
    /// The slow disk.
    #[error(transparent)]
    Disk(#[from] eke_slow_disk::Error),
    /// A kernel file.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
}

impl Error {
    /// Is root needed?
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
