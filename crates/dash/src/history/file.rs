//! The history in an SQLite file, 0600, for its user only.
//!
//! One table, `point(level, at_s, ...)`, a column for each of [`SERIES`]: level 1 is the hour, 2 the day. The
//! transaction that adds points deletes those older than their span; the file reuses its pages and has at most [`MOST_BYTES`]. There is no
//! fsync: a power cut may cost the last minutes, or the file, which is then set aside.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Row, Transaction, params_from_iter};
use rustix::fs::{FlockOperation, flock};

use super::series::{SERIES, Values};
use super::set_aside::{SetAside, set_aside};
use super::thin::{History, Point, SPANS};
use crate::error::{Error, Result};

/// `application_id` of the file: "ekeh".
pub const APPLICATION_ID: i64 = 0x656b_6568;
/// `user_version` of the file: the schema below.
pub const SCHEMA: i64 = 1;
/// The most that the file may have: 2 MiB. All its points take about 270 KiB.
pub const MOST_BYTES: u64 = 2 << 20;
const PAGE_BYTES: u64 = 4096;

/// The open file, which no other `eke dash` can write.
#[derive(Debug)]
pub struct HistoryFile {
    path: PathBuf,
    // before the lock: closing any descriptor of the file releases SQLite's locks
    connection: Connection,
    _lock: File,
}

/// The result of [`open`].
#[derive(Debug)]
pub struct Opened {
    /// The file.
    pub file: HistoryFile,
    /// Its history.
    pub history: History,
    /// A broken file that was set aside, for a message.
    pub set_aside: Option<SetAside>,
}

/// Opens or makes the file. A broken file, or one of another program, is set aside.
///
/// # Errors
/// [`Error::Taken`], [`Error::Newer`], or the error of the file system or of SQLite.
pub fn open(path: &Path, now_s: u64) -> Result<Opened> {
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(Error::file("make the directory", dir))?;
    }
    match load(path, now_s) {
        Ok((file, history)) => Ok(Opened { file, history, set_aside: None }),
        Err(Error::Foreign { why, .. }) => {
            let set_aside = set_aside(path, why)?;
            let (file, history) = load(path, now_s)?;
            Ok(Opened { file, history, set_aside: Some(set_aside) })
        }
        Err(e) => Err(e),
    }
}

fn load(path: &Path, now_s: u64) -> Result<(HistoryFile, History)> {
    let lock = lock(path)?;
    let file = HistoryFile { path: path.to_owned(), connection: connect(path)?, _lock: lock };
    let history = file.read(now_s).map_err(|e| damaged(path, e))?;
    Ok((file, history))
}

/// Makes the file if it does not exist, and locks it for this process.
fn lock(path: &Path) -> Result<File> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc_nofollow())
        .open(path);
    let file = opened.map_err(Error::file("open", path))?;
    if !file.metadata().map_err(Error::file("read the type of", path))?.is_file() {
        let source = io::Error::other("it is not a regular file");
        return Err(Error::File { what: "use", path: path.to_owned(), source });
    }
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Taken(path.to_owned())),
        Err(e) => Err(Error::file("lock", path)(e.into())),
    }
}

/// Where a link stands, something else is meant to be changed.
fn libc_nofollow() -> i32 {
    i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0)
}

fn connect(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(Error::store(path))?;
    set_up(&connection).map_err(|e| damaged(path, e))?;
    let number = |name: &str| connection.query_row(&format!("PRAGMA {name}"), (), |row| row.get::<_, i64>(0));
    let (id, version) = (
        number("application_id").map_err(|e| damaged(path, e))?,
        number("user_version").map_err(|e| damaged(path, e))?,
    );
    let is_empty = connection.query_row("SELECT count(*) = 0 FROM sqlite_schema", (), |row| row.get(0));
    match (is_empty.map_err(|e| damaged(path, e))?, id, version) {
        (true, 0, 0) => connection.execute_batch(&schema()).map_err(Error::store(path))?,
        (_, APPLICATION_ID, version) if version > SCHEMA => {
            return Err(Error::Newer { path: path.to_owned(), version });
        }
        (false, APPLICATION_ID, SCHEMA) => check(&connection, path)?,
        _ => return Err(foreign(path, "it is an SQLite file of another program")),
    }
    Ok(connection)
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_secs(2))?;
    connection.execute_batch(&format!(
        "PRAGMA page_size = {PAGE_BYTES}; PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF; \
         PRAGMA cache_size = -256; PRAGMA trusted_schema = OFF; PRAGMA max_page_count = {};",
        MOST_BYTES / PAGE_BYTES
    ))
}

