//! Events, decisions and predictor states, all bounded.

use rusqlite::{Row, Transaction};
use serde::{Deserialize, Serialize};

use super::error::{self, Error, Result};
use super::{ProgramStore, record, rows};
use eke_prefetch_model::choose::{ChoiceOutcome, Limit, Occasion};
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_model::user_event::{Event, UserEvent};

/// The newest events that are kept: sessions, starts and stops.
pub const MOST_EVENTS: usize = 50_000;
/// The newest decisions that are kept.
pub const MOST_DECISIONS: usize = 4_000;
/// The most bytes of all states together.
pub const MOST_STATE_BYTES: usize = 1 << 20;

/// The row of `meta` with the last decision before this boot: no time tells, because the clock may not be set at its begin.
const BEFORE_BOOT: &str = "decision_before";

/// Identifies a stored decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DecisionId(i64);

/// The outcome for a program at some time, with its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Seconds since 1970.
    pub at_s: i64,
    /// The occasion of the choice.
    pub occasion: Occasion,
    /// The program.
    pub program: ProgramId,
    /// The predicted probability of its start.
    pub probability: f64,
    /// The outcome.
    pub outcome: ChoiceOutcome,
    /// Why the budget was zero, if it was.
    pub limit: Option<Limit>,
    /// The use of the read pages; `None` until known.
    pub usage: Option<PageUsage>,
}

/// How much of a read was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageUsage {
    /// Bytes that the program used.
    pub used_bytes: u64,
    /// Bytes that nobody used.
    pub wasted_bytes: u64,
}

/// The part of a decision that is stored as JSON.
#[derive(Serialize, Deserialize)]
struct StoredOutcome {
    #[serde(flatten)]
    outcome: ChoiceOutcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget: Option<Limit>,
}

impl ProgramStore {
    /// Stores events in order. Times have milliseconds.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn add_events(&mut self, events: &[UserEvent]) -> Result<()> {
        self.write(|transaction| {
            let mut insert = transaction
                .prepare_cached("INSERT INTO event (at_ms, user, kind, program) VALUES (?, ?, ?, ?)")?;
            for event in events {
                let (kind, program) = event_columns(event.event);
                insert.execute(((event.at_s * 1000.0) as i64, event.user, kind, program))?;
            }
            last(transaction, "event", MOST_EVENTS)
        })
    }

    /// The events, oldest first.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn events(&self) -> Result<Vec<UserEvent>> {
        self.all("SELECT at_ms, user, kind, program FROM event ORDER BY key", (), |row| {
            let event = event(row.get(2)?, row.get(3)?);
            Ok(UserEvent { at_s: row.get::<_, i64>(0)? as f64 / 1000.0, user: row.get(1)?, event })
        })
    }

    /// Stores decisions.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn add_decisions(&mut self, decisions: &[Decision]) -> Result<Vec<DecisionId>> {
        self.write(|transaction| {
            let ids = decisions.iter().map(|decision| insert(transaction, decision));
            let ids = ids.collect::<rusqlite::Result<Vec<_>>>()?;
            last(transaction, "decision", MOST_DECISIONS)?;
            Ok(ids)
        })
    }

    /// Adds the use of a decision's pages; does nothing if the decision is no longer stored.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn add_usage(&mut self, id: DecisionId, usage: PageUsage) -> Result<()> {
        self.write(|transaction| {
            let values = (record::signed(usage.used_bytes), record::signed(usage.wasted_bytes), id.0);
            let update = "UPDATE decision SET used_bytes = ?, wasted_bytes = ? WHERE key = ?";
            transaction.execute(update, values).map(|_| ())
        })
    }

    /// The newest decisions of one program or of all, at most `most`, newest first.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn decisions(&self, of: Option<ProgramId>, most: usize) -> Result<Vec<Decision>> {
        let sql = "SELECT at_s, occasion, program, probability, outcome, used_bytes, wasted_bytes FROM decision \
                   WHERE ?1 IS NULL OR program = ?1 ORDER BY key DESC LIMIT ?2";
        let found = self.all(sql, (of.map(record::id_column), most as i64), decision)?;
        Ok(found.into_iter().flatten().collect())
    }

    /// How many of the newest decisions are of the boot with this id; 0 if the store was not open in it.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn decisions_of_boot(&self, boot: &str) -> Result<usize> {
        let count = "SELECT count(*) FROM decision WHERE key > (SELECT value FROM meta WHERE name = ?) \
                     AND EXISTS (SELECT 1 FROM meta WHERE name = 'boot_id' AND value = ?)";
        let found = self.all(count, (BEFORE_BOOT, boot), |row| row.get::<_, i64>(0))?;
        Ok(found.first().map_or(0, |count| usize::try_from(*count).unwrap_or(0)))
    }

    /// A predictor's state of this name and version, if stored. States of other versions are ignored.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn state(&self, name: &str, version: u32) -> Result<Option<Vec<u8>>> {
        let found =
            self.all("SELECT bytes FROM state WHERE name = ? AND version = ?", (name, version), |row| {
                row.get(0)
            })?;
        Ok(found.into_iter().next())
    }

    /// The most bytes that a state of this name may have beside the others.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn state_room(&self, name: &str) -> Result<usize> {
        let others = "SELECT coalesce(sum(length(bytes)), 0) FROM state WHERE name <> ?";
        let others: i64 =
            self.connection.query_row(others, [name], |row| row.get(0)).map_err(error::of(&self.path))?;
        Ok(MOST_STATE_BYTES.saturating_sub(usize::try_from(others).unwrap_or(0)))
    }

    /// Stores a predictor's state, replacing an older one of this name.
    ///
    /// # Errors
    /// [`Error::TooLarge`] if all states together would have more than 1 MiB; SQLite's answer.
    pub fn put_state(&mut self, name: &str, version: u32, bytes: &[u8]) -> Result<()> {
        let most = self.state_room(name)?;
        if bytes.len() > most {
            let what = format!("the state \"{name}\"");
            return Err(Error::TooLarge { path: self.path.clone(), what, bytes: bytes.len(), most });
        }
        self.write(|transaction| {
            let insert = "INSERT OR REPLACE INTO state (name, version, bytes) VALUES (?, ?, ?)";
            transaction.execute(insert, (name, version, bytes)).map(|_| ())
        })
    }
}

