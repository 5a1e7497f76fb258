//! `eke bench startup`: the time of program starts: cold, warm, and with prefetchers.
//!
//! It repeats the experiment of Esfahbod's thesis on preload ("Preload: an adaptive prefetching daemon", Toronto 2006, tables 6.1 to 6.4),
//! and adds what the thesis could not measure: cold dentries and inodes, a second reader on the disk, and reads that were not used.
//!
//! ```text
//! plan ─> image of packages on a slow disk, mounted anew for each run ─> launcher (own mounts) ─> program ─> window, or its end ─> metrics
//!                                   └─ prefetcher: preload's own daemon, or eke-prefetch; both learn from launches first
//! ```
//!
//! - [`plan`]: variants, disks, and the order of the runs (pure)
//! - [`programs`]: the programs, as data; [`packages`], [`tree`]: the files on their disk
//! - [`disk`]: that disk, mounted anew for each run, and its read counters; [`fixture`]: disk, screen and home directory
//! - [`launch`]: one launch, in a process of its own; [`launcher`], [`child_process`]: the other end; [`maps`], [`calls`]: files and system
//!   calls of a launch (pure)
//! - [`prefetcher`]: preload's daemon and eke's
//! - [`trial`]: one run; [`ten`]: ten programs in a row; [`harm`], [`reader`]: a second reader on the same disk; [`cost`]: CPU time
//! - [`metrics`], [`report`]: the metrics and the report (pure)
//!
//! The launcher, the prefetcher and the X server end with this process. The test image's directory has its owner in its name, so the next
//! experiment or `eke down` removes that of a killed one.

pub mod calls;
mod child_process;
pub mod cost;
pub mod disk;
pub mod error;
mod experiment;
pub mod fixture;
pub mod harm;
pub mod launch;
pub mod launcher;
pub mod maps;
pub mod metrics;
pub mod packages;
pub mod plan;
pub mod prefetcher;
pub mod programs;
pub mod reader;
pub mod report;
pub mod ten;
pub mod tree;
pub mod trial;

use std::path::PathBuf;
use std::time::Duration;

pub use error::Error;
pub use experiment::Startup;
use plan::Variant;
use programs::{Program, Set};

/// The options.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Which programs are measured if none is named.
    pub set: Set,
    /// Rounds.
    pub repeats: usize,
    /// Slow disks by name, `None` for this machine's own disk.
    pub disks: Vec<Option<String>>,
    /// The variants; all if empty.
    pub variants: Vec<Variant>,
    /// The programs; those of the set if empty.
    pub programs: Vec<&'static Program>,
    /// preload's cycle, in seconds. Its default is 20; a shorter one trains it in less time.
    pub preload_cycle_s: u64,
    /// The longest launch.
    pub patience: Duration,
    /// A directory with a PDF for the viewer, instead of this machine's documentation.
    pub documents: Option<PathBuf>,
    /// Measure a second reader on the disk, too.
    pub harm: bool,
    /// Measure the time in system calls, too, in another launch each.
    pub calls: bool,
    /// Start ten programs in a row, too.
    pub ten: bool,
    /// Measure the CPU time of tracing launches, too.
    pub cost: bool,
}