/// Is it whole, and has it our table? A column that an older eke did not have is added.
fn check(connection: &Connection, path: &Path) -> Result<()> {
    let whole = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get::<_, String>(0));
    match whole.map_err(|e| damaged(path, e))?.as_str() {
        "ok" => {}
        why => return Err(foreign(path, why.replace('\n', " "))),
    }
    let columns = |connection: &Connection| -> rusqlite::Result<Vec<String>> {
        connection
            .prepare("SELECT name FROM pragma_table_info('point')")?
            .query_map((), |r| r.get(0))?
            .collect()
    };
    let columns = columns(connection).map_err(|e| damaged(path, e))?;
    if !columns.iter().take(2).eq(["level", "at_s"]) {
        return Err(foreign(path, "its table is not that of a history"));
    }
    for series in SERIES.iter().filter(|s| !columns.iter().any(|c| c == s.key)) {
        let add = format!("ALTER TABLE point ADD COLUMN {} REAL", series.key);
        connection.execute_batch(&add).map_err(Error::store(path))?;
    }
    Ok(())
}

fn foreign(path: &Path, why: impl Into<String>) -> Error {
    Error::Foreign { path: path.to_owned(), why: why.into() }
}

/// True if SQLite reports a damaged or foreign file, not a failure of the machine.
fn damaged(path: &Path, error: rusqlite::Error) -> Error {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    match error.sqlite_error_code() {
        Some(NotADatabase) => foreign(path, "it is not an SQLite file"),
        Some(DatabaseCorrupt) => foreign(path, "it is damaged"),
        _ => match error {
            rusqlite::Error::SqliteFailure(..) => Error::store(path)(error),
            // a row, a type or a table that ours does not have
            other => foreign(path, other.to_string()),
        },
    }
}

fn schema() -> String {
    let columns: Vec<String> = SERIES.iter().map(|s| format!("{} REAL", s.key)).collect();
    format!(
        "BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA};\n\
         CREATE TABLE point (level INTEGER NOT NULL, at_s INTEGER NOT NULL, {}, PRIMARY KEY (level, at_s)) WITHOUT ROWID;\n\
         COMMIT;",
        columns.join(", ")
    )
}

fn keys() -> String {
    SERIES.map(|s| s.key).join(", ")
}

impl HistoryFile {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes what is new and deletes what is too old, or in the future of a clock that was set back.
    ///
    /// # Errors
    /// SQLite's error, usually no space. Nothing is lost by it: the next time tries again.
    pub fn save(&mut self, history: &mut History, now_s: u64) -> Result<()> {
        let written = self.connection.transaction().and_then(|transaction| {
            for (level, span) in SPANS.iter().enumerate().filter(|(_, span)| span.kept) {
                let old = (level as i64, stored(now_s.saturating_sub(span.keep_s)), stored(now_s));
                transaction.execute("DELETE FROM point WHERE level = ? AND (at_s < ? OR at_s > ?)", old)?;
                insert(&transaction, level as i64, history)?;
            }
            transaction.commit()
        });
        written.map_err(Error::store(&self.path))?;
        history.saved();
        Ok(())
    }

    fn read(&self, now_s: u64) -> rusqlite::Result<History> {
        let mut history = History::default();
        for (level, span) in SPANS.iter().enumerate().filter(|(_, span)| span.kept) {
            let from = stored(now_s.saturating_sub(span.keep_s));
            let select = format!(
                "SELECT at_s, {} FROM point WHERE level = ? AND at_s BETWEEN ? AND ? ORDER BY at_s LIMIT ?",
                keys()
            );
            let most = stored(span.keep_s / span.step_s + 1);
            let mut statement = self.connection.prepare(&select)?;
            let points = statement.query_map((level as i64, from, stored(now_s), most), point)?;
            let mut points = points.collect::<rusqlite::Result<Vec<_>>>()?;
            // SQLite reads them in the order of an index, which a damaged file may have wrong
            points.sort_by_key(|point| point.at_s);
            history.restore(level, points);
        }
        Ok(history)
    }
}

fn insert(transaction: &Transaction<'_>, level: i64, history: &History) -> rusqlite::Result<()> {
    let places = vec!["?"; SERIES.len()].join(", ");
    let insert =
        format!("INSERT OR REPLACE INTO point (level, at_s, {}) VALUES ({level}, ?, {places})", keys());
    let mut statement = transaction.prepare_cached(&insert)?;
    for point in history.unsaved(usize::try_from(level).unwrap_or(0)) {
        let at = std::iter::once(Some(point.at_s as f64));
        statement.execute(params_from_iter(at.chain(point.values)))?;
    }
    Ok(())
}

fn point(row: &Row<'_>) -> rusqlite::Result<Point> {
    let mut values: Values = [None; SERIES.len()];
    for (i, value) in values.iter_mut().enumerate() {
        *value = row.get(i + 1)?;
    }
    Ok(Point { at_s: u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0), values })
}

/// SQLite's integers have 63 bits.
fn stored(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
