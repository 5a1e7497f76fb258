//! What `--json` prints, verb by verb; `docs/schemas.json` is generated from these types.

pub mod io;
pub mod link;

use std::path::PathBuf;

use eke_cache_mounts::status::WarmProgress;
use eke_client::Cache;
use eke_model::snapshot::Snapshot;
use eke_model::step::Reason;
use eke_model::units::Bytes;
use eke_swap::decide::Decision;
use eke_swap::facts::Facts;
use eke_swap::measure::measurements::Measured;
use serde::Serialize;

/// `plan`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Plan {
    /// What the machine has and lacks.
    pub facts: Facts,
    /// What was measured.
    pub measured: Measured,
    /// The age in seconds of a measurement that was stored earlier and is used again, as at boot; `None` if it was made for this plan.
    pub stored_s: Option<u64>,
    /// What would be done, or is done, and why.
    pub decision: Decision,
    /// Whether files of programs are read ahead from then on.
    pub prefetch: Switch,
    /// Whether writers are throttled from then on while reads wait too long.
    pub governor: Switch,
}

/// `up`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Up {
    /// What it did.
    pub outcome: UpOutcome,
    /// The plan that was made now; null if none was made.
    pub plan: Option<Plan>,
    /// eke's devices that somebody else had swapped off, and that are swapped on again.
    pub swapped_on: Vec<String>,
    /// What has no effect, or could not be done.
    pub notes: Vec<String>,
}

/// What `up` did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum UpOutcome {
    /// The plan is applied.
    Applied,
    /// The plan has no steps; the agent runs for prefetch, the governor or the guard.
    AgentOnly,
    /// The plan has no steps.
    NothingToChange,
    /// A plan was applied already, and stays.
    WasUp,
    /// With `--boot`: nothing, because `down` was run since boot.
    WasDown,
}

/// What the agent does beside swap, in a plan.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Switch {
    /// Does it run while the plan is applied?
    pub is_on: bool,
    /// Why, or why not.
    pub reason: Reason,
}

impl Switch {
    /// Why the governor runs, where the command line says so.
    pub const BY_OPTION: &str = "by --govern-io";
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

/// `report-bug`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReportBug {
    /// The report.
    pub file: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// What it contains.
    pub contains: Vec<String>,
    /// What is never in it.
    pub left_out: Vec<String>,
    /// What was replaced in this one.
    pub replaced: Vec<Replaced>,
    /// Where to send it.
    pub send_to: String,
}

/// A kind of private text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Replaced {
    /// `paths`, `names`, `addresses`, `identifiers`, `control groups`.
    pub what: String,
    /// How often it occurred.
    pub times: usize,
}

/// `advise`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Advise {
    /// The largest first.
    pub programs: Vec<AdviseRow>,
    /// Processes of others that could not be read.
    pub unreadable_processes: usize,
    /// `/proc` does not list the processes of others (`hidepid`).
    pub others_hidden: bool,
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
    /// Those that `eke cache enable` has mounted at every boot; only root sees them.
    pub at_boot: Vec<CacheAtBoot>,
}

/// A cache that is mounted at every boot.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheAtBoot {
    /// The mount point.
    pub place: PathBuf,
    /// The systemd unit; null if it is a line in `/etc/fstab`.
    pub unit: Option<String>,
    /// What `eke cache enable` wrote is unchanged.
    pub stands: bool,
}

/// `cache warm`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheWarm {
    /// In the order of the arguments.
    pub paths: Vec<WarmedPath>,
}

/// A path that was read into a cache.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WarmedPath {
    /// Without links.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub path: PathBuf,
    /// The mount point of its cache.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub place: PathBuf,
    /// How long it took.
    pub seconds: f64,
    /// How much of it was read and kept.
    #[serde(flatten)]
    pub progress: WarmProgress,
}

impl WarmedPath {
    /// True if all of it is in memory now.
    pub fn is_whole(&self) -> bool {
        let progress = &self.progress;
        !progress.full && progress.failed == 0 && progress.incompressible.0 == 0
    }
}

/// `cache umount`.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheUmount {
    /// Where it was mounted.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub place: PathBuf,
    /// The backing directory.
    #[serde(with = "eke_model::path_text")]
    #[cfg_attr(test, schemars(with = "String"))]
    pub dir: PathBuf,
    /// True if its supervisor unmounted it. If that was dead or silent, `eke` did.
    pub by_supervisor: bool,
    /// Unmounted although files may be open there.
    pub lazy: bool,
    /// Another compressed page cache below it is visible now.
    pub under: bool,
}
