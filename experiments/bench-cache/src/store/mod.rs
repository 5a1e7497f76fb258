//! `eke bench store`: what the block store does in a second, beside memcpy, LZ4 alone, and a cache that programs use today.
//!
//! - [`corpus`]: what the blocks are filled with; `caches`: what is compared
//! - `turns`: what a thread does, `load`: threads that do it; `memory`: what the kernel counts
//! - `plan`, `metrics`: whose figures, of what; `field`: the measurements

mod caches;
pub mod corpus;
mod field;
mod load;
mod memory;
mod metrics;
mod plan;
mod turns;

use std::cell::OnceCell;
use std::fmt;
use std::io;
use std::path::PathBuf;

use eke_bench_core::{Environment, Experiment, Results, rotation};
use eke_linux::parse;
use eke_model::units::Bytes;
use eke_results::report::Report;
use eke_results::rows::{Params, Rows};

use corpus::Corpus;
use field::{Field, Figure};
use plan::{Case, Who};

/// Sizes of blocks that are compared, bytes.
const SIZES: [usize; 4] = [16 << 10, 32 << 10, 64 << 10, 128 << 10];
/// What is read of files at most.
const MOST: Bytes = Bytes::mib(256);
/// The same if it is to be quick.
const MOST_IF_QUICK: Bytes = Bytes::mib(32);
/// The files are in memory once, and packed about three times for each size of blocks.
const SHARE_OF_AVAILABLE: f64 = 0.08;
/// How often each measurement is made.
const ROUNDS: usize = 3;

/// What the reader of the memory figures must know.
const HEAP: &str = "quick_cache's blocks are on the heap that the whole process shares, and fill holes that are there already: its memory is larger than the growth that is seen here, so \"mixed, memory\" and \"mixed, held by memory\" are too good for it. \"Held by block size\" is each cache's own account.";

/// What the user asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Files; `None` for some of this machine.
    pub corpus: Option<PathBuf>,
    /// The most threads.
    pub threads: usize,
    /// How long each measurement takes, seconds.
    pub seconds: f64,
    /// Bytes of a block.
    pub block: usize,
    /// Less content, one round.
    pub quick: bool,
}

impl Default for Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { corpus: None, threads, seconds: 0.25, block: 64 << 10, quick: false }
    }
}

impl Options {
    /// The sizes of blocks that are compared, ascending.
    fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = SIZES.into_iter().chain([self.block]).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    fn check(&self) -> Result<(), Error> {
        if !self.block.is_power_of_two() || !(4 << 10..=256 << 10).contains(&self.block) {
            return Err(Error::Block(Bytes(self.block as u64)));
        }
        let is_time = self.seconds > 0.0 && self.seconds <= 60.0;
        if is_time { Ok(()) } else { Err(Error::Seconds(self.seconds)) }
    }
}

/// Why there are no figures.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No such directory.
    #[error("cannot read {}: {source}; give a directory with files for the blocks", path.display())]
    Corpus {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Not even a few blocks.
    #[error("the files below {} have {found}, and at least {least} are needed; give a directory with more (--corpus DIR)", path.display())]
    TooLittle {
        /// Below which.
        path: PathBuf,
        /// What there is.
        found: Bytes,
        /// What is needed.
        least: Bytes,
    },
    /// Only noise.
    #[error(
        "no block of the files compresses by an eighth; give files that are not compressed already (--corpus DIR)"
    )]
    NothingCompresses,
    /// Blocks that no store takes.
    #[error("a block of {0}: give a power of two from 4K to 256K")]
    Block(Bytes),
    /// No time, or too much of it.
    #[error("{0} seconds for each measurement: give more than 0, and at most 60")]
    Seconds(f64),
    /// The store itself.
    #[error("the store: {0}")]
    Cache(String),
}

impl Error {
    fn of_cache(error: impl fmt::Display) -> Self {
        Self::Cache(error.to_string())
    }

    /// Is it the user's wish that makes no sense?
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Block(_) | Self::Seconds(_))
    }
}

/// The experiment. It changes nothing of the machine.
pub struct Store {
    options: Options,
    /// The blocks of the fixture are parts of it.
    corpus: OnceCell<Corpus>,
}

impl Store {
    /// With these options.
    pub fn new(options: Options) -> Self {
        Self { options, corpus: OnceCell::new() }
    }
}

/// One measurement of the plan.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    case: Case,
    who: Who,
    /// From 0.
    round: usize,
}

impl Experiment for Store {
    type Fixture<'e> = Field<'e>;
    type Run = Run;
    type Measurement = (Params, Vec<Figure>);
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        notes: &mut Vec<String>,
    ) -> Result<Field<'e>, Error> {
        self.options.check()?;
        environment.progress.say("Reading files and filling caches with their blocks.");
        let corpus = corpus(environment, &self.options)?;
        let field = Field::set(environment, &self.options, self.corpus.get_or_init(|| corpus))?;
        notes.extend(field.notes.iter().cloned());
        Ok(field)
    }

    fn plan(&self, field: &Field<'_>) -> Vec<Run> {
        let cases = Case::all(&self.options, field.stands());
        let mut runs = Vec::new();
        for round in 0..self.rounds() {
            for case in &cases {
                let of_case = |who: &Who| Run { case: *case, who: *who, round };
                runs.extend(rotation(case.who(), round).map(of_case));
            }
        }
        runs
    }

    fn name(&self, _field: &Field<'_>, Run { case, who, round }: &Run) -> String {
        format!("{}, {case:?}, {} of {}", who.name(), round + 1, self.rounds())
    }

    fn measure(
        &self,
        field: &mut Field<'_>,
        run: &Run,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Self::Measurement>, Error> {
        field.measure(run.case, run.who).map(Some)
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        _field: &mut Field<'_>,
        results: Results<Run, Self::Measurement>,
    ) -> Report {
        let mut rows = Rows::default();
        for (run, (params, figures)) in results.measured {
            for (metric, unit, value) in figures {
                rows.add(run.who.name(), &params, metric, unit, value);
            }
        }
        report(environment, &self.options, results.notes, rows)
    }

    fn is_usage(error: &Error) -> bool {
        error.is_usage()
    }
}

impl Store {
    fn rounds(&self) -> usize {
        if self.options.quick { 1 } else { ROUNDS }
    }
}

/// Enough for a few blocks, at most what this machine has room for.
fn corpus(environment: &Environment<'_>, options: &Options) -> Result<Corpus, Error> {
    let most = if options.quick { MOST_IF_QUICK } else { MOST };
    let available =
        parse::meminfo::parse(&environment.root.read("proc/meminfo").unwrap_or_default()).available;
    let least = 16 * options.sizes().last().copied().unwrap_or(0);
    let most = most.min(available.scaled(SHARE_OF_AVAILABLE)).max(Bytes(least as u64));
    match &options.corpus {
        Some(dir) => Corpus::of(dir, least, most),
        None => Corpus::of_machine(least, most),
    }
}

fn report(environment: &Environment<'_>, options: &Options, mut notes: Vec<String>, rows: Rows) -> Report {
    notes.push(format!(
        "Each measurement took {} s. All of them run on the same CPUs in turns; what else ran on the machine is in them too.",
        options.seconds
    ));
    notes.push(HEAP.to_owned());
    notes.extend(
        options.quick.then(|| {
            "A quick run: little content, and each once: a small difference can be chance.".to_owned()
        }),
    );
    Report {
        variants: Who::ALL.map(Who::variant).to_vec(),
        metrics: metrics::metrics(),
        rows: rows.done(),
        notes,
        ..environment.report("store")
    }
}
