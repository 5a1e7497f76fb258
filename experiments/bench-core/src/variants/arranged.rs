//! Applies an arrangement and takes it away again: journal first, as everything that eke changes.

use eke_apply::journal;
use eke_apply::journal::replay::Entry;
use eke_apply::revert::{self, Outcome};
use eke_apply::session::Session;
use eke_apply::state;
use eke_linux::Root;
use eke_linux::cgroup::name;
use eke_swap::decide;

use super::{Arrangement, Error, OWNER};

/// A machine that an experiment may arrange. What is in force when it is dropped is undone; what a killed experiment left,
/// the next one undoes, or `eke down`.
#[derive(Debug)]
pub struct ArrangedMachine {
    root: Root,
}

impl ArrangedMachine {
    /// Undoes what dead ekes left.
    ///
    /// # Errors
    /// eke is up, another eke is at work, or something that is left cannot be undone.
    pub fn prepare(root: &Root) -> Result<Self, Error> {
        let entries = journal::entries(root)?;
        if root.exists(state::APPLIED) && entries.iter().any(|e| e.intent.owner == decide::REMEDY) {
            return Err(Error::EkeIsUp);
        }
        if let Some(entry) = entries.iter().find(|e| is_anothers(root, e)) {
            return Err(Error::Busy { owner: entry.intent.owner.clone() });
        }
        if !entries.is_empty() {
            undo_leftovers(root)?;
        }
        Ok(Self { root: root.clone() })
    }

    /// `arrangement` in place of what was there before.
    ///
    /// # Errors
    /// The step that failed; then nothing is arranged.
    pub fn apply(&self, arrangement: &Arrangement) -> Result<(), Error> {
        self.restore()?;
        if !arrangement.plan.steps.is_empty() {
            Session::open(&self.root, OWNER)?.apply_plan(&arrangement.plan)?;
        }
        Ok(())
    }

    /// The machine as it was.
    ///
    /// # Errors
    /// What cannot be undone now; it stays in the journal.
    pub fn restore(&self) -> Result<(), Error> {
        if journal::entries(&self.root)?.is_empty() {
            return Ok(());
        }
        Ok(Session::open(&self.root, OWNER)?.undo_own()?)
    }
}

impl Drop for ArrangedMachine {
    fn drop(&mut self) {
        if let Err(e) = self.restore() {
            eprintln!("eke: the last variant could not be taken away: {e}; `eke down` tries again");
        }
    }
}

/// A living process' change that is not this one's.
fn is_anothers(root: &Root, entry: &Entry) -> bool {
    entry
        .intent
        .made_by
        .is_some_and(|owner| owner.pid != std::process::id() && name::is_alive(root, owner).unwrap_or(true))
}

fn undo_leftovers(root: &Root) -> Result<(), Error> {
    let session = Session::open(root, OWNER)?;
    let outcomes = revert::all(root, session.journal())?;
    let blocked = outcomes.into_iter().find_map(|(_, outcome)| match outcome {
        Outcome::Blocked(why) => Some(why),
        _ => None,
    });
    blocked.map_or(Ok(()), |why| Err(Error::Left(why)))
}
