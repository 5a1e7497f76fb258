//! Predicts which programs start next. Pure: it takes events and times, and owns no clock and no file.
//!
//! # Layout
//! - [`eke`]: a calibrated mixture of experts with online weights
//! - [`running`], [`clock`]: the running programs, and the clock of predictors
//!
//! # Times
//! Events come in the order in which they were observed. Their times may jump back or years ahead when a clock is set. Counts fade by events, so a
//! jump forgets nothing.
//!
//! # Absent
//! Nothing here depends on the order of a hash table: the same events give the same predictions.

pub mod clock;
pub mod eke;
pub mod running;

use crate::program::ProgramId;

pub use eke::{Eke, StateError};

/// The predicted probability that a program starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chance {
    /// The program.
    pub program: ProgramId,
    /// 0 to 1.
    pub probability: f64,
}

/// Sorts by descending probability, then by id.
pub fn sort(chances: &mut [Chance]) {
    chances.sort_by(|a, b| b.probability.total_cmp(&a.probability).then(a.program.cmp(&b.program)));
}