/// A boot begins: later decisions are its.
pub(super) fn mark_boot(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let last: i64 =
        transaction.query_row("SELECT coalesce(max(key), 0) FROM decision", (), |row| row.get(0))?;
    rows::put_meta(transaction, BEFORE_BOOT, last)
}

/// Keeps the newest `most` rows.
fn last(transaction: &Transaction<'_>, table: &str, most: usize) -> rusqlite::Result<()> {
    let delete = format!("DELETE FROM {table} WHERE key <= (SELECT max(key) FROM {table}) - ?");
    transaction.prepare_cached(&delete)?.execute([most as i64]).map(|_| ())
}

fn event_columns(event: Event) -> (i64, Option<i64>) {
    match event {
        Event::Session => (0, None),
        Event::Start(program) => (1, Some(record::id_column(program))),
        Event::Stop(program) => (2, Some(record::id_column(program))),
    }
}

fn event(kind: i64, program: Option<i64>) -> Event {
    match (kind, program.map(record::id_of_column)) {
        (1, Some(program)) => Event::Start(program),
        (2, Some(program)) => Event::Stop(program),
        _ => Event::Session,
    }
}

fn insert(transaction: &Transaction<'_>, decision: &Decision) -> rusqlite::Result<DecisionId> {
    let stored = StoredOutcome { outcome: decision.outcome, budget: decision.limit };
    let json = |value: serde_json::Result<String>| {
        value.map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))
    };
    let occasion = match decision.occasion {
        Occasion::Ahead => "ahead",
        Occasion::Exec => "exec",
        Occasion::Session => "session",
    };
    let insert = "INSERT INTO decision (at_s, occasion, program, probability, outcome, used_bytes, wasted_bytes) \
                  VALUES (?, ?, ?, ?, ?, ?, ?)";
    transaction.prepare_cached(insert)?.execute((
        decision.at_s,
        occasion,
        record::id_column(decision.program),
        decision.probability,
        json(serde_json::to_string(&stored))?,
        decision.usage.map(|usage| record::signed(usage.used_bytes)),
        decision.usage.map(|usage| record::signed(usage.wasted_bytes)),
    ))?;
    Ok(DecisionId(transaction.last_insert_rowid()))
}

/// `None` if its JSON is not of this version.
fn decision(row: &Row<'_>) -> rusqlite::Result<Option<Decision>> {
    let occasion = match row.get::<_, String>(1)?.as_str() {
        "ahead" => Occasion::Ahead,
        "exec" => Occasion::Exec,
        _ => Occasion::Session,
    };
    let Ok(stored) = serde_json::from_str::<StoredOutcome>(&row.get::<_, String>(4)?) else {
        return Ok(None);
    };
    let usage = match (row.get::<_, Option<i64>>(5)?, row.get::<_, Option<i64>>(6)?) {
        (Some(used), Some(wasted)) => {
            Some(PageUsage { used_bytes: record::unsigned(used), wasted_bytes: record::unsigned(wasted) })
        }
        _ => None,
    };
    Ok(Some(Decision {
        at_s: row.get(0)?,
        occasion,
        program: record::id_of_column(row.get(2)?),
        probability: row.get(3)?,
        outcome: stored.outcome,
        limit: stored.budget,
        usage,
    }))
}
