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

use eke_bench_core::{Environment, Experiment, OnFailure, Results};
use eke_results::report::Report;

pub use overhead::{Overhead, overhead};
use plan::{Run, Variant, Writer};
use trial::Trial;

/// The program that measures latencies and governs.
pub(crate) const SENSOR: &str = "eke-io";

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

/// The experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Io(pub Options);

impl Experiment for Io {
    const NEEDS_ROOT: Option<&'static str> =
        Some("an experiment makes slow disks and sets how they are used, which needs root");

    type Fixture<'e> = &'e Environment<'e>;
    type Run = Run;
    type Measurement = Trial;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        _notes: &mut Vec<String>,
    ) -> Result<&'e Environment<'e>, Error> {
        // a setting that a dead one left is of a device that may be the next one's
        eke_io::compare::setting::undo_leftovers(environment.root)?;
        Ok(environment)
    }

    fn plan(&self, _fixture: &&Environment<'_>) -> Vec<Run> {
        plan::runs(&self.0)
    }

    fn name(&self, _fixture: &&Environment<'_>, run: &Run) -> String {
        run.name(self.0.repeats)
    }

    fn measure(
        &self,
        fixture: &mut &Environment<'_>,
        run: &Run,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Trial>, Error> {
        trial::run(fixture, &self.0, run).map(Some)
    }

    /// A kernel lacks some of the variants.
    fn on_failure(&self, _fixture: &&Environment<'_>, _error: &Error, _tried: usize) -> OnFailure {
        OnFailure::LeaveOut
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        _fixture: &mut &Environment<'_>,
        results: Results<Run, Trial>,
    ) -> Report {
        report::report(environment, &self.0, results)
    }

    fn is_usage(error: &Error) -> bool {
        matches!(error, Error::Usage(_))
    }
}
