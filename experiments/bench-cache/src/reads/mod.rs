//! `eke bench reads`: reads of files through a cache's mount, compared with the same reads of the files themselves.
//!
//! The files are on this machine's own disk, which is not slowed down. The experiment measures the cost of the mount; `eke bench web`
//! measures what the mount saves.
//!
//! - `files`: the files and the mount over them; `work`: the readers; `report`: names of variants and metrics

mod files;
mod report;
mod work;

use std::path::PathBuf;
use std::time::Duration;

use eke_bench_core::fault::{self, Io};
use eke_bench_core::{Environment, Experiment, Results, shuffled};
use eke_model::units::Bytes;
use eke_results::report::Report;
use eke_results::rows::{Rows, params};

use crate::store;
use files::MountedFiles;
pub(crate) use work::Aligned;
use work::{Kind, Measurement, Work};

/// How often each is measured.
const ROUNDS: usize = 3;
/// The shortest and the longest measurement, in seconds.
const SHORTEST_S: f64 = 1e-9;
const LONGEST_S: f64 = 60.0;

/// The user's options.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The directory of the corpus; `None` for files of this machine.
    pub corpus: Option<PathBuf>,
    /// The directory for the files, on the disk to measure.
    pub dir: PathBuf,
    /// The bytes of content.
    pub size: Bytes,
    /// The length of each measurement in seconds.
    pub seconds: f64,
    /// Whether to measure each case once.
    pub quick: bool,
}

/// Why the experiment could not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The corpus for the files fails.
    #[error(transparent)]
    Corpus(#[from] store::Error),
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] Io),
    /// `eke cache` failed.
    #[error(transparent)]
    Cache(#[from] fault::Command),
    /// A signal cut a measurement short, or a reader panicked.
    #[error("interrupted")]
    Interrupted,
    /// The time is not in the allowed range.
    #[error("{0} seconds for each measurement: give more than 0, and at most 60")]
    Seconds(f64),
}

/// The source of the data that readers get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The disk: the files themselves with O_DIRECT.
    Disk,
    /// The page cache: the files themselves, read before.
    Native,
    /// The store: through the mount, with the mount's pages dropped before.
    Store,
    /// The page cache over the mount: through the mount, read before.
    Mount,
}

impl Source {
    pub const ALL: [Self; 4] = [Self::Disk, Self::Native, Self::Store, Self::Mount];
}

/// The experiment. It changes nothing of the machine but a directory and a mount, which it removes afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Reads(pub Options);

/// One measurement of the plan.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    kind: Kind,
    source: Source,
    /// The round, from 0.
    round: usize,
}

impl Experiment for Reads {
    type Fixture<'e> = MountedFiles<'e>;
    type Run = Run;
    type Measurement = Vec<Measurement>;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        _notes: &mut Vec<String>,
    ) -> Result<MountedFiles<'e>, Error> {
        if !(SHORTEST_S..=LONGEST_S).contains(&self.0.seconds) {
            return Err(Error::Seconds(self.0.seconds));
        }
        environment.progress.print("Writing files, and reading them once through the mount.");
        MountedFiles::make(environment, &self.0)
    }

    fn plan(&self, _files: &MountedFiles<'_>) -> Vec<Run> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let kinds =
            [Kind::Sequential { readers: 1 }, Kind::Sequential { readers: cpus.max(2) }, Kind::Random];
        let mut runs = Vec::new();
        for round in 0..self.rounds() {
            for kind in kinds {
                runs.extend(shuffled(&Source::ALL, round).into_iter().map(|source| Run {
                    kind,
                    source,
                    round,
                }));
            }
        }
        runs
    }

    fn name(&self, _files: &MountedFiles<'_>, Run { kind, source, round }: &Run) -> String {
        format!("{}, {}, {} of {}", source.name(), kind.name(), round + 1, self.rounds())
    }

    fn measure(
        &self,
        files: &mut MountedFiles<'_>,
        run: &Run,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Vec<Measurement>>, Error> {
        let (paths, stop) = (files.files(run.source), files.environment.shutdown);
        let work =
            Work { files: paths, source: run.source, time: Duration::from_secs_f64(self.0.seconds), stop };
        work.measure(run.kind).map(Some)
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        files: &mut MountedFiles<'_>,
        results: Results<Run, Vec<Measurement>>,
    ) -> Report {
        let mut rows = Rows::default();
        for (run, measurements) in results.measured {
            let params = params([("readers", run.kind.readers().into())]);
            for (metric, unit, value) in measurements {
                rows.add(run.source.name(), &params, metric, unit, [value]);
            }
        }
        let notes = results.notes.into_iter().chain(files.notes(&self.0)).collect();
        report::report(environment, &self.0, rows.done(), notes)
    }

    fn tear_down(&self, files: MountedFiles<'_>) -> Result<(), Error> {
        files.teardown()
    }

    fn is_usage(error: &Error) -> bool {
        matches!(error, Error::Seconds(_))
    }
}

impl Reads {
    fn rounds(&self) -> usize {
        if self.0.quick { 1 } else { ROUNDS }
    }
}
