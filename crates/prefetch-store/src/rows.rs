//! Converts rows of programs and files.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::ToSql;
use rusqlite::{Connection, OptionalExtension, Row, Transaction};
use twox_hash::XxHash3_64;

use super::accounts::{self, Accounts};
use super::age::{Clock, aged};
use super::changed;
use super::encoding::{self, FileEntry};
use super::record::{self, Record, UnlearnedLaunch};
use eke_prefetch_model::file_set::{FileSet, Kind, Stamp, Touched};
use eke_prefetch_model::launch::Launch;
use eke_prefetch_model::program::{Program, ProgramId};
use eke_prefetch_model::system::is_system;

/// The most bytes of a program's paths and pages. Users control what their programs touch.
const MOST_SET_BYTES: usize = 256 << 10;

/// The query for [`record_of`].
pub(super) const RECORD: &str = "SELECT exe, script, launches, learned, last_seen_s, took_ms, cold_bytes, coldest_ms, \
                                 coldest_bytes, weight, weight_s FROM program";
pub(super) fn record_of(row: &Row<'_>, clock: Clock) -> rusqlite::Result<Record> {
    let script: Option<Vec<u8>> = row.get(1)?;
    let millis = |at| row.get(at).map(|ms| Duration::from_millis(record::unsigned(ms)));
    let bytes = |at| row.get(at).map(record::unsigned);
    Ok(Record {
        program: Program {
            exe: path(&row.get::<_, Vec<u8>>(0)?),
            script: script.map(|script| path(&script)),
        },
        launches: row.get(2)?,
        learned: row.get(3)?,
        last_seen_s: row.get(4)?,
        took: millis(5)?,
        cold_bytes: bytes(6)?,
        coldest: (millis(7)?, bytes(8)?),
        weight: aged(row.get(9)?, row.get(10)?, clock.own_s),
    })
}

/// A program's file set, without files that have changed since, how many of these are of packages, and the accounts of its launches. Others change with
/// each start of some program, and are no reason to learn all programs again.
pub(super) fn set_of(
    connection: &Connection,
    id: ProgramId,
    boot: i64,
) -> rusqlite::Result<(FileSet, usize, Vec<u32>)> {
    let select = "SELECT files FROM touched WHERE program = (SELECT key FROM program WHERE id = ?)";
    let select = connection.prepare_cached(select)?.query_row([record::id_column(id)], |row| row.get(0));
    let encoded: Option<Vec<u8>> = select.optional()?;
    let mut file = connection.prepare_cached(
        "SELECT path, kind, dev, ino, size, mtime_ns, boot, version FROM file WHERE key = ?",
    )?;
    let accounts = accounts::of(connection, id)?;
    let (mut files, mut replaced) = (Vec::new(), 0);
    for (at, entry) in encoding::decode(&encoded.unwrap_or_default()).into_iter().enumerate() {
        let FileEntry { file: key, version, weight, pages, stale } = entry;
        let used_by = accounts.used_by(at);
        let found = file.query_row([key], |row| {
            let path = path(&row.get::<_, Vec<u8>>(0)?);
            let is_same = row.get::<_, i64>(7)? == record::signed(version);
            let (kind, stamp) = (kind(row.get(1)?), stamp(row, 2, boot)?);
            Ok((Touched { path, kind, stamp, pages, stale, weight, used_by }, is_same))
        });
        match found.optional()? {
            Some((touched, true)) => files.push(touched),
            Some((touched, false)) => replaced += usize::from(is_system(&touched.path)),
            None => {}
        }
    }
    Ok((FileSet { files }, replaced, accounts.users))
}

/// Reads the columns `dev, ino, size, mtime_ns, boot` from index `at`.
fn stamp(row: &Row<'_>, at: usize, boot: i64) -> rusqlite::Result<Stamp> {
    let is_of_this_boot = row.get::<_, i64>(at + 4)? == boot;
    Ok(Stamp {
        dev: if is_of_this_boot { record::of_bits(row.get(at)?) } else { 0 },
        ino: record::of_bits(row.get(at + 1)?),
        size: record::of_bits(row.get(at + 2)?),
        mtime_ns: row.get(at + 3)?,
    })
}

fn path(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}

fn kind(column: i64) -> Kind {
    match column {
        1 => Kind::Directory,
        2 => Kind::Device,
        _ => Kind::File,
    }
}

fn kind_column(kind: Kind) -> i64 {
    match kind {
        Kind::File => 0,
        Kind::Directory => 1,
        Kind::Device => 2,
    }
}

/// The index for finding files; paths may collide.
pub(super) fn hash(path: &Path) -> i64 {
    record::bits(XxHash3_64::oneshot(path.as_os_str().as_bytes()))
}

