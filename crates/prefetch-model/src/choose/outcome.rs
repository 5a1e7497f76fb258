//! The outcome for a candidate, for `explain`.

use serde::{Deserialize, Serialize};

/// Whether a program's files are prefetched, and why not. Bytes count what is not known to be in memory. Seconds are
/// the time that its launch saves at most if it starts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum ChoiceOutcome {
    /// Read, wholly or in part.
    Chosen {
        /// Bytes to read.
        bytes: u64,
        /// Bytes that may be missing.
        of_bytes: u64,
        /// Seconds that the read saves at most.
        saved_s: f64,
        /// Seconds that reading all would save.
        of_s: f64,
    },
    /// All of it is in memory.
    AlreadyResident,
    /// A cold launch is hardly slower than a warm one, so prefetch stays off for it.
    SmallGain {
        /// Seconds to read what its launches usually use.
        cold_s: f64,
        /// Seconds of its cold launch, if known.
        took_s: Option<f64>,
        /// The least saving that counts, in seconds.
        least_s: f64,
    },
    /// On this CPU the launch would lose more than it saves.
    CostsCpu {
        /// The same.
        cold_s: f64,
        /// Seconds that eke's CPU time would take from the launch.
        cpu_s: f64,
    },
    /// This start is left alone, to measure what the others gain.
    LeftAlone,
    /// Its start is too improbable, or no file is used by enough of its launches.
    Improbable {
        /// The start's probability.
        probability: f64,
        /// The least probability that counts.
        least: f64,
    },
    /// Its start is too improbable, and a part of it is read because likelier programs share it.
    Shared {
        /// Bytes to read.
        bytes: u64,
        /// Bytes that may be missing.
        of_bytes: u64,
        /// The start's probability.
        probability: f64,
        /// The least probability that counts.
        least: f64,
    },
    /// Reads that save more per byte used up the budget.
    NoRoom {
        /// Bytes that it needs.
        of_bytes: u64,
        /// Seconds that reading them would save.
        of_s: f64,
        /// The budget in bytes.
        budget_bytes: u64,
    },
    /// None of its files may be read: they are pinned, on a disk of unknown cost, or on a network.
    NothingToRead {
        /// Number of files.
        files: usize,
    },
}
