//! Stores learned programs in one SQLite file that only its owner (root) can read. `docs/prefetch-store.md` describes it.
//!
//! # Layout
//! - [`file`]: finds, creates and checks the file, and sets a broken one aside
//! - [`schema`]: its tables
//! - [`record`]: the stored data of a program
//! - [`sets`]: stores launches and loads file sets; [`rows`]: their rows
//! - [`missing`]: what launches still read themselves
//! - [`log`]: events, decisions, and the states of predictors
//! - [`prune`]: deletes what exceeds the bounds
//! - [`fallback`]: the copy of a store that cannot be written
//! - `connect`: opens the file; `upgrade`: brings the store of an earlier eke to this schema
//! - [`age`]: weights that fade with time, and a clock that does not jump. Pure
//! - [`spans`]: encodes pages; [`encoding`]: encodes a program's files. Pure
//! - [`changed()`]: compares file stamps. Pure
//! - [`error`]: the errors of all these
//!
//! # Durability
//! A launch is one transaction in a write-ahead log: a killed process leaves its last commit. Commits do not wait for the disk, so that storing does
//! not disturb the launch being learned, but for the one in half a megabyte that writes the log back; a power cut may lose the latest launches, never the
//! file. A truncated, damaged or foreign file is renamed
//! and reported, and a new one begins.

mod accounts;
pub mod age;
mod changed;
mod connect;
mod encoding;
pub mod error;
mod fallback;
mod file;
mod log;
mod missing;
mod prune;
mod record;
mod rows;
mod schema;
mod sets;
pub mod spans;
mod upgrade;

use std::path::{Path, PathBuf};

use rusqlite::Connection;

pub use accounts::MOST_USERS;
pub use changed::changed;
pub use error::{Error, Result};
pub use fallback::{FALLBACK, Fallback, OpenedCopy};
pub use file::SetAside;
pub use log::{Decision, DecisionId, MOST_DECISIONS, MOST_EVENTS, PageUsage};
pub use record::{LearnedProgram, LeftOut, Record, UnlearnedLaunch};
pub use schema::{APPLICATION_ID, NAME, SCHEMA};

/// The most bytes of the file and its log: 16 MiB.
pub const MOST_BYTES: u64 = 16 << 20;
/// The most programs.
pub const MOST_PROGRAMS: usize = 500;

/// The open store.
#[derive(Debug)]
pub struct ProgramStore {
    path: PathBuf,
    /// This boot's number: device numbers of other boots are meaningless.
    boot: i64,
    connection: Connection,
}

/// The result of [`ProgramStore::open`].
#[derive(Debug)]
pub struct OpenedStore {
    /// The store.
    pub store: ProgramStore,
    /// A broken file that was set aside, to report.
    pub set_aside: Option<SetAside>,
}

/// Access to a store that another process owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read only.
    Read,
    /// Read and write.
    Write,
}

impl ProgramStore {
    /// Opens `prefetch.db` in `dir`, creating both if absent (0600, 0700). `boot` is this boot's id (`/proc/sys/kernel/random/boot_id`), `now_s`
    /// seconds since 1970.
    ///
    /// # Errors
    /// [`Error::Newer`], [`Error::Full`], [`Error::ReadOnly`], [`Error::NotPermitted`], or the answer of the file system or SQLite. Learning
    /// continues in a copy then ([`Fallback`]); [`ProgramStore::existing`] may still read the store.
    pub fn open(dir: &Path, boot: &str, now_s: i64) -> Result<OpenedStore> {
        file::open(dir, boot, now_s)
    }

    /// Opens the store of another process as it is; creates and renames nothing. Device numbers are all 0. To read, a full disk or a read-only file
    /// system is no hindrance.
    ///
    /// # Errors
    /// [`Error::Nothing`] if there is none, [`Error::Damaged`], or the errors of [`ProgramStore::open`].
    pub fn existing(dir: &Path, access: Access) -> Result<Self> {
        file::existing(dir, access)
    }

    /// The store's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the file and its log.
    pub fn bytes(&self) -> u64 {
        file::bytes(&self.path)
    }

    /// A number that changes when another process changes the store (`PRAGMA data_version`); reload then.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn data_version(&self) -> Result<i64> {
        let read = self.connection.query_row("PRAGMA data_version", (), |row| row.get(0));
        read.map_err(error::of(&self.path))
    }
}

#[cfg(test)]
mod tests;
