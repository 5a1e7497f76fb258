//! What `io ... --json` prints.

use eke_io::counters::Window;
use eke_io::verdict::{Activity, Verdict};
use eke_model::units::Nanos;
use serde::Serialize;

/// `io watch`: one object a line for each time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Watch {
    /// When it ended, in seconds since 1970.
    pub unix_s: u64,
    /// The measurements.
    #[serde(flatten)]
    pub window: Window,
    /// A verdict on each disk that was used.
    pub verdicts: Vec<Judged>,
    /// Which processes did what during that time.
    pub activity: Activity,
}

/// A verdict, and the target it refers to.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Judged {
    /// The target for read latency, in nanoseconds.
    pub target: Nanos,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
}
