//! Selects what to prefetch: the most seconds saved per byte, within a budget. Pure.
//!
//! # Layout
//! - [`environment`]: facts about the machine: costs, resident pages, pinned files
//! - `unit`: cuts what candidates would read into units, each with the seconds that it saves
//! - `pick`: the units within the budget; `holes`: the holes between them; [`choice`]: the resulting reads
//! - [`outcome`]: the outcome for each candidate, with its numbers
//! - [`budget`]: how much memory prefetch may fill
//!
//! # The objective
//! A launch that finds pages in memory saves the time of reading them: the disk's request time for each request, and its byte time for each byte
//! ([`DiskCost`](crate::DiskCost)). A read within the kernel's read-ahead of the previous one is not a separate request. A page saves these seconds
//! times the probability that any program uses it: 1 - ∏(1 - p), where p is a program's probability times the share of its launches that use the
//! file. So shared pages count once, and many seeks for few bytes (inode tables, directories) come first.
//!
//! A program is left out if eke's reads would take more CPU time from its launch than the disk time that they save: a slow CPU beside a fast disk.
//!
//! Units are picked by seconds per byte, and the last one is cut at the budget. So a larger budget reads everything that a smaller one reads, and
//! more. The rest of the budget fills holes that are faster to read than to skip.

pub mod budget;
pub mod choice;
pub mod environment;
mod holes;
pub mod outcome;
mod pick;
mod unit;

use std::time::Duration;

pub use budget::{Allowance, Limit, Memory, Occasion, Rules, allowance};
pub use choice::{Choice, PlannedRead};
pub use environment::{Environment, Resident};

pub use outcome::ChoiceOutcome;

use crate::file_set::FileSet;
use crate::program::ProgramId;

/// A program that may start.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The program.
    pub id: ProgramId,
    /// The probability that it starts soon; 1 when it has started.
    pub probability: f64,
    /// The duration of its cold launch, if known.
    pub took: Option<Duration>,
    /// What it would read.
    pub set: &'a FileSet,
}

/// The bounds of a choice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Bytes of memory that may be filled.
    pub budget_bytes: u64,
    /// Pages of lower probability are left out.
    pub least_probability: f64,
    /// A program is left out if prefetch saves it less than this, in seconds, ...
    pub least_saved_s: f64,
    /// ... and less than this share of its cold launch.
    pub least_saved_share: f64,
    /// What reading a page takes from the launch because eke needs CPU time for it, in seconds; see [`cpu_share`].
    pub cpu_page_s: f64,
}

/// The share of eke's own CPU time that a launch loses. At exec both want a CPU: of one they share it, of many the launch loses less. Ahead, reads run
/// at the lowest priority on a CPU that nobody uses; they still have to save a tenth of what they cost.
pub fn cpu_share(occasion: Occasion, cpus: usize) -> f64 {
    match occasion {
        Occasion::Exec => 1.0 / cpus.max(1) as f64,
        Occasion::Ahead | Occasion::Session => 0.1,
    }
}

impl Limits {
    /// The same for a program that has started: a page must be likelier used than not. Reading it takes the launch its whole time on the disk, and saves
    /// only its probability of it.
    pub fn at_exec(budget_bytes: u64) -> Self {
        Self { least_probability: 0.51, ..Self::of(budget_bytes) }
    }

    /// The default limits for this budget: users hardly notice a delay below 0.15 s, or a tenth of a launch.
    pub fn of(budget_bytes: u64) -> Self {
        Self {
            budget_bytes,
            least_probability: 0.02,
            least_saved_s: 0.15,
            least_saved_share: 0.1,
            cpu_page_s: 0.0,
        }
    }
}

/// Selects reads, most seconds saved per byte first, and gives the outcome for each candidate in the order given.
pub fn choose(candidates: &[Candidate<'_>], environment: &dyn Environment, limits: &Limits) -> Choice {
    let demand = unit::units(candidates, environment, limits);
    pick::pick(candidates, demand, limits)
}

#[cfg(test)]
mod tests;
