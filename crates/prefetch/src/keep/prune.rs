//! What goes when there is too much: what was touched of files that are others now, then the programs with the least weight.

use rusqlite::Transaction;

use super::age::{Clock, aged};
use super::{MOST_BYTES, MOST_PROGRAMS};

/// Above this, programs go ...
const MOST_LIVE_BYTES: i64 = (MOST_BYTES as i64) / 16 * 13;
/// ... until there is less than this, so that it is not again at once.
const LIVE_BYTES: i64 = MOST_BYTES as i64 / 16 * 12;
/// Every so many learned launches what is void is swept out.
const SWEEP_EVERY: i64 = 64;

/// While programs go, every so many of them: their files go only then.
const SWEEP_AT: usize = 8;

/// Makes room, sparing the program with this key, which was learned just now. Gives how many programs went.
pub(super) fn prune(transaction: &Transaction<'_>, spared: i64, clock: Clock) -> rusqlite::Result<usize> {
    let learned: i64 = transaction.query_row("SELECT sum(learned) FROM program", (), |row| row.get(0))?;
    let count: i64 = transaction.query_row("SELECT count(*) FROM program", (), |row| row.get(0))?;
    let is_full = live_bytes(transaction)? > MOST_LIVE_BYTES;
    if is_full || learned % SWEEP_EVERY == 0 {
        sweep(transaction)?;
    }
    let too_many = usize::try_from(count).unwrap_or(0).saturating_sub(MOST_PROGRAMS);
    if too_many == 0 && !is_full {
        return Ok(0);
    }
    let mut gone = 0;
    for key in lightest(transaction, spared, clock)? {
        if gone >= too_many && (!is_full || live_bytes(transaction)? < LIVE_BYTES) {
            break;
        }
        transaction.prepare_cached("DELETE FROM touched WHERE program = ?")?.execute([key])?;
        transaction.prepare_cached("DELETE FROM program WHERE key = ?")?.execute([key])?;
        gone += 1;
        if is_full && gone % SWEEP_AT == 0 {
            sweep(transaction)?;
        }
    }
    sweep(transaction)?;
    Ok(gone)
}

/// What was touched of files that are others now, and files that nobody touches.
pub(super) fn sweep(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "DELETE FROM touched WHERE NOT EXISTS \
         (SELECT 1 FROM file WHERE file.key = touched.file AND file.version = touched.version); \
         DELETE FROM file WHERE key NOT IN (SELECT file FROM touched)",
    )
}

/// Bytes of pages that are in use.
fn live_bytes(transaction: &Transaction<'_>) -> rusqlite::Result<i64> {
    let number =
        |name: &str| transaction.query_row(&format!("PRAGMA {name}"), (), |row| row.get::<_, i64>(0));
    Ok((number("page_count")? - number("freelist_count")?) * number("page_size")?)
}

/// Keys of programs, the least weight first.
fn lightest(transaction: &Transaction<'_>, spared: i64, clock: Clock) -> rusqlite::Result<Vec<i64>> {
    let mut select =
        transaction.prepare_cached("SELECT key, weight, weight_s FROM program WHERE key <> ?")?;
    let weighed = select.query_map([spared], |row| {
        Ok((aged(row.get(1)?, row.get(2)?, clock.own_s), row.get::<_, i64>(0)?))
    })?;
    let mut weighed = weighed.collect::<rusqlite::Result<Vec<_>>>()?;
    weighed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    Ok(weighed.into_iter().map(|(_, key)| key).collect())
}
