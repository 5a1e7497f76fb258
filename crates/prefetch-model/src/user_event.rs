//! User events: the input of predictors.

use serde::{Deserialize, Serialize};

use crate::program::ProgramId;

/// What a user or a user's programs did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// A session began: a log-in.
    Session,
    /// The first process of a program started.
    Start(ProgramId),
    /// The last process of a program ended.
    Stop(ProgramId),
}

/// An event with its time and user.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct UserEvent {
    /// Seconds since 1970, plus the local time zone's offset, because predictors use the time of day.
    pub at_s: f64,
    /// The user id.
    pub user: u32,
    /// What happened.
    pub event: Event,
}