/// Advances the store's clock and stores it.
pub(super) fn tick(transaction: &Transaction<'_>, now_s: i64) -> rusqlite::Result<Clock> {
    let read = |name: &str| {
        transaction.query_row("SELECT value FROM meta WHERE name = ?", [name], |row| row.get(0)).optional()
    };
    let last = Clock {
        machine_s: read("machine_s")?.unwrap_or(now_s),
        before_s: read("before_s")?,
        own_s: read("own_s")?.unwrap_or(0),
    };
    let clock = last.at(now_s);
    put_meta(transaction, "machine_s", clock.machine_s)?;
    put_meta(transaction, "own_s", clock.own_s)?;
    match clock.before_s {
        Some(before_s) => put_meta(transaction, "before_s", before_s)?,
        None => {
            transaction.prepare_cached("DELETE FROM meta WHERE name = 'before_s'")?.execute(()).map(|_| ())?
        }
    }
    Ok(clock)
}

pub(super) fn put_meta(transaction: &Transaction<'_>, name: &str, value: impl ToSql) -> rusqlite::Result<()> {
    let insert = "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)";
    transaction.prepare_cached(insert)?.execute((name, value)).map(|_| ())
}

/// Counts a launch that was not learned.
pub(super) fn count(
    transaction: &Transaction<'_>,
    seen: &UnlearnedLaunch,
    clock: Clock,
) -> rusqlite::Result<()> {
    let id = record::id_column(seen.id);
    let Some(weight) = weight(transaction, id, clock)? else { return Ok(()) };
    let update =
        "UPDATE program SET launches = launches + 1, last_seen_s = ?, weight = ?, weight_s = ? WHERE id = ?";
    transaction.prepare_cached(update)?.execute((seen.at_s, weight + 1.0, clock.own_s, id)).map(|_| ())
}

/// A program's weight now.
fn weight(transaction: &Transaction<'_>, id: i64, clock: Clock) -> rusqlite::Result<Option<f64>> {
    let mut select = transaction.prepare_cached("SELECT weight, weight_s FROM program WHERE id = ?")?;
    select.query_row([id], |row| Ok(aged(row.get(0)?, row.get(1)?, clock.own_s))).optional()
}

/// Counts a learned launch; returns the program's key. A program stays its first starter's.
pub(super) fn put_program(
    transaction: &Transaction<'_>,
    launch: &Launch,
    clock: Clock,
) -> rusqlite::Result<i64> {
    let Launch { program, took, cold_bytes, .. } = launch;
    let id = record::id_column(program.id());
    let took_ms = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
    let weight = weight(transaction, id, clock)?.unwrap_or(0.0) + 1.0;
    let upsert = "INSERT INTO program (id, exe, script, user, launches, learned, last_seen_s, took_ms, cold_bytes, coldest_ms, \
         coldest_bytes, weight, weight_s) VALUES (?1, ?2, ?3, ?9, 1, 1, ?4, ?5, ?6, ?5, ?6, ?7, ?8) \
         ON CONFLICT (id) DO UPDATE SET launches = launches + 1, learned = learned + 1, last_seen_s = ?4, took_ms = ?5, \
         cold_bytes = ?6, coldest_ms = iif(?6 >= coldest_bytes, ?5, coldest_ms), \
         coldest_bytes = max(?6, coldest_bytes), weight = ?7, weight_s = ?8 RETURNING key";
    let script = program.script.as_ref().map(|script| script.as_os_str().as_bytes());
    let values = (
        id,
        program.exe.as_os_str().as_bytes(),
        script,
        launch.began_ns.div_euclid(1_000_000_000),
        took_ms,
        record::signed(*cold_bytes),
        weight,
        clock.own_s,
        launch.uid,
    );
    transaction.prepare_cached(upsert)?.query_row(values, |row| row.get(0))
}

/// Replaces the program's file set; returns the number of files that exceeded the bound.
pub(super) fn put_set(
    transaction: &Transaction<'_>,
    program: i64,
    launch: &Launch,
    set: &FileSet,
    boot: i64,
) -> rusqlite::Result<usize> {
    let seen_now: HashSet<(&OsStr, Kind)> =
        launch.set.files.iter().map(|f| (f.path.as_os_str(), f.kind)).collect();
    let mut bytes = Vec::new();
    let mut before = 0;
    let mut accounts = Accounts { used_by: Vec::new(), ..accounts::of(transaction, launch.program.id())? };
    let kept = heaviest(&set.files);
    let left_out = set.files.len() - kept.len();
    for file in kept {
        let is_now = seen_now.contains(&(file.path.as_os_str(), file.kind));
        if let Some((key, version)) = put_file(transaction, file, is_now, boot)? {
            let version = record::unsigned(version);
            let (pages, stale) = (file.pages.clone(), file.stale.clone());
            let entry = FileEntry { file: key, version, weight: file.weight, pages, stale };
            encoding::encode(&mut bytes, before, &entry);
            accounts.used_by.push(file.used_by);
            before = key;
        }
    }
    let insert = "INSERT OR REPLACE INTO touched (program, files) VALUES (?, ?)";
    transaction.prepare_cached(insert)?.execute((program, bytes))?;
    accounts.add(launch.uid);
    accounts::put_row(transaction, program, &accounts)?;
    Ok(left_out)
}

