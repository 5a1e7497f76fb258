//! Stores learned launches and loads file sets.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rusqlite::{Params, Row, Transaction, TransactionBehavior};

use super::age::Clock;
use super::error::{self, Result};
use super::record::{self, LearnedProgram, LeftOut, Record, UnlearnedLaunch};
use super::rows::{self, RECORD, record_of, tick};
use super::{ProgramStore, accounts, log, prune};
use eke_prefetch_model::file_set::FileSet;
use eke_prefetch_model::launch::Launch;
use eke_prefetch_model::program::{Program, ProgramId};

impl ProgramStore {
    /// Stores a learned launch and the program's united file set in one transaction. Entries of replaced files become void for all programs.
    ///
    /// # Errors
    /// SQLite's answer; nothing of the launch is stored then.
    pub fn add_launch(&mut self, launch: &Launch, set: &FileSet, now_s: i64) -> Result<LeftOut> {
        let boot = self.boot;
        let left_out = self.write(|transaction| {
            let clock = tick(transaction, now_s)?;
            let program = rows::put_program(transaction, launch, clock)?;
            let files = rows::put_set(transaction, program, launch, set, boot)?;
            let programs = prune::prune(transaction, program, clock)?;
            Ok(LeftOut { files, programs })
        })?;
        if left_out.programs > 0 {
            self.run("PRAGMA wal_checkpoint(TRUNCATE)")?;
        }
        Ok(left_out)
    }

    /// Counts launches that were not learned. Unknown programs are ignored.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn count_launches(&mut self, seen: &[UnlearnedLaunch], now_s: i64) -> Result<()> {
        self.write(|transaction| {
            let clock = tick(transaction, now_s)?;
            seen.iter().try_for_each(|seen| rows::count(transaction, seen, clock))
        })
    }

    /// A program and its files, if it was learned.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn program(&self, id: ProgramId, now_s: i64) -> Result<Option<LearnedProgram>> {
        let clock = self.clock()?.at(now_s);
        let of = format!("{RECORD} WHERE id = ?");
        let found = self.all(&of, [record::id_column(id)], |row| record_of(row, clock))?;
        let Some(record) = found.into_iter().next() else { return Ok(None) };
        let found = rows::set_of(&self.connection, id, self.boot);
        let (set, replaced, users) = found.map_err(error::of(&self.path))?;
        Ok(Some(LearnedProgram { record, set, users, replaced }))
    }

    /// All programs by descending weight.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn records(&self, now_s: i64) -> Result<Vec<Record>> {
        let clock = self.clock()?.at(now_s);
        let mut records = self.all(RECORD, (), |row| record_of(row, clock))?;
        records.sort_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.program.cmp(&b.program)));
        Ok(records)
    }

    /// The accounts whose launches of a program were learned, and the inode of its executable, if that is known.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn users_and_executable(&self, program: &Program) -> Result<(Vec<u32>, Option<u64>)> {
        let users = accounts::users(&self.connection, program.id()).map_err(error::of(&self.path))?;
        let select = "SELECT ino FROM file WHERE hash = ? AND path = ? AND kind = 0";
        let of = (rows::hash(&program.exe), program.exe.as_os_str().as_bytes());
        let found = self.all(select, of, |row| row.get(0).map(record::of_bits))?;
        Ok((users, found.into_iter().next()))
    }

    /// Forgets a program: its files, its events and its decisions. Returns whether it was known. The bytes are overwritten, and the log is emptied.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn forget_program(&mut self, id: ProgramId) -> Result<bool> {
        self.run("PRAGMA secure_delete = ON")?;
        let forgotten = self.write(|transaction| rows::forget(transaction, record::id_column(id)));
        self.run("PRAGMA secure_delete = FAST; PRAGMA wal_checkpoint(TRUNCATE)")?;
        forgotten
    }

    /// Forgets the pages of a changed or deleted file for all programs. Returns whether it was known.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn forget_file(&mut self, path: &Path) -> Result<bool> {
        self.write(|transaction| {
            let delete = "DELETE FROM file WHERE hash = ? AND path = ?";
            let rows = transaction.execute(delete, (rows::hash(path), path.as_os_str().as_bytes()))?;
            Ok(rows > 0)
        })
    }

    /// Runs one transaction.
    pub(super) fn write<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        let written = (|| {
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let changed = change(&transaction)?;
            transaction.commit()?;
            Ok(changed)
        })();
        written.map_err(error::of(&self.path))
    }

    fn run(&self, sql: &str) -> Result<()> {
        self.connection.execute_batch(sql).map_err(error::of(&self.path))
    }

    pub(super) fn all<T>(
        &self,
        sql: &str,
        of: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let all = || -> rusqlite::Result<Vec<T>> {
            self.connection.prepare_cached(sql)?.query_map(of, read)?.collect()
        };
        all().map_err(error::of(&self.path))
    }

    pub(super) fn meta(&self, name: &str) -> Result<Option<i64>> {
        let found =
            self.all("SELECT value FROM meta WHERE name = ? AND typeof(value) = 'integer'", [name], |row| {
                row.get(0)
            })?;
        Ok(found.into_iter().next())
    }

    fn clock(&self) -> Result<Clock> {
        Ok(Clock {
            machine_s: self.meta("machine_s")?.unwrap_or(i64::MAX),
            before_s: self.meta("before_s")?,
            own_s: self.meta("own_s")?.unwrap_or(0),
        })
    }

    /// Takes a new boot number if the last writer ran in another boot.
    pub(super) fn begin_boot(&mut self, boot: &str, now_s: i64) -> Result<()> {
        let number = self.meta("boot")?.unwrap_or(0);
        let last =
            self.all("SELECT value FROM meta WHERE name = 'boot_id'", (), |row| row.get::<_, String>(0))?;
        self.boot = if last.iter().any(|last| last == boot) { number } else { number + 1 };
        let (number, is_new) = (self.boot, self.boot != number);
        self.write(|transaction| {
            tick(transaction, now_s)?;
            if is_new {
                log::mark_boot(transaction)?;
            }
            rows::put_meta(transaction, "boot", number)?;
            rows::put_meta(transaction, "boot_id", boot)
        })
    }
}
