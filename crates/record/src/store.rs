//! Writing a recording: one SQLite file, 0600, described in `docs/recording.md`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use eke_present::output;
use rusqlite::{Connection, OpenFlags, params_from_iter};

use crate::error::{Error, Result};
use crate::row::{Mark, Row};

/// `application_id` of the file: "eke1".
pub const APPLICATION_ID: u32 = 0x656b_6531;
/// `user_version` of the file: the schema below.
pub const SCHEMA: i64 = 1;

/// A recording that is being written.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
    insert: String,
}

impl Store {
    /// Makes a new file, readable by its owner only. With `overwrite` it replaces an existing one.
    ///
    /// # Errors
    /// [`Error::Output`], or SQLite's error.
    pub fn create(path: &Path, overwrite: bool) -> Result<Self> {
        output::create(path, overwrite)?;
        // the journal of a killed recorder would be rolled back into the new file
        let _ = std::fs::remove_file(journal(path));
        Self::set_up(path).inspect_err(|_| {
            let _ = std::fs::remove_file(path);
        })
    }

    fn set_up(path: &Path) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |source| Error::Store { path: path.to_owned(), source };
        let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
        connection.busy_timeout(Duration::from_secs(2)).map_err(failed)?;
        connection.execute_batch(&schema()).map_err(failed)?;
        let places = vec!["?"; Row::COLUMNS.len() + 1].join(",");
        let insert = format!("INSERT INTO sample VALUES ({places})");
        Ok(Self { path: path.to_owned(), connection, insert })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a note on the whole recording.
    ///
    /// # Errors
    /// SQLite's error.
    pub fn note(&mut self, notes: &[(&str, String)]) -> Result<()> {
        let write = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            for note in notes {
                transaction.execute("INSERT OR REPLACE INTO recording VALUES (?, ?)", (note.0, &note.1))?;
            }
            transaction.commit()
        };
        write(&mut self.connection).map_err(|source| Error::Store { path: self.path.clone(), source })
    }

    /// Writes rows and marks in one transaction.
    ///
    /// # Errors
    /// SQLite's error, usually no space.
    pub fn write(&mut self, rows: &[Row], marks: &[Mark]) -> Result<()> {
        if rows.is_empty() && marks.is_empty() {
            return Ok(());
        }
        let written = write(&mut self.connection, &self.insert, rows, marks);
        written.map_err(|source| Error::Store { path: self.path.clone(), source })
    }

    /// Removes the file.
    pub fn discard(self) {
        drop(self.connection);
        let _ = std::fs::remove_file(&self.path);
    }
}

fn write(connection: &mut Connection, insert: &str, rows: &[Row], marks: &[Mark]) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    {
        let mut statement = transaction.prepare_cached(insert)?;
        for row in rows {
            let values = std::iter::once(Some(row.time_ms)).chain(row.values());
            statement.execute(params_from_iter(values.map(|v| v.map(stored))))?;
        }
        let mut statement = transaction.prepare_cached("INSERT INTO mark VALUES (?, ?)")?;
        for mark in marks {
            statement.execute((stored(mark.time_ms), &mark.name))?;
        }
    }
    transaction.commit()
}

/// SQLite's integers have 63 bits.
fn stored(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// No fsync: the recorder must not load the disk that it observes. A power cut may cost the recording; a killed recorder costs at most the
/// last second, since the kernel has the rest.
fn schema() -> String {
    let columns: Vec<String> = Row::COLUMNS.iter().map(|c| format!("{c} INTEGER")).collect();
    format!(
        "PRAGMA page_size = 4096; PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; PRAGMA cache_size = -256;\n\
         BEGIN;\n\
         PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA};\n\
         CREATE TABLE recording (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;\n\
         CREATE TABLE sample (time_ms INTEGER NOT NULL, {});\n\
         CREATE TABLE mark (time_ms INTEGER NOT NULL, name TEXT NOT NULL);\n\
         COMMIT;",
        columns.join(", ")
    )
}

/// The path of SQLite's journal.
fn journal(path: &Path) -> PathBuf {
    let mut journal = path.as_os_str().to_owned();
    journal.push("-journal");
    journal.into()
}
