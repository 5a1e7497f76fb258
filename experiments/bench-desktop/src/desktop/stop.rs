//! Why a session stops before its last act.

use x11rb::errors::{ConnectionError, ReplyError, ReplyOrIdError};

use crate::session::End;

/// Why a session does not go on.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stop {
    /// It has ended.
    #[error("the session has ended")]
    Ended(End),
    /// The X server does not answer, or refuses: the server died, or a viewer died and its window is gone.
    #[error("the display refuses: {0}")]
    Display(String),
}

impl From<End> for Stop {
    fn from(end: End) -> Self {
        Self::Ended(end)
    }
}

impl From<ConnectionError> for Stop {
    fn from(error: ConnectionError) -> Self {
        Self::Display(error.to_string())
    }
}

impl From<ReplyError> for Stop {
    fn from(error: ReplyError) -> Self {
        Self::Display(error.to_string())
    }
}

impl From<ReplyOrIdError> for Stop {
    fn from(error: ReplyOrIdError) -> Self {
        Self::Display(error.to_string())
    }
}

/// A session that cannot run, and why.
pub(super) fn failed(why: impl Into<String>) -> Stop {
    Stop::Ended(End::Failed { why: why.into() })
}
