//! `eke bench store`: the throughput of the block store, compared with memcpy, LZ4 alone, and a cache that programs use today.
//!
//! - [`corpus`]: the content of the blocks; `caches`: the caches that are compared
//! - `operations`: the operations of a thread, `load`: threads that repeat them; `memory`: the process's memory
//! - `plan`, `metrics`: variants, cases and metrics; `measure`: the measurements

mod caches;
pub mod corpus;
mod load;
mod measure;
mod memory;
mod metrics;
mod operations;
mod plan;

use std::cell::OnceCell;
use std::fmt;
use std::io;
use std::path::PathBuf;

use eke_bench_core::{Environment, Experiment, Results, shuffled};
use eke_linux::parse;
use eke_model::units::Bytes;
use eke_results::report::Report;
use eke_results::rows::{Params, Rows};

use corpus::Corpus;
use measure::{Caches, Measurement};
use plan::{Case, Subject};

/// The block sizes that are compared, in bytes.
const SIZES: [usize; 4] = [16 << 10, 32 << 10, 64 << 10, 128 << 10];
/// The most bytes of the corpus.
const MOST: Bytes = Bytes::mib(256);
/// The most bytes of the corpus of a quick run.
const MOST_IF_QUICK: Bytes = Bytes::mib(32);
/// The corpus's share of available memory. Memory holds it once uncompressed, and about three times compressed for each block size.
const SHARE_OF_AVAILABLE: f64 = 0.08;
/// How often each measurement is made.
const ROUNDS: usize = 3;

/// A note on the memory metrics.
const HEAP: &str = "quick_cache's blocks are on the heap that the whole process shares, and fill existing holes: its memory is larger than the growth measured here, so \"mixed, memory\" and \"mixed, bytes per byte of memory\" are too good for it. \"Bytes per byte of memory by block size\" is each cache's own account.";

/// The user's options.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The directory of the corpus; `None` for files of this machine.
    pub corpus: Option<PathBuf>,
    /// The most threads.
    pub threads: usize,
    /// The length of each measurement in seconds.
    pub seconds: f64,
    /// The size of a block in bytes.
    pub block: usize,
    /// Whether to use less content and one round.
    pub quick: bool,
}

impl Default for Options {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self { corpus: None, threads, seconds: 0.25, block: 64 << 10, quick: false }
    }
}

impl Options {
    /// The block sizes that are compared, ascending.
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

/// Why the experiment could not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The corpus's directory cannot be read.
    #[error("cannot read {}: {source}; give a directory with files for the blocks", path.display())]
    Corpus {
        /// The directory.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
    /// The files are too small.
    #[error("the files below {} have {found}, and at least {least} are needed; give a directory with more (--corpus DIR)", path.display())]
    TooLittle {
        /// The directory.
        path: PathBuf,
        /// The files' bytes.
        found: Bytes,
        /// The bytes needed.
        least: Bytes,
    },
    /// No block compresses well enough.
    #[error("no block of the files compresses by an eighth; give uncompressed files (--corpus DIR)")]
    NothingCompresses,
    /// The store does not support this block size.
    #[error("a block of {0}: give a power of two from 4K to 256K")]
    Block(Bytes),
    /// The time is not in the allowed range.
    #[error("{0} seconds for each measurement: give more than 0, and at most 60")]
    Seconds(f64),
    /// The store failed.
    #[error("the store: {0}")]
    Cache(String),
}

impl Error {
    fn of_cache(error: impl fmt::Display) -> Self {
        Self::Cache(error.to_string())
    }

    /// Whether an option is wrong.
    pub const fn is_usage(&self) -> bool {
        matches!(self, Self::Block(_) | Self::Seconds(_))
    }
}

/// The experiment. It changes nothing of the machine.
pub struct Store {
    options: Options,
    /// The fixture's blocks borrow from it.
    corpus: OnceCell<Corpus>,
}

impl Store {
    /// The experiment with these options.
    pub fn new(options: Options) -> Self {
        Self { options, corpus: OnceCell::new() }
    }
}

/// One measurement of the plan.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    case: Case,
    subject: Subject,
    /// The round, from 0.
    round: usize,
}

impl Experiment for Store {
    type Fixture<'e> = Caches<'e>;
    type Run = Run;
    type Measurement = (Params, Vec<Measurement>);
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        notes: &mut Vec<String>,
    ) -> Result<Caches<'e>, Error> {
        self.options.check()?;
        environment.progress.print("Reading files and filling caches with their blocks.");
        let corpus = corpus(environment, &self.options)?;
        let caches = Caches::fill(environment, &self.options, self.corpus.get_or_init(|| corpus))?;
        notes.extend(caches.notes.iter().cloned());
        Ok(caches)
    }

    fn plan(&self, caches: &Caches<'_>) -> Vec<Run> {
        let cases = Case::all(&self.options, caches.sizes());
        let mut runs = Vec::new();
        for round in 0..self.rounds() {
            for case in &cases {
                let of_case = |subject: Subject| Run { case: *case, subject, round };
                runs.extend(shuffled(case.subjects(), round).into_iter().map(of_case));
            }
        }
        runs
    }

    fn name(&self, _caches: &Caches<'_>, Run { case, subject, round }: &Run) -> String {
        format!("{}, {case:?}, {} of {}", subject.name(), round + 1, self.rounds())
    }

    fn measure(
        &self,
        caches: &mut Caches<'_>,
        run: &Run,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Self::Measurement>, Error> {
        caches.measure(run.case, run.subject).map(Some)
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        _caches: &mut Caches<'_>,
        results: Results<Run, Self::Measurement>,
    ) -> Report {
        let mut rows = Rows::default();
        for (run, (params, measurements)) in results.measured {
            for (metric, unit, value) in measurements {
                rows.add(run.subject.name(), &params, metric, unit, value);
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

/// Reads the corpus: enough for a few blocks, and not more than the machine has memory for.
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
        "Each measurement took {} s. All run on the same CPUs, one after the other; background load affects them too.",
        options.seconds
    ));
    notes.push(HEAP.to_owned());
    notes.extend(options.quick.then(|| {
        "A quick run: little content, each measurement once; a small difference can be chance.".to_owned()
    }));
    Report {
        variants: Subject::ALL.map(Subject::variant).to_vec(),
        metrics: metrics::metrics(),
        rows: rows.done(),
        notes,
        ..environment.report("store")
    }
}
