//! Second stage: what to read of a few candidate programs, within the memory that may be filled.
//!
//! - [`candidates`]: programs with their file sets; the choice among them as read requests and decisions
//! - [`disks`]: what reads cost where a file is; each disk is measured once it is quiet
//! - [`memory`]: how much may be filled now
//!
//! The choice itself is `eke_prefetch_model::choose`.

pub(crate) mod candidates;
pub(crate) mod disks;
pub(crate) mod memory;

pub(crate) use candidates::Candidates;
pub(crate) use disks::Disks;
pub(crate) use memory::MemorySampler;
