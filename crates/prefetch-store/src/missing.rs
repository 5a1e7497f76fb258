//! What launches still read themselves, of the programs that were recorded last.

use eke_prefetch_model::missing::Missing;
use eke_prefetch_model::program::ProgramId;
use rusqlite::{Connection, OptionalExtension, Transaction};

use super::error::{self, Result};
use super::{ProgramStore, record};

/// The state's name and version.
const STATE: (&str, u32) = ("missing", 1);
/// The most programs.
const MOST: usize = 16;

/// By program's number, the newest last.
type All = Vec<(i64, Missing)>;

impl ProgramStore {
    /// Replaces what is known of a program.
    ///
    /// # Errors
    /// SQLite's answer, or [`Error::TooLarge`](super::Error::TooLarge).
    pub fn put_missing(&mut self, program: ProgramId, missing: Missing) -> Result<()> {
        let mut all = load(&self.connection).map_err(error::of(&self.path))?;
        all.retain(|(id, _)| *id != record::id_column(program));
        all.push((record::id_column(program), missing));
        all.drain(..all.len().saturating_sub(MOST));
        self.put_state(STATE.0, STATE.1, &bytes(&all))
    }

    /// What the last recorded launch of a program read itself, if eke had read for it.
    ///
    /// # Errors
    /// SQLite's answer.
    pub fn missing(&self, program: ProgramId) -> Result<Option<Missing>> {
        let all = load(&self.connection).map_err(error::of(&self.path))?;
        Ok(all.into_iter().find(|(id, _)| *id == record::id_column(program)).map(|(_, missing)| missing))
    }
}

/// Deletes what is known of a program.
pub(super) fn forget(transaction: &Transaction<'_>, id: i64) -> rusqlite::Result<()> {
    let mut all = load(transaction)?;
    let before = all.len();
    all.retain(|(of, _)| *of != id);
    if all.len() < before {
        let update = "UPDATE state SET bytes = ? WHERE name = ? AND version = ?";
        transaction.execute(update, (bytes(&all), STATE.0, STATE.1))?;
    }
    Ok(())
}

/// Bytes of another form are none.
fn load(connection: &Connection) -> rusqlite::Result<All> {
    let select = "SELECT bytes FROM state WHERE name = ? AND version = ?";
    let found = connection.query_row(select, STATE, |row| row.get::<_, Vec<u8>>(0)).optional()?;
    Ok(found.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default())
}

/// Numbers and texts always have a form in JSON.
fn bytes(all: &All) -> Vec<u8> {
    serde_json::to_vec(all).unwrap_or_default()
}
