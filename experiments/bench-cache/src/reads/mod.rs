//! `eke bench reads`: reads of files through a cache's mount, beside the same reads of the files themselves.
//!
//! Nothing is slow here: the files lie on this machine's own disk. It measures the way, not what it saves; that is [`super::web`].
//!
//! - `place`: files, and the mount over them; `work`: what readers do; `report`: how figures are named

mod place;
mod report;
mod work;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use eke_bench_core::{Environment, Experiment, Results, rotation};
use eke_model::units::Bytes;
use eke_results::report::Report;
use eke_results::rows::{Rows, params};

use crate::store;
use place::Place;
use work::{Figure, Kind, Work};

/// How often each is measured.
const ROUNDS: usize = 3;
/// The shortest and the longest measurement, in seconds.
const SHORTEST_S: f64 = 1e-9;
const LONGEST_S: f64 = 60.0;

/// What the user asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Files to cut the content from; `None` for some of this machine.
    pub corpus: Option<PathBuf>,
    /// Where the files are put, on the disk that is to be measured.
    pub dir: PathBuf,
    /// How much content.
    pub size: Bytes,
    /// How long each measurement takes, in seconds.
    pub seconds: f64,
    /// Once each.
    pub quick: bool,
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing to fill files with.
    #[error(transparent)]
    Corpus(#[from] store::Error),
    /// A file.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// `eke cache` failed.
    #[error("{command}: {answer}")]
    Cache {
        /// As typed.
        command: String,
        /// What it said.
        answer: String,
    },
    /// A measurement that a signal cut short, or that broke.
    #[error("interrupted")]
    Interrupted,
    /// No time, or too much of it.
    #[error("{0} seconds for each measurement: give more than 0, and at most 60")]
    Seconds(f64),
}

pub(crate) fn on(what: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { what, path, source }
}

/// Whose reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// The files themselves, past the kernel's cache.
    Disk,
    /// The files themselves, from the kernel's cache.
    Native,
    /// Through the mount, from the store: the kernel's pages over the mount are dropped before.
    Store,
    /// Through the mount, from the kernel's pages over it.
    Mount,
}

impl Who {
    pub const ALL: [Self; 4] = [Self::Disk, Self::Native, Self::Store, Self::Mount];
}

/// The experiment. It changes nothing of the machine but a directory and a mount, which are gone afterwards.
#[derive(Debug, Clone, PartialEq)]
pub struct Reads(pub Options);

/// One measurement of the plan.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    kind: Kind,
    who: Who,
    /// From 0.
    round: usize,
}

impl Experiment for Reads {
    type Fixture<'e> = Place<'e>;
    type Run = Run;
    type Measurement = Vec<Figure>;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        _notes: &mut Vec<String>,
    ) -> Result<Place<'e>, Error> {
        if !(SHORTEST_S..=LONGEST_S).contains(&self.0.seconds) {
            return Err(Error::Seconds(self.0.seconds));
        }
        environment.progress.say("Writing files, and reading them once through the mount.");
        Place::set(environment, &self.0)
    }

    fn plan(&self, _place: &Place<'_>) -> Vec<Run> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let kinds =
            [Kind::Sequential { readers: 1 }, Kind::Sequential { readers: cpus.max(2) }, Kind::Random];
        let mut runs = Vec::new();
        for round in 0..self.rounds() {
            for kind in kinds {
                runs.extend(rotation(&Who::ALL, round).map(|who| Run { kind, who: *who, round }));
            }
        }
        runs
    }

    fn name(&self, _place: &Place<'_>, Run { kind, who, round }: &Run) -> String {
        format!("{}, {}, {} of {}", who.name(), kind.words(), round + 1, self.rounds())
    }

    fn measure(
        &self,
        place: &mut Place<'_>,
        run: &Run,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Vec<Figure>>, Error> {
        let (files, stop) = (place.files(run.who), place.environment.shutdown);
        let work = Work { files, who: run.who, time: Duration::from_secs_f64(self.0.seconds), stop };
        work.measure(run.kind).map(Some)
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        place: &mut Place<'_>,
        results: Results<Run, Vec<Figure>>,
    ) -> Report {
        let mut rows = Rows::default();
        for (run, figures) in results.measured {
            let params = params([("readers", run.kind.readers().into())]);
            for (metric, unit, value) in figures {
                rows.add(run.who.name(), &params, metric, unit, [value]);
            }
        }
        let notes = results.notes.into_iter().chain(place.notes(&self.0)).collect();
        report::report(environment, &self.0, rows.done(), notes)
    }

    fn tear_down(&self, place: Place<'_>) -> Result<(), Error> {
        place.strike()
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
