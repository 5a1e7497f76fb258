//! What became of a candidate, for `explain`.

use serde::{Deserialize, Serialize};

/// Whether a program's files are read before, and why not. Bytes are of what was not in memory; seconds are those that its launch is
/// shorter by if it starts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// It is read, wholly or in part.
    Chosen {
        /// What is read of it.
        bytes: u64,
        /// Of so much.
        of_bytes: u64,
        /// What that saves.
        saved_s: f64,
        /// Of so much.
        of_s: f64,
    },
    /// All of it is in memory.
    AlreadyResident,
    /// A cold launch is hardly slower than a warm one: prefetch stays off for it.
    NotWorth {
        /// What reading all of it takes.
        cold_s: f64,
        /// How long the launch takes, if that is known.
        took_s: Option<f64>,
        /// What it would have to save at least.
        least_s: f64,
    },
    /// It is too improbable that it starts.
    Improbable {
        /// The probability.
        probability: f64,
        /// What it would have to be.
        least: f64,
    },
    /// The budget went to what saves more for a byte.
    NoRoom {
        /// What it would take.
        of_bytes: u64,
        /// What that would save.
        of_s: f64,
        /// The budget.
        budget_bytes: u64,
    },
    /// None of its files may be read before: they are pinned, on a disk of unknown cost or on a network.
    NothingToRead {
        /// How many files.
        files: usize,
    },
}
