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

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use eke_linux::{Root, parse};
use eke_model::units::Bytes;
use eke_present::progress::Progress;
use eke_results::report::{Machine, Report};
use eke_results::rows::Rows;

use corpus::Corpus;
use field::Field;
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

/// The experiment's surroundings.
pub struct Bench<'a> {
    /// The machine.
    pub root: &'a Root,
    /// What the user asks for.
    pub options: Options,
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
    /// A signal came.
    #[error("interrupted")]
    Interrupted,
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

/// Holds the experiment: every measurement of everybody once, then all again.
///
/// # Errors
/// What it needs is missing. It changes nothing of the machine.
pub fn run(bench: &Bench) -> Result<Report, Error> {
    bench.options.check()?;
    bench.progress.say("Reading files and filling caches with their blocks.");
    let corpus = corpus(bench)?;
    let field = Field::set(bench, &corpus)?;
    let rows = measured(bench, &field)?;
    Ok(report(bench, field, rows))
}

/// Enough for a few blocks, at most what this machine has room for.
fn corpus(bench: &Bench) -> Result<Corpus, Error> {
    let most = if bench.options.quick { MOST_IF_QUICK } else { MOST };
    let available = parse::meminfo::parse(&bench.root.read("proc/meminfo").unwrap_or_default()).available;
    let least = 16 * bench.options.sizes().last().copied().unwrap_or(0);
    let most = most.min(available.scaled(SHARE_OF_AVAILABLE)).max(Bytes(least as u64));
    match &bench.options.corpus {
        Some(dir) => Corpus::of(dir, least, most),
        None => Corpus::of_machine(least, most),
    }
}

/// Each round begins with another: what a round warms up or wears out favours nobody.
fn measured(bench: &Bench, field: &Field<'_>) -> Result<Rows, Error> {
    let cases = Case::all(&bench.options, field.stands());
    let rounds = if bench.options.quick { 1 } else { ROUNDS };
    bench.progress.planned(rounds * cases.iter().map(|case| case.who().len()).sum::<usize>());
    let mut rows = Rows::default();
    for round in 0..rounds {
        for case in &cases {
            let all = case.who();
            for who in all.iter().cycle().skip(round % all.len()).take(all.len()) {
                bench.progress.begins(&format!("{}, {:?}, {} of {rounds}", who.name(), case, round + 1));
                add(field, *case, *who, &mut rows)?;
                if bench.shutdown.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
            }
        }
    }
    bench.progress.done();
    Ok(rows)
}

fn add(field: &Field<'_>, case: Case, who: Who, rows: &mut Rows) -> Result<(), Error> {
    let (params, figures) = field.measure(case, who)?;
    for (metric, unit, value) in figures {
        rows.add(who.name(), &params, metric, unit, value);
    }
    Ok(())
}

fn report(bench: &Bench, field: Field<'_>, rows: Rows) -> Report {
    let mut notes = field.notes;
    notes.push(format!(
        "Each measurement took {} s. All of them run on the same CPUs in turns; what else ran on the machine is in them too.",
        bench.options.seconds
    ));
    notes.push(HEAP.to_owned());
    notes.extend(
        bench.options.quick.then(|| {
            "A quick run: little content, and each once: a small difference can be chance.".to_owned()
        }),
    );
    Report {
        experiment: "store".into(),
        command: bench.command.clone(),
        machine: Machine::of(bench.root),
        variants: Who::ALL.map(Who::variant).to_vec(),
        metrics: metrics::metrics(),
        rows: rows.done(),
        notes,
        ..Report::default()
    }
}
