//! What is learned, in one SQLite file, which only its owner (root) can read. `docs/prefetch-store.md` describes it.
//!
//! # Layout
//! - [`file`]: finding, making, checking the file, and setting a broken one aside
//! - [`schema`]: its tables
//! - [`record`]: what is kept of a program
//! - [`sets`]: learned launches go in, file sets come out; [`rows`]: as rows
//! - [`log`]: what happened, what was decided, and the states of predictors
//! - [`prune`]: what goes when there is too much
//! - [`age`]: weights that fade with time, and a clock that cannot be made to jump. Pure
//! - [`spans`]: pages as bytes; [`pack`]: all that a program touches. Pure
//! - [`changed()`]: is a file another one now? Pure
//! - [`error`]: what can go wrong
//!
//! # What survives
//! A launch is one transaction in a write-ahead log: a process that is killed leaves what was committed last. Commits do not wait
//! for the disk, so that keeping does not disturb the launch that is learned; a power cut may cost the latest launches, never the
//! file. A file that is cut short, damaged or of another program is renamed, which is said, and a new one is begun.

pub mod age;
mod changed;
pub mod error;
mod file;
mod log;
mod pack;
mod prune;
mod record;
mod rows;
mod schema;
mod sets;
pub mod spans;

use std::path::{Path, PathBuf};

use rusqlite::Connection;

pub use changed::changed;
pub use error::{Error, Result};
pub use file::SetAside;
pub use log::{After, Decision, DecisionId, MOST_DECISIONS, MOST_EVENTS};
pub use record::{Known, LeftOut, Record, Seen};
pub use schema::{APPLICATION_ID, NAME, SCHEMA};

/// The most that the file may have, with its log: 16 MiB.
pub const MOST_BYTES: u64 = 16 << 20;
/// The most programs.
pub const MOST_PROGRAMS: usize = 500;

/// The open file.
#[derive(Debug)]
pub struct Keep {
    path: PathBuf,
    /// This boot's number: device numbers of others say nothing.
    boot: i64,
    connection: Connection,
}

/// What [`Keep::open`] gives.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub keep: Keep,
    /// A broken file that was set aside, to be said.
    pub set_aside: Option<SetAside>,
}

/// Who looks into the file of another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only reads.
    Read,
    /// Changes too.
    Write,
}

impl Keep {
    /// Opens `prefetch.db` in this directory; makes both if they are not there (0700, 0600). `boot` is this boot's identity
    /// (`/proc/sys/kernel/random/boot_id`), `now_s` seconds since 1970.
    ///
    /// # Errors
    /// [`Error::Newer`], [`Error::Full`], [`Error::ReadOnly`], [`Error::NotPermitted`], or what the file system or SQLite answers.
    /// Whoever learns goes on without keeping then; [`Keep::existing`] may still read what was kept.
    pub fn open(dir: &Path, boot: &str, now_s: i64) -> Result<Opened> {
        file::open(dir, boot, now_s)
    }

    /// Opens the file that another process keeps, as it is; neither makes nor renames anything. Device numbers are all 0.
    ///
    /// # Errors
    /// [`Error::Nothing`] if there is none, [`Error::Damaged`], or as of [`Keep::open`].
    pub fn existing(dir: &Path, access: Access) -> Result<Self> {
        file::existing(dir, access)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file and its log.
    pub fn bytes(&self) -> u64 {
        file::bytes(&self.path)
    }

    /// A number that changes when another process has changed the file (`PRAGMA data_version`): what was read before is to be read
    /// again.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn version_of_others(&self) -> Result<i64> {
        let read = self.connection.query_row("PRAGMA data_version", (), |row| row.get(0));
        read.map_err(error::of(&self.path))
    }
}

#[cfg(test)]
mod tests;
