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
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use eke_linux::Root;
use eke_model::units::Bytes;
use eke_present::progress::Progress;
use eke_results::report::Report;
use eke_results::rows::{Rows, params};

use crate::store;
use place::Place;
use work::{Kind, Work};

/// How often each is measured.
const ROUNDS: usize = 3;

/// What the user asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Files to cut the content from; `None` for some of this machine.
    pub corpus: Option<PathBuf>,
    /// Where the files are put, on the disk that is to be measured.
    pub dir: PathBuf,
    /// How much content.
    pub size: Bytes,
    /// How long each measurement takes.
    pub time: Duration,
    /// Once each.
    pub quick: bool,
}

/// The experiment's surroundings.
pub struct Bench<'a> {
    /// The machine.
    pub root: &'a Root,
    /// What the user asks for.
    pub options: Options,
    /// `eke`, beside which `eke-cache` lies.
    pub program: PathBuf,
    /// The command line that makes it again.
    pub command: String,
    /// Who shows how far it is.
    pub progress: &'a dyn Progress,
    /// Set by a signal.
    pub shutdown: &'a AtomicBool,
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
    /// A signal came.
    #[error("interrupted")]
    Interrupted,
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

/// Holds the experiment. It changes nothing of the machine but a directory and a mount, which are gone afterwards.
///
/// # Errors
/// What it needs is missing.
pub fn run(bench: &Bench) -> Result<Report, Error> {
    bench.progress.say("Writing files, and reading them once through the mount.");
    let place = Place::set(bench)?;
    let rounds = if bench.options.quick { 1 } else { ROUNDS };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let kinds = [Kind::Sequential { readers: 1 }, Kind::Sequential { readers: cpus.max(2) }, Kind::Random];
    bench.progress.planned(rounds * kinds.len() * Who::ALL.len());
    let mut rows = Rows::default();
    for round in 0..rounds {
        for kind in kinds {
            for turn in 0..Who::ALL.len() {
                let who = Who::ALL[(turn + round) % Who::ALL.len()];
                bench.progress.begins(&format!(
                    "{}, {}, {} of {rounds}",
                    who.name(),
                    kind.words(),
                    round + 1
                ));
                measure(bench, &place, who, kind, &mut rows)?;
            }
        }
    }
    bench.progress.done();
    let notes = place.notes(bench);
    place.strike()?;
    Ok(report::report(bench, rows.done(), notes))
}

fn measure(bench: &Bench, place: &Place, who: Who, kind: Kind, rows: &mut Rows) -> Result<(), Error> {
    let work = Work { files: place.files(who), who, time: bench.options.time, stop: bench.shutdown };
    let figures = work.measure(kind)?;
    if bench.shutdown.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    let params = params([("readers", kind.readers().into())]);
    for (metric, unit, value) in figures {
        rows.add(who.name(), &params, metric, unit, [value]);
    }
    Ok(())
}
