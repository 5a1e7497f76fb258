//! `eke bench io`: read latency and program starts beside writers, on a slow disk; and `eke bench io-overhead`: the cost of measuring.
//!
//! - [`plan`]: variants, writers, and the order of the runs (pure)
//! - [`load`]: the writers' processes; the reader is [`eke_bench_startup::reader`], at its own rate
//! - [`disk`]: the disk and its files; [`setting`]: applies a variant; [`trial`]: one run
//! - [`report`]: the report, [`limits`]: notes on what limits a variant (both pure); [`overhead`]: the cost of measuring
//!
//! The writers and the governor end with this process. The journal restores settings, or they end with the disk. The next experiment or
//! `eke down` removes the disk of a killed one.

pub mod disk;
pub mod limits;
pub mod load;
mod overhead;
pub mod plan;
pub mod report;
pub mod setting;
pub mod trial;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use eke_linux::Root;
use eke_present::progress::Progress;
use eke_results::report::Report;

pub use overhead::{Overhead, overhead};
use plan::{Variant, Writer};

/// What the user asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The disk, one of the slow disk's profiles.
    pub disk: String,
    /// How often each run is made.
    pub repeats: usize,
    /// The variants.
    pub variants: Vec<Variant>,
    /// The writers.
    pub writers: Vec<Writer>,
    /// Before it is measured, in seconds: the governor finds its way, and what is dirty reaches its limit.
    pub warm_up_s: u64,
    /// How long it is measured, in seconds.
    pub measured_s: u64,
    /// Reads a second.
    pub rate: u32,
}

/// The experiment's surroundings.
pub struct Bench<'a> {
    /// The machine.
    pub root: &'a Root,
    /// `eke`.
    pub program: PathBuf,
    /// `eke-io`.
    pub sensor: PathBuf,
    /// What the user asks for.
    pub options: Options,
    /// The command line that makes it again.
    pub command: String,
    /// Who shows how far it is.
    pub progress: &'a dyn Progress,
    /// Set by a signal.
    pub shutdown: &'a AtomicBool,
}

/// Why it could not be held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk.
    #[error(transparent)]
    Disk(#[from] eke_slow_disk::Error),
    /// Its place.
    #[error(transparent)]
    Stage(#[from] eke_bench_core::stage::Error),
    /// A setting.
    #[error(transparent)]
    Setting(#[from] eke_io::compare::Error),
    /// Latencies cannot be measured.
    #[error(transparent)]
    Sense(#[from] eke_io::sense::Refused),
    /// A program that cannot be started, or failed.
    #[error("{program}: {why}")]
    Program {
        /// Which.
        program: String,
        /// What happened.
        why: String,
    },
    /// What cannot be.
    #[error("{0}")]
    Usage(String),
    /// A signal came; everything is as before.
    #[error("interrupted; everything is as it was before")]
    Interrupted,
}

/// Holds it.
///
/// # Errors
/// See [`Error`]; nothing is left then. A variant that this kernel has not is left out, which the report says.
pub fn run(bench: &Bench<'_>) -> Result<Report, Error> {
    // a setting that a dead one left is of a device that may be the next one's
    eke_io::compare::setting::undo_leftovers(bench.root)?;
    let runs = plan::runs(&bench.options);
    bench.progress.planned(runs.len());
    let mut held = Vec::new();
    let mut notes = Vec::new();
    for run in runs {
        bench.progress.begins(&run.name(bench.options.repeats));
        match trial::run(bench, &run) {
            Ok(trial) => held.push((run, trial)),
            Err(Error::Interrupted) => return Err(Error::Interrupted),
            Err(e) if bench.shutdown.load(Ordering::Relaxed) => {
                drop(e);
                return Err(Error::Interrupted);
            }
            Err(e) => {
                notes.push(format!("{} beside {} is left out: {e}.", run.variant.name(), run.writer.name()))
            }
        }
    }
    bench.progress.done();
    if held.is_empty() {
        return Err(Error::Usage(format!("no run could be held: {}", notes.join(" "))));
    }
    Ok(report::report(bench, held, notes))
}
