//! Finds, creates and checks the store, and sets a broken one aside.

use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use eke_model::date::date;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::{StatVfsMountFlags, statvfs};

use super::connect::{beside, connection, has_tables, reader};
use super::error::{self, Error, Result};
use super::schema::{self, APPLICATION_ID, NAME, SCHEMA};
use super::upgrade::upgrade;
use super::{Access, OpenedStore, ProgramStore};

/// The most broken files that are kept.
const MOST_BROKEN: usize = 3;
/// The boot number of a store opened by another process.
const NO_BOOT: i64 = -1;

/// A broken file and its new name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Its former path.
    pub path: PathBuf,
    /// Its path now.
    pub now: PathBuf,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for SetAside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, now) = (self.path.display(), self.now.display());
        write!(f, "{path} was broken: {}; eke moved it to {now} and begins a new one", self.why)
    }
}

pub(super) fn open(dir: &Path, boot: &str, now_s: i64) -> Result<OpenedStore> {
    make_directory(dir)?;
    let path = dir.join(NAME);
    let (connection, set_aside) = match usable(&path) {
        Ok(connection) => (connection, None),
        Err(Error::Nothing(_)) => (make(&path)?, None),
        Err(Error::Damaged { why, .. }) => {
            let set_aside = set_aside(&path, why, now_s)?;
            (make(&path)?, Some(set_aside))
        }
        Err(e) => return Err(e),
    };
    let mut store = ProgramStore { path, boot: 0, connection };
    store.begin_boot(boot, now_s)?;
    Ok(OpenedStore { store, set_aside })
}

pub(super) fn existing(dir: &Path, access: Access) -> Result<ProgramStore> {
    let path = dir.join(NAME);
    check(&path)?;
    let connection = match access {
        Access::Read => for_reading(&path)?,
        Access::Write => connect(&path)?,
    };
    Ok(ProgramStore { path, boot: NO_BOOT, connection })
}

/// On a full disk too, and on a read-only file system.
fn for_reading(path: &Path) -> Result<Connection> {
    let connected = if is_read_only(path) { Err(Error::ReadOnly(path.to_owned())) } else { connect(path) };
    let connection = match connected {
        Err(Error::Full(_) | Error::ReadOnly(_)) => ours(path, reader(path).map_err(error::of(path))?)?,
        connected => connected?,
    };
    connection.execute_batch("PRAGMA query_only = ON").map_err(error::of(path))?;
    Ok(connection)
}

/// Makes `to`, a new store, of the one at `from`, which cannot be written. An earlier schema stays: opening the copy brings it to this one.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    let version = schema_of(from)?;
    if version > SCHEMA {
        return Err(Error::Newer { path: from.to_owned(), version });
    }
    make_directory(to.parent().unwrap_or(to))?;
    // SQLite would make it readable for all.
    make_empty(to)?;
    let text = text(to)?;
    let copied = reader(from).and_then(|source| source.execute("VACUUM INTO ?", [text]));
    let copied = copied.map_err(error::of(from));
    copied.map(drop).inspect_err(|_| {
        let _ = remove_all(to);
    })
}

/// A path in an SQL statement.
pub(super) fn text(path: &Path) -> Result<&str> {
    let not_text = || io::Error::new(io::ErrorKind::InvalidInput, "its path is not UTF-8");
    path.to_str().ok_or_else(|| error::file("copy", path)(not_text()))
}

/// Removes a store with its log.
pub(super) fn remove_all(path: &Path) -> Result<()> {
    ["-wal", "-shm", "-journal"].iter().try_for_each(|ending| remove(&beside(path, ending)))?;
    remove(path)
}

/// Size of the file and its log.
pub(super) fn bytes(path: &Path) -> u64 {
    let size = |path: &Path| std::fs::symlink_metadata(path).map_or(0, |m| m.len());
    size(path) + size(&beside(path, "-wal"))
}

/// Opens the store after checking every page.
fn usable(path: &Path) -> Result<Connection> {
    if [schema::WITHOUT_USER, schema::WITHOUT_ACCOUNTS].contains(&schema_of(path)?) {
        upgrade(path)?;
    }
    check(path)?;
    let mode = std::fs::metadata(path).map_err(error::file("read", path))?.mode();
    if mode & 0o777 != 0o600 {
        std::fs::set_permissions(path, Permissions::from_mode(0o600))
            .map_err(error::file("protect", path))?;
    }
    let connection = connect(path)?;
    let check = connection.query_row("PRAGMA quick_check(1)", (), |row| row.get::<_, String>(0));
    match check.map_err(error::of(path))?.as_str() {
        "ok" => Ok(connection),
        what => Err(Error::Damaged { path: path.to_owned(), why: what.replace('\n', " ") }),
    }
}

/// Whether this eke can use the file as it is.
fn check(path: &Path) -> Result<()> {
    let why = |version| format!("its schema is {version}, and this eke needs {SCHEMA}");
    match schema_of(path)? {
        version if version > SCHEMA => Err(Error::Newer { path: path.to_owned(), version }),
        SCHEMA => Ok(()),
        version => Err(Error::Damaged { path: path.to_owned(), why: why(version) }),
    }
}

