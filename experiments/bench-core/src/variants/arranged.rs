//! Applies an arrangement and restores the machine, by the journal.

use eke_apply::journal;
use eke_apply::journal::replay::Entry;
use eke_apply::revert::{self, Outcome};
use eke_apply::session::Session;
use eke_apply::state;
use eke_linux::Root;
use eke_linux::cgroup::name;
use eke_results::report::Role;
use eke_swap::decide;

use super::{Arrangement, Error, OWNER};
use crate::settings;

/// A machine that an experiment may arrange. Drop undoes what is in force. The next experiment or `eke down` undoes what a killed one
/// left.
#[derive(Debug)]
pub struct ArrangedMachine {
    root: Root,
}

impl ArrangedMachine {
    /// Undoes what killed ekes left.
    ///
    /// # Errors
    /// eke is up, another eke is at work, or a change cannot be undone.
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

    /// Replaces the arrangement in force.
    ///
    /// # Errors
    /// The step that failed. Nothing is arranged then.
    pub fn apply(&self, arrangement: &Arrangement) -> Result<(), Error> {
        self.restore()?;
        if arrangement.variant.role == Role::Ours {
            settings::note(&arrangement.variant.name, &arrangement.variant.set_up);
        }
        if !arrangement.plan.steps.is_empty() {
            Session::open(&self.root, OWNER)?.apply_plan(&arrangement.plan)?;
        }
        Ok(())
    }

    /// Restores the machine.
    ///
    /// # Errors
    /// A change cannot be undone now. It stays in the journal.
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
            eprintln!("eke: the last variant could not be undone: {e}; `eke down` tries again");
        }
    }
}

/// Is this the change of another running process?
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
