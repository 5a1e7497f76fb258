//! Finds what an earlier `eke up` applied and is still in force. Adopting changes nothing.

use eke_apply::journal;
use eke_apply::state;
use eke_linux::Root;
use eke_model::applied::Applied;
use eke_model::config::SwapSettings;
use eke_model::snapshot::Message;
use eke_model::step::Prediction;

/// What is in force.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Adopted {
    /// The applied plan, if any.
    pub applied: Option<Applied>,
    /// Number of changes in force, from the journal; `None` if it cannot be read (not root).
    pub changes: Option<usize>,
}

impl Adopted {
    /// The first prediction among the plans.
    pub fn prediction(&self) -> Option<&Prediction> {
        self.applied.iter().flat_map(|a| &a.plans).find_map(|p| p.prediction.as_ref())
    }

    /// The settings, narrowed by the command line of `eke up`.
    pub fn bounded(&self, settings: &SwapSettings) -> SwapSettings {
        self.applied.as_ref().map(|a| a.bounds).unwrap_or_default().bind(settings)
    }

    /// A message for the log and the events.
    pub fn message(&self) -> Message {
        match (&self.applied, self.changes) {
            (Some(_), Some(n)) => format!("Adopted the applied plan; changes in force: {n}.").into(),
            (Some(_), None) => {
                "Adopted the applied plan; only root can read how many changes are in force.".into()
            }
            (None, Some(n)) if n > 0 => Message::important(format!(
                "No plan is applied, but changes by eke are in force: {n}; `eke down` undoes them."
            )),
            (None, _) => "No plan is applied: the agent watches and changes nothing.".into(),
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
