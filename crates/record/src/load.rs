//! Reads a recording. The file is foreign: it may hold anything.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::error::{Error, Result};
use crate::row::{Mark, Row};
use crate::store::{APPLICATION_ID, SCHEMA};

/// A recording as data.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recording {
    /// Notes on the whole recording, by key.
    pub notes: BTreeMap<String, String>,
    /// The samples, oldest first; at least one.
    pub rows: Vec<Row>,
    /// The named steps, oldest first.
    pub marks: Vec<Mark>,
}

impl Recording {
    /// Reads the file, also while it is written, or if its recorder was killed.
    ///
    /// # Errors
    /// [`Error::Foreign`], [`Error::Newer`], [`Error::Damaged`], [`Error::Empty`], or the error of the file system.
    pub fn read(path: &Path) -> Result<Self> {
        check_header(path)?;
        let connection = open(path).map_err(|e| damaged(path, &e))?;
        if let Some(why) = flaw(&connection).map_err(|e| damaged(path, &e))? {
            return Err(Error::Damaged { path: path.to_owned(), why });
        }
        let recording = read(&connection).map_err(|e| damaged(path, &e))?;
        if recording.rows.is_empty() { Err(Error::Empty(path.to_owned())) } else { Ok(recording) }
    }

    /// A note that is a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.notes.get(key)?.parse().ok().filter(|n: &f64| n.is_finite())
    }

    /// A note, or nothing.
    pub fn note(&self, key: &str) -> &str {
        self.notes.get(key).map_or("", String::as_str)
    }

    /// True if its recorder ended it; false if that was killed or still runs.
    pub fn is_complete(&self) -> bool {
        self.notes.contains_key("ended_after_ms")
    }

    /// From the first sample's time to the last one's, in milliseconds since the start.
    pub fn span_ms(&self) -> (u64, u64) {
        (self.rows.first().map_or(0, |r| r.time_ms), self.rows.last().map_or(0, |r| r.time_ms))
    }
}

/// Checks the first 100 bytes (sqlite.org/fileformat.html) before SQLite opens the file.
fn check_header(path: &Path) -> Result<()> {
    let foreign = |why: &str| Err(Error::Foreign { path: path.to_owned(), why: why.to_owned() });
    let metadata = std::fs::metadata(path).map_err(Error::file("read", path))?;
    if !metadata.is_file() {
        return foreign("it is not a regular file");
    }
    let mut header = Vec::new();
    let read = File::open(path).and_then(|file| file.take(100).read_to_end(&mut header));
    read.map_err(Error::file("read", path))?;
    if header.is_empty() {
        return Err(Error::Empty(path.to_owned()));
    }
    if !header.starts_with(b"SQLite format 3\0") || header.len() < 100 {
        return foreign("it is not an SQLite file");
    }
    if number(&header, 68) != APPLICATION_ID {
        return foreign("it is an SQLite file of another program");
    }
    match i64::from(number(&header, 60)) {
        version if version > SCHEMA => Err(Error::Newer { path: path.to_owned(), version }),
        _ => Ok(()),
    }
}

fn number(header: &[u8], at: usize) -> u32 {
    header.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// Opens for writing: SQLite must roll back the journal of a killed recorder.
fn open(path: &Path) -> rusqlite::Result<Connection> {
    let with = |access: OpenFlags| {
        let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(std::time::Duration::from_secs(2))?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))?;
        Ok(connection)
    };
    match with(OpenFlags::SQLITE_OPEN_READ_ONLY) {
        Err(e) if is_journal(&e) => with(OpenFlags::SQLITE_OPEN_READ_WRITE),
        other => other,
    }
}

fn is_journal(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen))
}

fn read(connection: &Connection) -> rusqlite::Result<Recording> {
    // a view or a virtual table of this name could be an endless query, and computed columns can be huge
    for table in ["recording", "sample", "mark"] {
        let is_table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1 AND sql NOT LIKE 'CREATE VIRTUAL%' \
                        AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(?1) WHERE hidden <> 0)";
        connection.query_row(is_table, [table], |_| Ok(()))?;
    }
    let (mut rows, mut marks) = (rows(connection)?, marks(connection)?);
    // a damaged index gives them in any order
    rows.sort_by_key(|row| row.time_ms);
    marks.sort_by_key(|mark| mark.time_ms);
    Ok(Recording { notes: notes(connection)?, rows, marks })
}

/// The damage that SQLite finds. A page that is in a tree twice could be read endlessly. The check leaves out constraints, which are the
/// file's own.
fn flaw(connection: &Connection) -> rusqlite::Result<Option<String>> {
    connection.execute_batch("PRAGMA ignore_check_constraints = ON")?;
    let check: String = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get(0))?;
    Ok((check != "ok").then(|| check.replace(char::is_control, " ")))
}

fn notes(connection: &Connection) -> rusqlite::Result<BTreeMap<String, String>> {
    let mut statement = connection.prepare("SELECT key, value FROM recording")?;
    let notes = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
    notes.collect()
}

fn rows(connection: &Connection) -> rusqlite::Result<Vec<Row>> {
    let sql = format!("SELECT time_ms, {} FROM sample ORDER BY time_ms", Row::COLUMNS.join(", "));
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map((), |row| {
        let mut column = 0;
        Row::from_values(row.get(0)?, || {
            column += 1;
            row.get::<_, Option<u64>>(column)
        })
    })?;
    rows.collect()
}

fn marks(connection: &Connection) -> rusqlite::Result<Vec<Mark>> {
    let mut statement = connection.prepare("SELECT time_ms, name FROM mark ORDER BY time_ms, rowid")?;
    let marks = statement.query_map((), |row| Ok(Mark { time_ms: row.get(0)?, name: row.get(1)? }))?;
    marks.collect()
}

fn damaged(path: &Path, error: &rusqlite::Error) -> Error {
    let why = match error {
        rusqlite::Error::QueryReturnedNoRows => "a table is missing".to_owned(),
        other => other.to_string(),
    };
    Error::Damaged { path: path.to_owned(), why }
}
