//! Errors: the attempt, its object, the kernel's answer, and what to do.

use std::io;
use std::path::{Path, PathBuf};

use eke_present::output;

/// A failure of recording, marking or reporting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// `/proc` or `/sys` could not be read.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// The output file cannot be written.
    #[error(transparent)]
    Output(#[from] output::Error),
    /// A file or socket could not be used.
    #[error("cannot {operation} {}: {source}", path.display())]
    File {
        /// A verb: create, write, bind.
        operation: &'static str,
        /// Its path.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The recording could not be written.
    #[error("cannot write the recording {}: {source}", path.display())]
    Store {
        /// The recording.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// There is no such command.
    #[error("there is no command \"{0}\": nothing was recorded, and no file is left")]
    NoCommand(String),
    /// The command cannot be started.
    #[error("cannot start \"{program}\": {source}; nothing was recorded, and no file is left")]
    Start {
        /// The command.
        program: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// There is no such process.
    #[error("there is no process {0}: nothing was recorded")]
    NoProcess(u32),
    /// Not a file that SQLite could read.
    #[error("{} is not a recording: {why}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What the file is instead.
        why: String,
    },
    /// A recording that a newer eke made.
    #[error("{} has schema {version}, but this eke reads schemas up to {}: use a newer eke", path.display(), crate::store::SCHEMA)]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema.
        version: i64,
    },
    /// A recording that was cut short or overwritten.
    #[error("{} is damaged or cut short: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// SQLite's message.
        why: String,
    },
    /// A recording without a sample.
    #[error("{} has no samples: the recording ended before its first second, there is nothing to report", .0.display())]
    Empty(PathBuf),
    /// No recorder listens.
    #[error("no recording of this user is running: start one by `eke record -- COMMAND`")]
    NoRecording,
    /// The recorder that the environment names has ended.
    #[error("the recording at {} has ended: nothing was marked", .0.display())]
    Ended(PathBuf),
    /// More than one recorder listens.
    #[error("{} recordings are running; name one: EKE_RECORDING={} eke record mark ...", .0.len(), .0.first().map(|p| p.display().to_string()).unwrap_or_default())]
    Several(Vec<PathBuf>),
    /// The name of a step is empty or too long.
    #[error("a step needs a name of 1 to {} bytes", crate::marks::LONGEST_NAME)]
    BadName,
}

/// `Result` with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// For `map_err` of file operations.
    pub(crate) fn file(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { operation, path: path.to_owned(), source }
    }

    /// The exit status if a command could not be started (as in sh: 127 not found, 126 otherwise).
    pub fn start_status(&self) -> Option<u8> {
        match self {
            Self::NoCommand(_) => Some(127),
            Self::Start { .. } => Some(126),
            _ => None,
        }
    }
}
