//! Connections to a store's file, and the check of its tables.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::{MOST_BYTES, schema};

/// Space reserved for the log.
const LOG_BYTES: u64 = 1 << 20;

/// A connection that only reads, where none that could write can be made: on a read-only file system, and on a full disk, which has no room for the log's
/// index (`-shm`).
///
/// Whoever has the store open has its log and the index beside it. With an index that is there already, SQLite follows such a process, and
/// without one reads the log into memory ("Read-Only WAL-Mode Databases" in SQLite's documentation). If the log is empty or there is no index, nobody
/// has the store open, and nobody can open it to write before there is room: then the file alone counts, and does not change while it is read
/// (`immutable`, "Uniform Resource Identifiers" there).
pub(super) fn reader(path: &Path) -> rusqlite::Result<Connection> {
    let has_log = std::fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0);
    let how = if has_log && beside(path, "-shm").exists() { "mode=ro&readonly_shm=1" } else { "immutable=1" };
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri(path, how), flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.execute_batch(schema::READER)?;
    Ok(connection)
}

/// `FILE-wal` and similar.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn uri(path: &Path, how: &str) -> OsString {
    let mut uri = b"file:".to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'%' | b'?' | b'#' => uri.extend(format!("%{byte:02x}").bytes()),
            byte => uri.push(*byte),
        }
    }
    uri.push(b'?');
    uri.extend(how.bytes());
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
