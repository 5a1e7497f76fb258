//! What predictors learn from.

use serde::{Deserialize, Serialize};

use crate::program::ProgramId;

/// Something that a user did, or a user's programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// A session began: a log-in.
    Session,
    /// The first process of a program started.
    Start(ProgramId),
    /// The last process of it ended.
    Stop(ProgramId),
}

/// An event, when and whose.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Happened {
    /// Seconds since 1970, local time's offset added where the time of day counts.
    pub at_s: f64,
    /// The user's number.
    pub user: u32,
    /// What.
    pub event: Event,
}
