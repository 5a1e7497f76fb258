//! The choice, as data.

use std::path::PathBuf;

use super::verdict::Verdict;
use crate::file_set::{Kind, Stamp};
use crate::pages::Pages;
use crate::program::ProgramId;

/// Something to read.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRead {
    /// Of which file.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// By what it is known again.
    pub stamp: Stamp,
    /// Which pages; of a directory none.
    pub pages: Pages,
    /// The memory that it takes.
    pub bytes: u64,
    /// Expected seconds saved.
    pub saved_s: f64,
    /// Its place in the order of first use; the least of those that want it.
    pub place: usize,
}

/// What is to be read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Choice {
    /// Most seconds for a byte first. Pieces of one file that differ by less than a factor of four in that are one read.
    pub reads: Vec<PlannedRead>,
    /// What became of each candidate, in their order.
    pub verdicts: Vec<(ProgramId, Verdict)>,
    /// The memory that it takes in all; never more than the budget.
    pub bytes: u64,
    /// Expected seconds saved in all.
    pub saved_s: f64,
}
