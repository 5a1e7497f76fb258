//! What a choice asks of the machine.

use std::path::Path;

use crate::cost::DiskCost;
use crate::file_set::Touched;
use crate::pages::Pages;

/// Which pages are in memory already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resident {
    /// It is not known: all are wished for.
    Unknown,
    /// These.
    Pages(Pages),
    /// All that is used of it; of a directory: itself.
    All,
}

/// The machine, as a choice sees it.
pub trait Environment {
    /// What reads of this file cost; `None` where it is not read before: not measured, or not worth it (network file systems).
    fn cost(&self, file: &Touched) -> Option<DiskCost>;

    /// Which pages of it are in memory.
    fn resident(&self, file: &Touched) -> Resident;

    /// Is it among what may not be touched?
    fn is_pinned(&self, path: &Path) -> bool;
}
