//! What `--json` prints, verb by verb; `docs/schemas.json` is generated from these types.

use eke_core::units::Bytes;
use eke_swap::decide::Decision;
use eke_swap::facts::Facts;
use eke_swap::measure::figures::Measured;
use serde::Serialize;

/// `plan` and `up`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Plan {
    /// What the machine has and lacks.
    pub facts: Facts,
    /// What was measured.
    pub measured: Measured,
    /// What would be done, or is done, and why.
    pub decision: Decision,
}

/// `down`.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Down {
    /// What is as it was again.
    pub restored: Vec<String>,
    /// What somebody else changed since, and was left alone.
    pub kept: Vec<String>,
    /// What could not be undone now; `eke down` again tries again.
    pub blocked: Vec<String>,
}

/// `doctor`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Doctor {
    /// `uname -r`.
    pub kernel: String,
    /// One line for each thing.
    pub lines: Vec<DoctorLine>,
}

/// One thing that eke could use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct DoctorLine {
    /// What.
    pub what: String,
    /// Is it there?
    pub there: bool,
    /// What is there, or why it is not and what would bring it.
    pub why: String,
}

/// `advise`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Advise {
    /// The largest first.
    pub programs: Vec<AdviseRow>,
    /// Processes of others that could not be read.
    pub unreadable_processes: usize,
}

/// One program.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct AdviseRow {
    /// Its name.
    pub name: String,
    /// How many processes.
    pub processes: usize,
    /// Proportional share of RAM.
    pub pss: Bytes,
    /// Proportional share of swap, uncompressed.
    pub swap_pss: Bytes,
    /// What closing it returns: its private pages in RAM, and in swap.
    pub returns: Bytes,
}
