//! What an earlier `eke up` applied and is still in force. Adopting changes nothing.

use eke_core::snapshot::Applied;
use eke_core::step::Prediction;
use eke_kernel::Root;
use eke_kernel::journal;
use eke_kernel::state;

/// What is in force.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Adopted {
    /// The plan as applied; `None` if none is.
    pub applied: Option<Applied>,
    /// Changes in force by the journal; `None` where it cannot be read (not root).
    pub changes: Option<usize>,
}

impl Adopted {
    /// The first prediction of the plans.
    pub fn prediction(&self) -> Option<&Prediction> {
        self.applied.iter().flat_map(|a| &a.plans).find_map(|p| p.prediction.as_ref())
    }

    /// For the log and the events.
    pub fn sentence(&self) -> String {
        match (&self.applied, self.changes) {
            (Some(_), Some(n)) => format!("Adopted the applied plan; changes in force: {n}."),
            (Some(_), None) => {
                "Adopted the applied plan; how many changes are in force, only root can read.".to_owned()
            }
            (None, Some(n)) if n > 0 => {
                format!("No plan is applied, but changes of eke's are in force: {n}; `eke down` undoes them.")
            }
            (None, _) => "No plan is applied: the agent watches and changes nothing.".to_owned(),
        }
    }
}

/// Reads the applied plan and the journal.
pub fn adopt(root: &Root) -> Adopted {
    Adopted {
        applied: state::load(root, state::APPLIED),
        changes: journal::entries(root).ok().map(|entries| entries.len()),
    }
}