/// The files that have room, in their order: without the lightest ones.
fn heaviest(files: &[Touched]) -> Vec<&Touched> {
    let mut at: Vec<usize> = (0..files.len()).collect();
    // A stable sort: of files of one weight the first ones stay.
    at.sort_by(|a, b| files[*b].weight.total_cmp(&files[*a].weight));
    let mut room = MOST_SET_BYTES;
    at.retain(|at| {
        let left = room.checked_sub(encoding::most_bytes(&files[*at]) + accounts::bytes(files[*at].used_by));
        left.inspect(|left| room = *left).is_some()
    });
    at.sort_unstable();
    at.into_iter().map(|at| &files[at]).collect()
}

/// The file's key and version. `None` if another program has seen the file replaced: this stamp is old, unless this launch saw it (`is_now`).
fn put_file(
    transaction: &Transaction<'_>,
    file: &Touched,
    is_now: bool,
    boot: i64,
) -> rusqlite::Result<Option<(i64, i64)>> {
    let name = (hash(&file.path), file.path.as_os_str().as_bytes(), kind_column(file.kind));
    let found = transaction
        .prepare_cached(
            "SELECT key, version, dev, ino, size, mtime_ns, boot FROM file WHERE hash = ? AND path = ? AND kind = ?",
        )?
        .query_row(name, |row| Ok((row.get(0)?, row.get(1)?, stamp(row, 2, boot)?)))
        .optional()?;
    match found {
        None => insert_file(transaction, file, boot).map(|key| Some((key, 0))),
        Some((key, version, known)) if known == file.stamp => Ok(Some((key, version))),
        Some((key, version, known)) => {
            let is_other = changed(&file.path, file.kind, &known, &file.stamp);
            if is_other && !is_now {
                return Ok(None);
            }
            let version = version + i64::from(is_other);
            if is_other || file.stamp.dev != 0 {
                update_file(transaction, &file.stamp, boot, version, key)?;
            }
            Ok(Some((key, version)))
        }
    }
}

fn insert_file(transaction: &Transaction<'_>, file: &Touched, boot: i64) -> rusqlite::Result<i64> {
    let insert = "INSERT INTO file (hash, path, kind, dev, ino, size, mtime_ns, boot, version) \
                  VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)";
    let (hash, path, kind) = (hash(&file.path), file.path.as_os_str().as_bytes(), kind_column(file.kind));
    let Stamp { dev, ino, size, mtime_ns } = file.stamp;
    let (dev, ino, size) = (record::bits(dev), record::bits(ino), record::bits(size));
    transaction.prepare_cached(insert)?.execute((hash, path, kind, dev, ino, size, mtime_ns, boot))?;
    Ok(transaction.last_insert_rowid())
}

fn update_file(
    transaction: &Transaction<'_>,
    stamp: &Stamp,
    boot: i64,
    version: i64,
    key: i64,
) -> rusqlite::Result<()> {
    let update =
        "UPDATE file SET dev = ?, ino = ?, size = ?, mtime_ns = ?, boot = ?, version = ? WHERE key = ?";
    let Stamp { dev, ino, size, mtime_ns } = *stamp;
    let (dev, ino, size) = (record::bits(dev), record::bits(ino), record::bits(size));
    let values = (dev, ino, size, mtime_ns, boot, version, key);
    transaction.prepare_cached(update)?.execute(values).map(|_| ())
}

/// Deletes everything about a program; returns whether anything existed.
pub(super) fn forget(transaction: &Transaction<'_>, id: i64) -> rusqlite::Result<bool> {
    for table in ["touched", "account"] {
        let of_key = format!("DELETE FROM {table} WHERE program = (SELECT key FROM program WHERE id = ?)");
        transaction.execute(&of_key, [id])?;
    }
    let known = transaction.execute("DELETE FROM program WHERE id = ?", [id])?;
    let events = transaction.execute("DELETE FROM event WHERE program = ?", [id])?;
    let decisions = transaction.execute("DELETE FROM decision WHERE program = ?", [id])?;
    super::missing::forget(transaction, id)?;
    super::prune::sweep(transaction)?;
    Ok(known + events + decisions > 0)
}
