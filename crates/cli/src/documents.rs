//! What `--json` prints, verb by verb; `docs/schemas.json` is generated from these types.

pub mod io;
pub mod link;
pub mod prefetch;

use std::path::PathBuf;

use eke_model::snapshot::Snapshot;
use eke_model::units::Bytes;
use eke_swap::decide::Decision;
use eke_swap::facts::Facts;
use eke_swap::measure::measurements::Measured;
use serde::Serialize;

/// `plan` and `up`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Plan {
    /// What the machine has and lacks.
    pub facts: Facts,
    /// What was measured.
    pub measured: Measured,
    /// What would be done, or is done, and why.
    pub decision: Decision,
}

/// `down`.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Down {
    /// Restored settings, devices and files.
    pub restored: Vec<String>,
    /// What another program changed since, and was left alone.
    pub kept: Vec<String>,
    /// What could not be undone now; a second `eke down` tries again.
    pub blocked: Vec<String>,
}

/// `doctor`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Doctor {
    /// `uname -r`.
    pub kernel: String,
    /// One line for each thing.
    pub lines: Vec<DoctorLine>,
}

/// One thing that eke could use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DoctorLine {
    /// Its name.
    pub what: String,
    /// True if this machine has it.
    pub available: bool,
    /// What the machine has; or why it lacks it, and what would provide it.
    pub why: String,
}

/// `advise`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Advise {
    /// The largest first.
    pub programs: Vec<AdviseRow>,
    /// Processes of others that could not be read.
    pub unreadable_processes: usize,
}

/// One program.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AdviseRow {
    /// Its name.
    pub name: String,
    /// How many processes.
    pub processes: usize,
    /// Proportional share of RAM.
    pub pss: Bytes,
    /// Proportional share of swap, uncompressed.
    pub swap_pss: Bytes,
    /// What closing it returns: its private pages in RAM, and in swap.
    pub returns: Bytes,
}

/// `status`, and `eke` without a verb.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Status {
    /// The machine and its compressed swap.
    #[serde(flatten)]
    pub snapshot: Snapshot,
    /// The compressed page caches that are mounted.
    pub caches: Vec<Cache>,
}

/// `cache status`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheStatus {
    /// In the order of mounting.
    pub caches: Vec<Cache>,
}

/// A compressed page cache that is mounted. A path that is not UTF-8 is an array of its bytes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cache {
    /// Where it is mounted.
    #[serde(with = "eke_cache_mounts::path_text")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub place: PathBuf,
    /// The backing directory.
    #[serde(with = "eke_cache_mounts::path_text")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub dir: PathBuf,
    /// The user who mounted it.
    pub uid: u32,
    /// Whether it serves.
    pub state: CacheState,
    /// Why there are no details; none if there are.
    pub why: Option<String>,
    /// The supervisor's process.
    pub pid: Option<u32>,
    /// The worker's process; none while a new one starts.
    pub worker_pid: Option<u32>,
    /// Settings and statistics.
    pub details: Option<Box<eke_cache_mounts::status::Status>>,
}

/// Whether a mount serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// Its supervisor answers.
    Serving,
    /// Its supervisor is gone; `eke cache umount` uncovers the backing directory.
    Dead,
    /// Its supervisor runs but does not answer properly.
    Silent,
    /// It is another user's.
    NotYours,
}

/// `cache umount`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheUmount {
    /// Where it was mounted.
    #[serde(with = "eke_cache_mounts::path_text")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub place: PathBuf,
    /// The backing directory.
    #[serde(with = "eke_cache_mounts::path_text")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub dir: PathBuf,
    /// True if its supervisor unmounted it. If that was dead or silent, `eke` did.
    pub by_supervisor: bool,
    /// Unmounted although files may be open there.
    pub lazy: bool,
    /// Another compressed page cache below it is visible now.
    pub under: bool,
}
