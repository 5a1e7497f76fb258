//! Second stage: chooses what to read for candidate programs within the memory budget.
//!
//! - [`candidates`]: programs with their file sets; turns the choice into read requests and decisions
//! - [`disks`]: the costs of disks; each disk is measured once it is quiet
//! - `last_use`: when each disk was last used (pure)
//! - [`measurements`]: what was measured of disks, and what launches showed since (pure)
//! - [`memory`]: how much memory prefetch may fill now
//!
//! The choice itself is in `eke_prefetch_model::choose`.

pub(crate) mod candidates;
pub(crate) mod disks;
mod last_use;
mod measurements;
pub(crate) mod memory;

pub(crate) use candidates::Candidates;
pub(crate) use disks::Disks;
pub(crate) use memory::MemorySampler;
