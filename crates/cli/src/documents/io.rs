//! What `io ... --json` prints.

use eke_io::figures::Window;
use eke_io::verdict::{Since, Verdict};
use eke_model::units::Nanos;
use serde::Serialize;

/// `io watch`: one object a line for each time.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Watch {
    /// When it ended, in seconds since 1970.
    pub unix_s: u64,
    /// The figures.
    #[serde(flatten)]
    pub window: Window,
    /// On each disk that was used.
    pub verdicts: Vec<Judged>,
    /// Who did what meanwhile.
    pub since: Since,
}

/// A verdict, and by what measure.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Judged {
    /// Reads should be answered within this time, in nanoseconds.
    pub target: Nanos,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
}
