//! `eke bench io`: read latency and program starts beside writers, on a slow disk; `eke bench io-overhead`: the cost of measuring; and
//! `eke bench disk`, which is [`published`]: a slow disk beside a real one.
//!
//! - [`plan`]: variants, writers, and the order of the runs (pure)
//! - [`load`]: the writers' processes; the reader is [`eke_bench_startup::reader`], at its own rate
//! - [`disk`]: the disk and its files; [`setting`]: applies a variant; [`trial`]: one run
//! - [`report`]: the report, [`limits`]: notes on what limits a variant (both pure); [`overhead`]: the cost of measuring
//!
//! What is measured is kept until the result is written: the same command continues an interrupted one.
//!
//! The writers and the governor end with this process. The journal restores settings, or they end with the disk. The next experiment or
//! `eke down` removes the disk of a killed one.

pub mod disk;
pub mod limits;
pub mod load;
mod overhead;
pub mod plan;
pub mod published;
pub mod report;
pub mod setting;
pub mod trial;

use std::path::PathBuf;

use eke_bench_core::kept::{self, Kept, Measured};
use eke_bench_core::{Environment, Experiment, OnFailure, Results};
use eke_results::report::Report;

pub use overhead::{Overhead, overhead};
use plan::{Run, Variant, Writer};
use trial::Trial;

/// Why two peers are missing.
const GROUPS: &str = "io.latency and io.cost are not measured: they divide a disk among groups of cgroup v2, and here reader and writer are in one.";

/// The program that measures latencies and governs.
pub(crate) const SENSOR: &str = "eke-io";

/// The user's options.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Options {
    /// The name of a slow disk's profile.
    pub disk: String,
    /// How many rounds.
    pub repeats: usize,
    /// How many of them have every variant; the others have those that must be known best.
    pub fewer: usize,
    /// The variants.
    pub variants: Vec<Variant>,
    /// The writers.
    pub writers: Vec<Writer>,
    /// The warm-up in seconds: the governor finds its settings, and dirty memory reaches its limit.
    pub warm_up_s: u64,
    /// The length of the measurement in seconds.
    pub measured_s: u64,
    /// The most reads per second.
    pub rate: u32,
    /// Whether to continue what another commit has measured.
    pub any_commit: bool,
}

/// Why the experiment could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] eke_slow_disk::Error),
    /// The scratch directory failed.
    #[error(transparent)]
    TestImage(#[from] eke_bench_core::test_image::Error),
    /// A setting cannot be changed.
    #[error(transparent)]
    Setting(#[from] eke_io::compare::Error),
    /// Latencies cannot be measured.
    #[error(transparent)]
    Sense(#[from] eke_io::sensor::Refused),
    /// What would be continued is of other code, or cannot be kept.
    #[error(transparent)]
    Kept(#[from] kept::Error),
    /// A command failed.
    #[error(transparent)]
    Command(#[from] eke_bench_core::fault::Command),
    /// A program cannot be started, or failed.
    #[error("{program}: {why}")]
    Program {
        /// The program.
        program: String,
        /// The reason.
        why: String,
    },
    /// An option is wrong.
    #[error("{0}")]
    Usage(String),
    /// A signal came.
    #[error("interrupted")]
    Interrupted,
}

/// The experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Io(pub Options);

/// What runs share.
pub struct Fixture<'e> {
    environment: &'e Environment<'e>,
    kept: Kept<Trial>,
}

fn cache(environment: &Environment<'_>) -> PathBuf {
    environment.cache.join("io")
}

impl Experiment for Io {
    const NEEDS_ROOT: Option<&'static str> =
        Some("an experiment makes slow disks and sets how they are used, which needs root");

    type Fixture<'e> = Fixture<'e>;
    type Run = Run;
    type Measurement = Measured<Trial>;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        notes: &mut Vec<String>,
    ) -> Result<Fixture<'e>, Error> {
        // The new disk may get the device name that a setting of a killed experiment belongs to.
        eke_io::compare::setting::undo_leftovers(environment.root)?;
        let commit = &environment.provenance.commit;
        let kept = Kept::open(&cache(environment), &environment.command, "runs", commit);
        kept.check(self.0.any_commit)?;
        notes.push(GROUPS.to_owned());
        Ok(Fixture { environment, kept })
    }

    fn plan(&self, _fixture: &Fixture<'_>) -> Vec<Run> {
        plan::runs(&self.0)
    }

    fn name(&self, _fixture: &Fixture<'_>, run: &Run) -> String {
        run.name(self.0.repeats)
    }

    fn measure(
        &self,
        fixture: &mut Fixture<'_>,
        run: &Run,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Measured<Trial>>, Error> {
        let name = run.name(self.0.repeats);
        if let Some(kept) = fixture.kept.get(&name) {
            return Ok(Some(kept));
        }
        let trial = trial::run(fixture.environment, &self.0, run)?;
        Ok(Some(fixture.kept.add(&name, trial)?))
    }

    /// A run fails where the kernel lacks the variant.
    fn on_failure(&self, _fixture: &Fixture<'_>, _error: &Error, _tried: usize) -> OnFailure {
        OnFailure::LeaveOut
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        _fixture: &mut Fixture<'_>,
        results: Results<Run, Measured<Trial>>,
    ) -> Report {
        report::report(environment, &self.0, results)
    }

    fn is_usage(error: &Error) -> bool {
        matches!(error, Error::Usage(_) | Error::Kept(kept::Error::Others { .. }))
    }

    fn written(&self, environment: &Environment<'_>) {
        kept::forget(&cache(environment), &environment.command);
    }
}
