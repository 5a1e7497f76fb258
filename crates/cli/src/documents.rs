//! What `--json` prints, verb by verb; `docs/schemas.json` is generated from these types.

pub mod io;
pub mod link;
pub mod prefetch;

use std::path::PathBuf;

use eke_model::snapshot::Snapshot;
use eke_model::units::Bytes;
use eke_swap::decide::Decision;
use eke_swap::facts::Facts;
use eke_swap::measure::figures::Measured;
use serde::Serialize;

/// `plan` and `up`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Plan {
    /// What the machine has and lacks.
    pub facts: Facts,
    /// What was measured.
    pub measured: Measured,
    /// What would be done, or is done, and why.
    pub decision: Decision,
}

/// `down`.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
pub struct Down {
    /// What is as it was again.
    pub restored: Vec<String>,
    /// What somebody else changed since, and was left alone.
    pub kept: Vec<String>,
    /// What could not be undone now; `eke down` again tries again.
    pub blocked: Vec<String>,
}

/// `doctor`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Doctor {
    /// `uname -r`.
    pub kernel: String,
    /// One line for each thing.
    pub lines: Vec<DoctorLine>,
}

/// One thing that eke could use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct DoctorLine {
    /// What.
    pub what: String,
    /// Is it there?
    pub there: bool,
    /// What is there, or why it is not and what would bring it.
    pub why: String,
}

/// `advise`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Advise {
    /// The largest first.
    pub programs: Vec<AdviseRow>,
    /// Processes of others that could not be read.
    pub unreadable_processes: usize,
}

/// One program.
#[derive(Debug, Serialize, schemars::JsonSchema)]
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
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Status {
    /// The machine and its compressed swap.
    #[serde(flatten)]
    pub snapshot: Snapshot,
    /// The compressed page caches that are mounted.
    pub caches: Vec<Cache>,
}

/// `cache status`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct CacheStatus {
    /// In the order of mounting.
    pub caches: Vec<Cache>,
}

/// A compressed page cache that is mounted. A path that is not UTF-8 is an array of its bytes.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Cache {
    /// Where it is mounted.
    #[serde(with = "eke_cache_mounts::path_text")]
    #[schemars(with = "String")]
    pub place: PathBuf,
    /// The backing directory.
    #[serde(with = "eke_cache_mounts::path_text")]
    #[schemars(with = "String")]
    pub dir: PathBuf,
    /// Whose it is.
    pub uid: u32,
    /// Does it serve?
    pub state: CacheState,
    /// Why there are no details; none: there are.
    pub why: Option<String>,
    /// The supervisor's process.
    pub pid: Option<u32>,
    /// The worker's process; none between a death and the next one.
    pub worker_pid: Option<u32>,
    /// What it is and does.
    pub details: Option<Box<eke_cache_mounts::status::Status>>,
}

/// Does a mount serve?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheState {
    /// Its supervisor answers.
    Serving,
    /// Its supervisor is gone; `eke cache umount` makes the backing directory visible again.
    Dead,
    /// Its supervisor is there but does not answer as it should.
    Silent,
    /// It is another user's.
    NotYours,
}

/// `cache umount`.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct CacheUmount {
    /// Where it was mounted.
    #[serde(with = "eke_cache_mounts::path_text")]
    #[schemars(with = "String")]
    pub place: PathBuf,
    /// The backing directory.
    #[serde(with = "eke_cache_mounts::path_text")]
    #[schemars(with = "String")]
    pub dir: PathBuf,
    /// Did its supervisor do it? If not it was dead or silent, and the kernel did it alone.
    pub by_supervisor: bool,
    /// Though files may be open there.
    pub lazy: bool,
    /// Another compressed page cache lies under it and shows now.
    pub under: bool,
}
