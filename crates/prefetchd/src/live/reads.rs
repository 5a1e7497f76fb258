//! The reads under way, what is known of them, and their CPU time.

use std::collections::BTreeMap;
use std::mem::Discriminant;

use eke_prefetch_model::choose::ChoiceOutcome;
use eke_prefetch_model::cost::{CpuCost, CpuRefusals};
use eke_prefetch_model::program::ProgramId;

use super::ahead::Ahead;
use super::due::Due;
use super::launches::Launches;
use super::starting::Starting;

/// The CPU time of reading.
#[derive(Debug, Default)]
pub(super) struct ReadingCpu {
    /// Of the threads that read.
    pub(super) threads: CpuCost,
    /// Of this process while it reads at exec. It is not stored: the first reads after a start find out what it is.
    pub(super) at_exec: CpuCost,
    /// Starts that are not read because of it.
    pub(super) refusals: CpuRefusals,
}

/// The reads under way, and what is known of them.
#[derive(Default)]
pub(super) struct Reads {
    pub(super) starting: Starting,
    pub(super) ahead: Option<Ahead>,
    pub(super) launches: Launches,
    /// The next choice of reads ahead.
    pub(super) due: Due,
    /// Bytes that eke read for the latest start of each program, until that start is learned.
    pub(super) for_start: BTreeMap<ProgramId, u64>,
    /// The last stored outcome for each program.
    pub(super) outcomes: BTreeMap<ProgramId, Discriminant<ChoiceOutcome>>,
}
