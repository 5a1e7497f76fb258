//! Brings the store of an earlier eke to this schema. Of the last one, nobody knows whose launches use which files. Before that, programs had no user: they
//! count as root's.

use std::path::Path;

use rusqlite::Connection;

use super::connect::{connection, has_tables};
use super::error::{self, Error, Result};
use super::schema::{ACCOUNT, PROGRAM_WITHOUT_USER, SCHEMA, TABLES, WITHOUT_ACCOUNTS, WITHOUT_USER};

/// The columns of programs with and without users.
const COLUMNS: &str = "key, id, exe, script, launches, learned, last_seen_s, took_ms, cold_bytes, coldest_ms, coldest_bytes, \
                       weight, weight_s";

/// Adds what is missing, in one transaction. The log is written back, because the schema's version is read from the file itself.
///
/// # Errors
/// [`Error::Damaged`] if the tables are not those of that schema; SQLite's answer.
pub(super) fn upgrade(path: &Path) -> Result<()> {
    let connection = connection(path).map_err(error::of(path))?;
    let changed = add_missing(&connection).map_err(error::of(path))?;
    let why = || "its tables are not those of its schema".to_owned();
    changed.then_some(()).ok_or_else(|| Error::Damaged { path: path.to_owned(), why: why() })?;
    let written = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(()));
    written.map_err(error::of(path))
}

/// Whether the tables were those of that schema, or are those of this one: then another process was killed before it wrote the log back.
fn add_missing(connection: &Connection) -> rusqlite::Result<bool> {
    let version: i64 = connection.query_row("PRAGMA user_version", (), |row| row.get(0))?;
    if ![WITHOUT_USER, WITHOUT_ACCOUNTS].contains(&version) {
        return Ok(version == SCHEMA);
    }
    let table = |of: &str| TABLES.iter().find(|(name, _)| *name == of).map_or("", |(_, sql)| sql);
    let (program, account) = (table("program"), table(ACCOUNT));
    let lacks_user = version == WITHOUT_USER;
    let before = TABLES.iter().filter(|(name, _)| *name != ACCOUNT);
    let before = before.map(|(name, sql)| match *sql {
        sql if lacks_user && sql == program => (*name, PROGRAM_WITHOUT_USER),
        sql => (*name, sql),
    });
    if !has_tables(connection, &before.collect::<Vec<_>>())? {
        return Ok(false);
    }
    let add_users = format!(
        "ALTER TABLE program RENAME TO earlier; {program}; \
         INSERT INTO program (user, {COLUMNS}) SELECT 0, {COLUMNS} FROM earlier; DROP TABLE earlier;"
    );
    let add_users = if lacks_user { add_users } else { String::new() };
    connection
        .execute_batch(&format!("BEGIN; {add_users} {account}; PRAGMA user_version = {SCHEMA}; COMMIT;"))?;
    Ok(true)
}
