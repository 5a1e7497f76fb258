//! What is read before it is asked for: most seconds saved for a byte, within a budget. Pure.
//!
//! # Layout
//! - [`environment`]: what is asked of the machine: costs, what is in memory already, what is not to be touched
//! - `unit`: what candidates would read, cut into pieces, each with the seconds that it saves
//! - `pick`: the pieces within the budget; `holes`: what lies between them; [`choice`]: both as read reads
//! - [`verdict`]: what became of each candidate, with figures
//! - [`budget`]: how much memory may be used
//!
//! # The measure
//! A launch that finds pages in memory saves what reading them would have taken: for each request of it the disk's time for a
//! request, and for each byte its time for a byte ([`DiskCost`](crate::DiskCost)). What a program reads within the kernel's
//! read-ahead of what it read before is no request of its own. A page saves these seconds times the probability that anybody asks
//! for it: 1 - ∏(1 - p), p being a program's probability times the share of its launches that use the file. So what programs share
//! counts once, and what takes many seeks for few bytes (inode tables, directories) comes first by itself.
//!
//! Pieces are taken in order of seconds for a byte, and the last one is cut where the budget ends. So a larger budget reads what a
//! smaller one reads, and more. What is left when all is taken goes to holes that are read faster than asked around.

pub mod budget;
pub mod choice;
pub mod environment;
mod holes;
mod pick;
mod unit;
pub mod verdict;

use std::time::Duration;

pub use budget::{Allowance, Limit, Memory, Occasion, Rules, allowance};
pub use choice::{Choice, PlannedRead};
pub use environment::{Environment, Resident};

pub use verdict::Verdict;

use crate::file_set::FileSet;
use crate::program::ProgramId;

/// A program that may start.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Which.
    pub id: ProgramId,
    /// How probable it is that it starts soon; 1 when it has started.
    pub probability: f64,
    /// How long a launch of it takes from a cold disk, if that is known.
    pub took: Option<Duration>,
    /// What it would read.
    pub set: &'a FileSet,
}

/// What bounds a choice.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Bytes of memory that may be filled.
    pub budget_bytes: u64,
    /// Pages that are asked for with less probability are left out.
    pub least_probability: f64,
    /// A program whose cold launch is slower than its warm one by less than this, in seconds, is left out ...
    pub least_saved_s: f64,
    /// ... if that is less than this share of its cold launch, too.
    pub least_saved_share: f64,
}

impl Limits {
    /// With this budget, and the usual figures: a delay below 0.15 s is hardly seen, and a tenth of a launch hardly felt.
    pub fn of(budget_bytes: u64) -> Self {
        Self { budget_bytes, least_probability: 0.02, least_saved_s: 0.15, least_saved_share: 0.1 }
    }
}

/// What is to be read, most seconds saved for a byte first, and what became of each candidate (in their order).
pub fn choose(candidates: &[Candidate<'_>], environment: &dyn Environment, limits: &Limits) -> Choice {
    let looked = unit::units(candidates, environment, limits);
    pick::pick(candidates, looked, limits)
}

#[cfg(test)]
mod tests;
