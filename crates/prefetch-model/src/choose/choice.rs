//! The result of a choice.

use std::path::PathBuf;

use super::outcome::ChoiceOutcome;
use crate::file_set::{Kind, Stamp};
use crate::pages::Pages;
use crate::program::ProgramId;

/// A read to do.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRead {
    /// The path of the file.
    pub path: PathBuf,
    /// The file's kind.
    pub kind: Kind,
    /// The version of the file.
    pub stamp: Stamp,
    /// The pages; none for a directory.
    pub pages: Pages,
    /// Bytes of memory that the read fills.
    pub bytes: u64,
    /// Expected seconds saved.
    pub saved_s: f64,
    /// The file's earliest position in the first-use order of any candidate that uses it.
    pub position: usize,
}

/// The reads, and the outcome for each candidate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Choice {
    /// Highest seconds saved per byte first. Pieces of a file that differ by less than a factor of four in that share a read.
    pub reads: Vec<PlannedRead>,
    /// The outcome for each candidate, in the order given.
    pub outcomes: Vec<(ProgramId, ChoiceOutcome)>,
    /// Bytes of memory that all reads fill; at most the budget.
    pub bytes: u64,
    /// Expected seconds that all reads save.
    pub saved_s: f64,
}
