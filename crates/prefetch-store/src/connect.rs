//! Connections to a store's file, and the check of its tables.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::{MOST_BYTES, schema};

/// Space reserved for the log.
const LOG_BYTES: u64 = 1 << 20;
/// A connection to a file on a read-only file system, where no log and no index of it can be made. Nobody else can change the file either
/// (`immutable`, "Uniform Resource Identifiers" in SQLite's documentation). What a log has beside it is not seen.
pub(super) fn immutable(path: &Path) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri(path), flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.execute_batch(schema::READER)?;
    Ok(connection)
}

fn uri(path: &Path) -> OsString {
    let mut uri = b"file:".to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.extend(format!("%{byte:02x}").bytes()),
            byte => uri.push(*byte),
        }
    }
    uri.extend(b"?immutable=1");
    OsString::from_vec(uri)
}

/// A connection, whatever tables the file has.
pub(super) fn connection(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(2))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.execute_batch(schema::CONNECTION)?;
    let pages = (MOST_BYTES - LOG_BYTES) / 4096;
    connection.query_row(&format!("PRAGMA max_page_count = {pages}"), (), |_| Ok(()))?;
    Ok(connection)
}

/// Whether it has these tables, by name and SQL, and nothing else that could run SQL: a view or a trigger.
pub(super) fn has_tables(connection: &Connection, tables: &[(&str, &str)]) -> rusqlite::Result<bool> {
    let mut is_ours =
        connection.prepare("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ? AND sql = ?")?;
    for table in tables {
        if !is_ours.exists(*table)? {
            return Ok(false);
        }
    }
    let foreign = "SELECT 1 FROM sqlite_schema WHERE type NOT IN ('table', 'index')";
    Ok(!connection.prepare(foreign)?.exists(())?)
}