/// The schema's version, after checking the first bytes and the length. "Database File Format" in SQLite's documentation describes the header.
fn schema_of(path: &Path) -> Result<i64> {
    let damaged = |why: &str| Err(Error::Damaged { path: path.to_owned(), why: why.to_owned() });
    let metadata = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Err(Error::Nothing(path.parent().unwrap_or(path).to_owned()));
        }
        Err(e) => return Err(error::file("read", path)(e)),
    };
    if !metadata.is_file() {
        return damaged("it is not a regular file");
    }
    let mut header = Vec::with_capacity(100);
    let read = File::open(path).and_then(|file| file.take(100).read_to_end(&mut header));
    read.map_err(error::file("open", path))?;
    if header.len() < 100 || !header.starts_with(b"SQLite format 3\0") {
        return damaged("it is not an SQLite file");
    }
    if number(&header, 68) != APPLICATION_ID {
        return damaged("it is an SQLite file of another program");
    }
    // pages that a full disk kept from being written back are in the log
    let has_log = std::fs::symlink_metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0);
    if !has_log && metadata.len() < u64::from(number(&header, 28)) * u64::from(page_bytes(&header)) {
        return damaged("it is cut short");
    }
    Ok(i64::from(number(&header, 60)))
}

fn number(header: &[u8], at: usize) -> u32 {
    header.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_be_bytes)
}

fn page_bytes(header: &[u8]) -> u32 {
    match number(header, 14) & 0xffff {
        1 => 65_536,
        bytes => bytes,
    }
}

/// Whether its file system is.
pub(super) fn is_read_only(path: &Path) -> bool {
    statvfs(path).is_ok_and(|file_system| file_system.f_flag.contains(StatVfsMountFlags::RDONLY))
}

fn connect(path: &Path) -> Result<Connection> {
    ours(path, connection(path).map_err(error::of(path))?)
}

/// A connection, if the file has the tables of this schema.
fn ours(path: &Path, connection: Connection) -> Result<Connection> {
    has_tables(&connection, &schema::TABLES).map_err(error::of(path))?.then_some(()).ok_or_else(|| {
        Error::Damaged { path: path.to_owned(), why: "its tables are not those of this schema".to_owned() }
    })?;
    Ok(connection)
}

fn make_directory(dir: &Path) -> Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(error::file("make", dir))
}

/// Creates the store under a temporary name and renames it, so that a killed process never leaves a store without tables.
fn make(path: &Path) -> Result<Connection> {
    let new = beside(path, ".new");
    for old in [new.clone(), beside(&new, "-journal"), beside(path, "-wal"), beside(path, "-shm")] {
        remove(&old)?;
    }
    let made = make_at(&new).and_then(|()| std::fs::rename(&new, path).map_err(error::file("rename", &new)));
    made.inspect_err(|_| {
        let _ = remove(&new).and_then(|()| remove(&beside(&new, "-journal")));
    })?;
    connect(path)
}

fn make_empty(path: &Path) -> Result<()> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    made.map(drop).map_err(error::file("make", path))
}

fn make_at(path: &Path) -> Result<()> {
    make_empty(path)?;
    let fill = || {
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?.execute_batch(&schema::script())
    };
    fill().map_err(error::of(path))
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(error::file("remove", path)(e)),
        _ => Ok(()),
    }
}

fn set_aside(path: &Path, why: String, now_s: i64) -> Result<SetAside> {
    let stem = beside(path, &format!(".broken-{}", date(now_s.max(0).unsigned_abs())));
    let is_free = |path: &PathBuf| std::fs::symlink_metadata(path).is_err();
    let more = (2..1000).map(|n| beside(&stem, &format!("-{n}")));
    let now = std::iter::once(stem.clone()).chain(more).find(is_free).unwrap_or(stem);
    remove_oldest(path)?;
    std::fs::rename(path, &now).map_err(error::file("rename", path))?;
    // the log belongs to the broken file, and the new one must not use it
    let _ = std::fs::rename(beside(path, "-wal"), beside(&now, "-wal"));
    Ok(SetAside { path: path.to_owned(), now, why })
}

/// Limits the broken files, so that a failing disk does not fill up with them.
fn remove_oldest(path: &Path) -> Result<()> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str())) else {
        return Ok(());
    };
    let prefix = format!("{name}.broken-");
    let entries = std::fs::read_dir(dir).map_err(error::file("list", dir))?.flatten();
    let mut broken: Vec<(io::Result<std::time::SystemTime>, PathBuf)> = entries
        .filter(|e| e.file_name().to_str().is_some_and(|n| n.starts_with(&prefix) && !n.ends_with("-wal")))
        .map(|e| (e.metadata().and_then(|m| m.modified()), e.path()))
        .collect();
    broken.sort_by(|a, b| a.0.as_ref().ok().cmp(&b.0.as_ref().ok()).then_with(|| a.1.cmp(&b.1)));
    let many = broken.len().saturating_sub(MOST_BROKEN - 1);
    for (_, old) in broken.into_iter().take(many) {
        remove(&beside(&old, "-wal"))?;
        remove(&old)?;
    }
    Ok(())
}
