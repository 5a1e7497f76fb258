//! A store that cannot be written (a full disk, a read-only file system), and its copy in memory, which is used until it can.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::statvfs;

use super::connect::beside;
use super::error::{self, Error, Result};
use super::file::{self, is_read_only, text};
use super::schema::{NAME, TABLES};
use super::{Access, OpenedStore, ProgramStore, rows};

/// Where copies are, below the root. It is lost at reboot.
pub const FALLBACK: &str = "run/eke/prefetch";
/// The row of the copy's `meta` that says of which store it is a copy.
const COPY_OF: &str = "copy_of";
/// Room for the log and its index.
const BESIDE_BYTES: u64 = 2 << 20;

/// The directories of a store and of its copy.
#[derive(Debug, Clone)]
pub struct Fallback {
    store: PathBuf,
    copy: PathBuf,
}

/// The copy, open.
#[derive(Debug)]
pub struct OpenedCopy {
    /// The store to use.
    pub opened: OpenedStore,
    /// Why it is not a copy but a new store.
    pub not_copied: Option<Error>,
}

impl Fallback {
    /// Of the store in `store`, with the copy below `below` ([`FALLBACK`]): each store has its own.
    pub fn new(store: &Path, below: &Path) -> Self {
        let whole = std::path::absolute(store).unwrap_or_else(|_| store.to_owned());
        Self { store: store.to_owned(), copy: below.join(whole.strip_prefix("/").unwrap_or(&whole)) }
    }

    /// The store's directory.
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// The directory in use: the copy's as long as the store is as it was when it was copied. For a process that has neither open.
    pub fn in_use(&self) -> &Path {
        let copy = ProgramStore::existing(&self.copy, Access::Read);
        if copy.is_ok_and(|copy| self.is_current(&copy)) { &self.copy } else { &self.store }
    }

    /// Opens the store. What its copy learned meanwhile comes with it. For a process that has neither open.
    ///
    /// # Errors
    /// Those of [`ProgramStore::open`]. The copy stays then.
    pub fn open(&self, boot: &str, now_s: i64) -> Result<OpenedStore> {
        let mut copy = ProgramStore::existing(&self.copy, Access::Write).ok();
        let opened = self.open_with(copy.as_mut(), boot, now_s)?;
        drop(copy);
        self.remove_copy();
        Ok(opened)
    }

    /// As [`Self::open`], for the process that has the copy open; it removes the copy when it has closed it ([`Self::remove_copy`]).
    ///
    /// # Errors
    /// Those of [`ProgramStore::open`].
    pub fn move_back(&self, copy: &mut ProgramStore, boot: &str, now_s: i64) -> Result<OpenedStore> {
        self.open_with(Some(copy), boot, now_s)
    }

    /// Whether the store has room for all of the copy. Only then it is opened, which reads all of it.
    pub fn has_room(&self, copy: &ProgramStore) -> bool {
        let room = statvfs(&self.store).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        // Replaced rows are in the log until it is written back.
        !is_read_only(&self.store) && room.is_ok_and(|room| room > 2 * copy.bytes() + BESIDE_BYTES)
    }

    /// Opens the copy: the one that there is, if the store has not changed since, or else a new one.
    ///
    /// # Errors
    /// Those of [`ProgramStore::open`].
    pub fn open_copy(&self, boot: &str, now_s: i64) -> Result<OpenedCopy> {
        let not_copied = if self.in_use() == self.copy { None } else { self.copy().err() };
        let mut opened = ProgramStore::open(&self.copy, boot, now_s)?;
        self.mark(&mut opened.store)?;
        Ok(OpenedCopy { opened, not_copied })
    }

    /// Removes the copy. An error leaves one that is not of the store as it is now, and so not used.
    pub fn remove_copy(&self) {
        let _ = file::remove_all(&self.copy.join(NAME));
    }

    fn copy(&self) -> Result<()> {
        file::remove_all(&self.copy.join(NAME))?;
        file::copy(&self.store.join(NAME), &self.copy.join(NAME))
    }

    fn open_with(&self, copy: Option<&mut ProgramStore>, boot: &str, now_s: i64) -> Result<OpenedStore> {
        // First, because opening the store changes it: it counts boots, and writes its log back.
        let Some(copy) = copy.filter(|copy| self.is_current(copy)) else {
            return ProgramStore::open(&self.store, boot, now_s);
        };
        let moved = self.open_and_take(copy.path(), boot, now_s);
        if moved.is_err() {
            let _ = self.mark(copy);
        }
        moved
    }

    fn open_and_take(&self, copy: &Path, boot: &str, now_s: i64) -> Result<OpenedStore> {
        let mut opened = ProgramStore::open(&self.store, boot, now_s)?;
        opened.store.take_over(copy)?;
        opened.store.begin_boot(boot, now_s)?;
        Ok(opened)
    }

    fn is_current(&self, copy: &ProgramStore) -> bool {
        let of = copy.all("SELECT value FROM meta WHERE name = ?", [COPY_OF], |row| row.get::<_, String>(0));
        of.is_ok_and(|of| of.iter().any(|of| *of == self.identity()))
    }

    fn mark(&self, copy: &mut ProgramStore) -> Result<()> {
        let identity = self.identity();
        copy.write(|transaction| rows::put_meta(transaction, COPY_OF, &identity))
    }

    /// What differs when somebody has written to the store: of file and log inode, size and time. An empty log is none.
    fn identity(&self) -> String {
        let path = self.store.join(NAME);
        let of = |path: &Path| {
            let file = std::fs::symlink_metadata(path).ok().filter(|file| file.len() > 0)?;
            Some(format!("{} {} {}.{}", file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
        };
        format!("{:?} {:?}", of(&path), of(&beside(&path, "-wal")))
    }
}

impl ProgramStore {
    /// Replaces all rows by those of the store at `from`, in one transaction.
    fn take_over(&mut self, from: &Path) -> Result<()> {
        let from = text(from)?.to_owned();
        self.connection.execute("ATTACH ? AS copy", [from]).map_err(error::of(&self.path))?;
        let taken = self.write(|transaction| {
            let tables = TABLES.iter().map(|(name, _)| *name).chain(["sqlite_sequence"]);
            for table in tables {
                transaction.execute_batch(&format!(
                    "DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM copy.{table};"
                ))?;
            }
            transaction.execute("DELETE FROM main.meta WHERE name = ?", [COPY_OF]).map(drop)
        });
        self.connection.execute_batch("DETACH copy").map_err(error::of(&self.path))?;
        taken?;
        // The log has all rows now.
        let written = self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
        written.map_err(error::of(&self.path))
    }
}
