//! Deletes what exceeds the bounds: files that no program uses, then programs of the users who have most, each user's lightest first. So no user's
//! programs push out those of others.

use std::collections::{BTreeMap, BTreeSet};

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
    /// The user who started it first.
    user: u32,
    /// Encoded size of its file set, and its share of the file rows.
    bytes: i64,
}

/// What is scarce.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scarce {
    Programs,
    Bytes,
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
    let mut gone = 0;
    let too_many = usize::try_from(count).unwrap_or(0).saturating_sub(MOST_PROGRAMS);
    if too_many > 0 {
        let first = in_order(programs(transaction, spared, clock)?, Scarce::Programs).into_iter();
        gone += remove(transaction, first.take(too_many))?;
    }
    if is_full {
        gone += shrink(transaction, in_order(programs(transaction, spared, clock)?, Scarce::Bytes))?;
    }
    Ok(gone)
}

/// Deletes the first of these until the size is below the bound.
fn shrink(transaction: &Transaction<'_>, programs: Vec<Light>) -> rusqlite::Result<usize> {
    let (mut gone, count) = (0, i64::try_from(programs.len()).unwrap_or(i64::MAX));
    let mut programs = programs.into_iter();
    while live_bytes(transaction)? > LIVE_BYTES {
        // the pages of a table are not full
        let share = live_bytes(transaction)? / count.max(1);
        let mut over = live_bytes(transaction)? - LIVE_BYTES;
        let enough = std::iter::from_fn(|| {
            (over > 0).then(|| programs.next()).flatten().inspect(|l| over -= l.bytes.max(share))
        });
        let removed = remove(transaction, enough)?;
        if removed == 0 {
            break;
        }
        gone += removed;
    }
    Ok(gone)
}

/// The programs in the order of their deletion: always the lightest one of the user who has most. With one user that is by ascending weight.
fn in_order(mut programs: Vec<Light>, scarce: Scarce) -> Vec<Light> {
    programs.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(b.key.cmp(&a.key)));
    let mut of_user = BTreeMap::<u32, i64>::new();
    let with_rank = programs.into_iter().map(|program| {
        let rank = of_user.entry(program.user).or_default();
        // What its user has down to this program: if that is more than another user has, it goes first.
        *rank += if scarce == Scarce::Programs { 1 } else { program.bytes.max(1) };
        (*rank, program)
    });
    let mut ranked: Vec<(i64, Light)> = with_rank.collect();
    ranked.sort_by(|(a, light), (b, other)| b.cmp(a).then(light.weight.total_cmp(&other.weight)));
    ranked.into_iter().map(|(_, program)| program).collect()
}

/// Deletes programs, and the files that only these use.
fn remove(transaction: &Transaction<'_>, programs: impl Iterator<Item = Light>) -> rusqlite::Result<usize> {
    let mut removed = 0;
    for Light { key, .. } in programs {
        transaction.prepare_cached("DELETE FROM touched WHERE program = ?")?.execute([key])?;
        transaction.prepare_cached("DELETE FROM account WHERE program = ?")?.execute([key])?;
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

/// The programs but one.
fn programs(transaction: &Transaction<'_>, spared: i64, clock: Clock) -> rusqlite::Result<Vec<Light>> {
    let mut select = transaction.prepare_cached(
        "SELECT weight, weight_s, key, user, files FROM program \
         LEFT JOIN touched ON touched.program = program.key WHERE key <> ?",
    )?;
    let mut found = Vec::new();
    let mut used_by = BTreeMap::<i64, i64>::new();
    let mut rows = select.query([spared])?;
    while let Some(row) = rows.next()? {
        let files = row.get_ref(4)?.as_blob().unwrap_or_default();
        let keys: Vec<i64> = encoding::decode(files).into_iter().map(|entry| entry.file).collect();
        keys.iter().for_each(|key| *used_by.entry(*key).or_default() += 1);
        let weight = aged(row.get(0)?, row.get(1)?, clock.own_s);
        let bytes = i64::try_from(files.len()).unwrap_or(i64::MAX);
        found.push((Light { weight, key: row.get(2)?, user: row.get(3)?, bytes }, keys));
    }
    let sizes = file_bytes(transaction)?;
    let share = |key: &i64| sizes.get(key).unwrap_or(&0) / used_by.get(key).unwrap_or(&1);
    let with_rows = |(light, keys): (Light, Vec<i64>)| {
        let rows: i64 = keys.iter().map(share).sum();
        Light { bytes: light.bytes.saturating_add(rows), ..light }
    };
    Ok(found.into_iter().map(with_rows).collect())
}

/// The bytes of each file's row, with its part of the index.
fn file_bytes(transaction: &Transaction<'_>) -> rusqlite::Result<BTreeMap<i64, i64>> {
    /// The numbers of a row and its entry in the index.
    const NUMBERS: i64 = 64;
    let mut select = transaction.prepare_cached("SELECT key, length(path) FROM file")?;
    let rows = select.query_map((), |row| Ok((row.get(0)?, row.get::<_, i64>(1)? + NUMBERS)))?;
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(programs: &[(u32, f64, i64)], scarce: Scarce) -> Vec<i64> {
        let light = |(key, (user, weight, bytes)): (usize, &(u32, f64, i64))| Light {
            weight: *weight,
            key: key as i64,
            user: *user,
            bytes: *bytes,
        };
        let programs = programs.iter().enumerate().map(light).collect();
        in_order(programs, scarce).iter().map(|program| program.key).collect()
    }

    #[test]
    fn one_users_programs_go_by_weight() {
        let programs = [(7, 3.0, 1), (7, 1.0, 900), (7, 2.0, 1)];
        assert_eq!(keys(&programs, Scarce::Programs), [1, 2, 0]);
        assert_eq!(keys(&programs, Scarce::Bytes), [1, 2, 0]);
    }

    #[test]
    fn the_user_who_has_most_loses_first() {
        let (many, few) = ((8, 99.0, 10), (7, 1.0, 10));
        assert_eq!(keys(&[many, many, many, few], Scarce::Programs)[..2], [0, 1], "not the lightest of all");
        let large = (8, 99.0, 1000);
        assert_eq!(keys(&[large, few, few, few], Scarce::Bytes)[0], 0);
        assert_eq!(keys(&[large, few, few, few], Scarce::Programs)[0], 1);
    }
}
