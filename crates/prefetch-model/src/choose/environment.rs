//! The facts about the machine that a choice needs.

use std::path::Path;

use crate::cost::DiskCost;
use crate::file_set::Touched;
use crate::pages::Pages;

/// Which pages of a file are in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resident {
    /// Unknown: treat every page as missing.
    Unknown,
    /// These pages.
    Pages(Pages),
    /// All pages in use; a directory itself.
    All,
}

/// The machine as a choice sees it.
pub trait Environment {
    /// The costs of reading this file; `None` excludes it: the disk was not measured, or does not pay (network file systems).
    fn cost(&self, file: &Touched) -> Option<DiskCost>;

    /// Which pages of the file are in memory.
    fn resident(&self, file: &Touched) -> Resident;

    /// Whether the file is pinned, so prefetch must leave it alone.
    fn is_pinned(&self, path: &Path) -> bool;
}
