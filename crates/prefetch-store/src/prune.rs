//! Deletes what exceeds the bounds: files that no program uses, then the programs with the least weight.

use std::collections::BTreeSet;

use rusqlite::Transaction;

use super::age::{Clock, aged};
use super::{MOST_BYTES, MOST_PROGRAMS, encoding};

/// Above this size, programs are deleted ...
const MOST_LIVE_BYTES: i64 = (MOST_BYTES as i64) / 16 * 13;
/// ... until the size is below this, so that pruning stays rare.
const LIVE_BYTES: i64 = MOST_BYTES as i64 / 32 * 25;
/// Unused files are deleted every this many learned launches.
const SWEEP_EVERY: i64 = 64;

/// A program that may be deleted.
struct Light {
    weight: f64,
    key: i64,
    /// Encoded size of its file set, without the file rows.
    bytes: i64,
}

/// Enforces the bounds, sparing the program with the key `spared`, which was just learned. Returns the number of deleted programs.
pub(super) fn prune(transaction: &Transaction<'_>, spared: i64, clock: Clock) -> rusqlite::Result<usize> {
    let (learned, count): (i64, i64) =
        transaction.query_row("SELECT sum(learned), count(*) FROM program", (), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let is_full = live_bytes(transaction)? > MOST_LIVE_BYTES;
    if is_full || learned % SWEEP_EVERY == 0 {
        sweep(transaction)?;
    }
    let too_many = usize::try_from(count).unwrap_or(0).saturating_sub(MOST_PROGRAMS);
    if too_many == 0 && !is_full {
        return Ok(0);
    }
    let mut light = lightest(transaction, spared, clock)?.into_iter();
    let mut gone = remove(transaction, light.by_ref().take(too_many))?;
    while is_full && live_bytes(transaction)? > LIVE_BYTES {
        // a program's file rows add to this, but it may share them
        let share = live_bytes(transaction)? / count.max(1);
        let mut over = live_bytes(transaction)? - LIVE_BYTES;
        let enough = std::iter::from_fn(|| {
            (over > 0).then(|| light.next()).flatten().inspect(|l| over -= l.bytes.max(share))
        });
        let removed = remove(transaction, enough)?;
        if removed == 0 {
            break;
        }
        gone += removed;
    }
    Ok(gone)
}

/// Deletes programs, and the files that only these use.
fn remove(transaction: &Transaction<'_>, programs: impl Iterator<Item = Light>) -> rusqlite::Result<usize> {
    let mut removed = 0;
    for Light { key, .. } in programs {
        transaction.prepare_cached("DELETE FROM touched WHERE program = ?")?.execute([key])?;
        transaction.prepare_cached("DELETE FROM program WHERE key = ?")?.execute([key])?;
        removed += 1;
    }
    if removed > 0 {
        sweep(transaction)?;
    }
    Ok(removed)
}

/// Deletes files that no program uses.
pub(super) fn sweep(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut touched = BTreeSet::new();
    let mut sets = transaction.prepare_cached("SELECT files FROM touched")?;
    let mut sets = sets.query(())?;
    while let Some(row) = sets.next()? {
        let set = encoding::decode(row.get_ref(0)?.as_blob().unwrap_or_default());
        touched.extend(set.into_iter().map(|entry| entry.file));
    }
    let mut files = transaction.prepare_cached("SELECT key FROM file")?;
    let keys = files.query_map((), |row| row.get::<_, i64>(0))?.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut delete = transaction.prepare_cached("DELETE FROM file WHERE key = ?")?;
    keys.iter().filter(|key| !touched.contains(key)).try_for_each(|key| delete.execute([key]).map(|_| ()))
}

/// Bytes of the pages in use.
fn live_bytes(transaction: &Transaction<'_>) -> rusqlite::Result<i64> {
    let number =
        |name: &str| transaction.query_row(&format!("PRAGMA {name}"), (), |row| row.get::<_, i64>(0));
    Ok((number("page_count")? - number("freelist_count")?) * number("page_size")?)
}

/// The programs by ascending weight.
fn lightest(transaction: &Transaction<'_>, spared: i64, clock: Clock) -> rusqlite::Result<Vec<Light>> {
    let mut select = transaction.prepare_cached(
        "SELECT weight, weight_s, key, coalesce(length(files), 0) FROM program \
         LEFT JOIN touched ON touched.program = program.key WHERE key <> ?",
    )?;
    let light = select.query_map([spared], |row| {
        Ok(Light {
            weight: aged(row.get(0)?, row.get(1)?, clock.own_s),
            key: row.get(2)?,
            bytes: row.get(3)?,
        })
    })?;
    let mut light = light.collect::<rusqlite::Result<Vec<_>>>()?;
    light.sort_by(|a, b| a.weight.total_cmp(&b.weight).then(a.key.cmp(&b.key)));
    Ok(light)
}
