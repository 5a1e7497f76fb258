//! Which programs start next. Pure: the predictor gets events and is asked about a time; it owns no clock and no file.
//!
//! # Layout
//! - [`eke`]: a mixture of experts with online weights, calibrated
//! - [`running`], [`clock`]: which programs run, and time as predictors count it
//!
//! # Times
//! Events come in the order in which they were seen. Their times may jump (a clock that is set), back or years ahead; no predictor
//! fails for that. It counts events, so that nothing is lost.
//!
//! # Absent
//! Nothing here depends on the order of a hash table: the same events give the same chances.

pub mod clock;
pub mod eke;
pub mod running;

use crate::program::ProgramId;

pub use eke::{Eke, StateError};

/// How likely a program starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chance {
    /// The program.
    pub program: ProgramId,
    /// 0 to 1.
    pub probability: f64,
}

/// Likeliest first, those alike by their number.
pub fn sort(chances: &mut [Chance]) {
    chances.sort_by(|a, b| b.probability.total_cmp(&a.probability).then(a.program.cmp(&b.program)));
}
