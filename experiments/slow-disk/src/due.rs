//! Answers that wait for their time.

use std::time::Instant;

/// An answer, and when it is due.
pub(super) struct Due {
    pub(super) at: Instant,
    pub(super) send: Box<dyn FnOnce() + Send>,
}

/// Answers, and when the disk goes on.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) due: Vec<Due>,
    pub(super) wakes: Option<Instant>,
}
