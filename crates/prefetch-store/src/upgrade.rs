//! Brings the store of an earlier eke to this schema: programs had no user then, and count as root's.

use std::path::Path;

use rusqlite::Connection;

use super::connect::{connection, has_tables};
use super::error::{self, Error, Result};
use super::schema::{PROGRAM_WITHOUT_USER, SCHEMA, TABLES, WITHOUT_USER};

/// The columns of both.
const COLUMNS: &str = "key, id, exe, script, launches, learned, last_seen_s, took_ms, cold_bytes, coldest_ms, coldest_bytes, \
                       weight, weight_s";

/// Adds the users, in one transaction. The log is written back, because the schema's version is read from the file itself.
///
/// # Errors
/// [`Error::Damaged`] if the tables are not those of that schema; SQLite's answer.
pub(super) fn upgrade(path: &Path) -> Result<()> {
    let connection = connection(path).map_err(error::of(path))?;
    let changed = add_users(&connection).map_err(error::of(path))?;
    let why = || "its tables are not those of its schema".to_owned();
    changed.then_some(()).ok_or_else(|| Error::Damaged { path: path.to_owned(), why: why() })?;
    let written = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
    written.map_err(error::of(path))
}

/// Whether the tables were those of that schema, or are those of this one: then another process was killed before it wrote the log back.
fn add_users(connection: &Connection) -> rusqlite::Result<bool> {
    let version: i64 = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    if version != WITHOUT_USER {
        return Ok(version == SCHEMA);
    }
    let program = TABLES.iter().find(|(name, _)| *name == "program").map_or("", |(_, sql)| sql);
    let before = TABLES.map(|(name, sql)| (name, if sql == program { PROGRAM_WITHOUT_USER } else { sql }));
    if !has_tables(connection, &before)? {
        return Ok(false);
    }
    connection.execute_batch(&format!(
        "BEGIN; ALTER TABLE program RENAME TO earlier; {program}; \
         INSERT INTO program (user, {COLUMNS}) SELECT 0, {COLUMNS} FROM earlier; \
         DROP TABLE earlier; PRAGMA user_version = {SCHEMA}; COMMIT;"
    ))?;
    Ok(true)
}
