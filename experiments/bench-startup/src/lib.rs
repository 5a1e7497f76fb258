//! `eke bench startup`: how long programs take to start, cold, warm, and with what was read in before.
//!
//! The experiment of Esfahbod's thesis on preload ("Preload: an adaptive prefetching daemon", Toronto 2006, tables 6.1 to 6.4), with
//! what it could not measure: dentries and inodes are cold too, another program is busy on the disk, and what was read for nothing.
//!
//! ```text
//! this process: disk, X server ──starts──> launcher { own mounts, tree of the stage } ──execs──> program ──> window, or its end
//!               └─ prefetcher: preload's own daemon, or eke-prefetch
//! ```
//!
//! - [`plan`]: variants, disks, and the order of the runs (pure)
//! - [`programs`]: the programs, as data; [`packages`], [`tree`]: what is on their disk
//! - [`disk`]: that disk, mounted anew for each run, and what was read from it
//! - [`launch`]: one launch, in a process of its own; [`launcher`]: its other end; [`maps`], [`calls`]: what a launch used (pure)
//! - [`prefetcher`]: who reads ahead: preload's daemon, eke's
//! - [`trial`]: one run; [`ten`]: ten programs in a row; [`harm`], [`reader`]: another program on the same disk;
//!   [`cost`]: CPU time
//! - [`metrics`], [`report`]: what runs come to (pure)
//!
//! Nothing stays: the launcher, the prefetcher and the X server end with this process; the stage's name says its owner, and the next
//! experiment or `eke down` sweeps what is left.

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
use programs::Program;

/// What the user asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Three programs and one disk, without the ten in a row.
    pub quick: bool,
    /// How often each run is made.
    pub repeats: usize,
    /// Disks by name, `None` for this machine's own.
    pub disks: Vec<Option<String>>,
    /// Only these; all if empty.
    pub variants: Vec<Variant>,
    /// Only these; all if empty.
    pub programs: Vec<&'static Program>,
    /// preload's cycle, in seconds: 20 as it is shipped, less to train it in less time.
    pub preload_cycle_s: u64,
    /// How long a launch may take.
    pub patience: Duration,
    /// A directory with a PDF for the viewer, instead of this machine's documentation.
    pub documents: Option<PathBuf>,
    /// Also the other reader on the disk.
    pub harm: bool,
    /// Also the time in system calls, in one more launch each.
    pub calls: bool,
    /// Also ten programs in a row.
    pub ten: bool,
    /// Also the CPU time that it takes to see launches.
    pub cost: bool,
}
