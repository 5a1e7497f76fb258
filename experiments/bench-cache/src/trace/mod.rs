//! `eke bench trace`: the hit rate of each eviction policy, on synthetic and on recorded traces.
//!
//! - [`laws`]: synthetic traces; [`recorded`]: traces from files
//! - [`levels`]: a page cache in front of the store
//! - [`replay`]: the policies

pub mod laws;
pub mod levels;
pub mod recorded;
pub mod replay;

use std::path::PathBuf;

use eke_bench_core::{Environment, Experiment, Results};
use eke_cache_replay::Request;
use eke_model::units::Bytes;
use eke_results::report::{Metric, Report};
use eke_results::report::{less, more};
use eke_results::rows::{Params, Rows, params};

use levels::{behind, footprint, with_equal_weights};
use replay::{Policy, Served};

/// The size of an uncompressed block in bytes.
pub(crate) const BLOCK: u32 = 64 << 10;
/// Sizes of the cache, in percent of the total weight of the trace's blocks.
const SIZES: [u64; 6] = [1, 2, 5, 10, 20, 50];
const SIZES_IF_QUICK: [u64; 3] = [2, 10, 50];
/// The page cache in front of the store, in percent of the trace's blocks.
const PAGE_CACHE_PERCENT: u64 = 5;
/// The total memory when the store's share varies, in percent of the trace's uncompressed blocks.
const MEMORY_PERCENT: u64 = 20;
/// The store's shares of that memory, in percent.
const SHARES: [u64; 5] = [0, 20, 50, 80, 95];
const SEEDS: u64 = 3;

const HITS: &str = "hit rate";
const BYTES: &str = "byte hit rate";
const EQUAL_WEIGHTS: &str = "hit rate, equal weights";
const BEHIND: &str = "hit rate behind a page cache";
const READS: &str = "disk reads";

/// The experiment with the user's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Recorded traces; synthetic traces if empty.
    pub files: Vec<PathBuf>,
    /// Whether to use fewer sizes and one seed.
    pub quick: bool,
}

/// Why the experiment could not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file is not a trace.
    #[error("cannot replay {}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: recorded::NotATrace,
    },
    /// Two traces have the same name: their rows would be merged.
    #[error("two traces are called \"{0}\": give files whose names differ")]
    SameName(String),
}

/// All traces, read before the first replay.
pub struct Traces<'e> {
    environment: &'e Environment<'e>,
    all: Vec<laws::Trace>,
}

impl Experiment for Trace {
    type Fixture<'e> = Traces<'e>;
    type Run = usize;
    type Measurement = Rows;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        _notes: &mut Vec<String>,
    ) -> Result<Traces<'e>, Error> {
        Ok(Traces { environment, all: traces(self)? })
    }

    /// A run replays one trace with every policy.
    fn plan(&self, traces: &Traces<'_>) -> Vec<usize> {
        (0..traces.all.len()).collect()
    }

    fn name(&self, traces: &Traces<'_>, number: &usize) -> String {
        format!("{}, {} of {}", traces.all[*number].name, number + 1, traces.all.len())
    }

    fn measure(
        &self,
        traces: &mut Traces<'_>,
        number: &usize,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Rows>, Error> {
        let mut rows = Rows::default();
        for policy in Policy::ALL {
            if traces.environment.is_interrupted() {
                return Ok(None);
            }
            traces.environment.progress.doing(policy.name());
            add(&traces.all[*number], policy, sizes(self.quick), &mut rows);
        }
        Ok(Some(rows))
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        traces: &mut Traces<'_>,
        results: Results<usize, Rows>,
    ) -> Report {
        let mut rows = Rows::default();
        results.measured.into_iter().for_each(|(_, measured)| rows.merge(measured));
        report(environment, self, &traces.all, rows)
    }
}

fn sizes(quick: bool) -> &'static [u64] {
    if quick { &SIZES_IF_QUICK } else { &SIZES }
}

fn traces(options: &Trace) -> Result<Vec<laws::Trace>, Error> {
    if options.files.is_empty() {
        let seeds = if options.quick { 1 } else { SEEDS };
        return Ok((1..=seeds).flat_map(laws::all).collect());
    }
    let mut traces: Vec<laws::Trace> = Vec::new();
    for path in &options.files {
        let trace = recorded::read(path).map_err(|(path, why)| Error::File { path, why })?;
        if traces.iter().any(|t| t.name == trace.name) {
            return Err(Error::SameName(trace.name));
        }
        traces.push(trace);
    }
    Ok(traces)
}

/// Adds all rows of one trace with one policy.
fn add(trace: &laws::Trace, policy: Policy, sizes: &[u64], rows: &mut Rows) {
    let (blocks, bytes) = footprint(&trace.requests);
    let mut put =
        |params: &Params, metric: &str, value: f64| rows.add(policy.name(), params, metric, "%", [value]);
    let equal = with_equal_weights(&trace.requests);
    let missed = behind(share(blocks, PAGE_CACHE_PERCENT), &trace.requests);
    for percent in sizes {
        let capacity = Bytes(bytes).scaled(*percent as f64 / 100.0);
        let at = params([("trace", trace.name.as_str().into()), ("cache_percent", (*percent).into())]);
        let whole = policy.serve(capacity, &trace.requests);
        put(&at, HITS, hit_percent(whole));
        put(&at, BYTES, 100.0 * whole.hit_bytes as f64 / whole.bytes.max(1) as f64);
        put(&at, EQUAL_WEIGHTS, hit_percent(policy.serve(capacity, &equal)));
        put(&at, BEHIND, hit_percent(policy.serve(capacity, &missed)));
    }
    for store in SHARES {
        let at = params([("trace", trace.name.as_str().into()), ("store_percent", store.into())]);
        put(&at, READS, reads(policy, store, blocks, &trace.requests));
    }
}

/// The percentage of requests that go to the disk. The store has `store` percent of the memory, the page cache the rest. The page
/// cache keeps blocks uncompressed. The store is inclusive: blocks of the page cache take room in it too.
fn reads(policy: Policy, store: u64, blocks: usize, trace: &[Request]) -> f64 {
    let memory = share(blocks, MEMORY_PERCENT) as u64 * u64::from(BLOCK);
    let of_store = memory * store / 100;
    let pages = usize::try_from((memory - of_store) / u64::from(BLOCK)).unwrap_or(usize::MAX);
    let missed = behind(pages, trace);
    let served = policy.serve(Bytes(of_store), &missed).hits;
    100.0 * (missed.len() as u64 - served) as f64 / trace.len().max(1) as f64
}

fn share(blocks: usize, percent: u64) -> usize {
    blocks * usize::try_from(percent).unwrap_or(0) / 100
}

fn hit_percent(served: Served) -> f64 {
    100.0 * served.hits as f64 / served.requests.max(1) as f64
}

fn metrics() -> Vec<Metric> {
    vec![
        more(
            HITS,
            "share of requests that a cache alone serves, by its size relative to the trace's compressed blocks",
        ),
        more(
            BEHIND,
            "share of a page cache's misses that the store serves (page cache: LRU, 5 % of the blocks, uncompressed)",
        ),
        less(
            READS,
            "share of requests that neither page cache nor store serves, with memory for 20 % of the uncompressed blocks in total, by the store's share of it",
        ),
        more(BYTES, "the hit rate in compressed bytes"),
        more(
            EQUAL_WEIGHTS,
            "the hit rate with equal weights: shows the effect of weighing by compressed bytes",
        ),
    ]
}

fn report(environment: &Environment<'_>, options: &Trace, traces: &[laws::Trace], rows: Rows) -> Report {
    let mut notes = vec![
        "A replay is exact: the same trace has the same rates on any machine. Samples are seeds; a recorded trace has one.".to_owned(),
    ];
    if options.files.is_empty() {
        notes.push(laws::ABOUT.into());
    }
    for trace in traces.iter().filter(|_| !options.files.is_empty()) {
        let (blocks, bytes) = footprint(&trace.requests);
        notes.push(format!(
            "{}: {} requests for {blocks} blocks, {} compressed.",
            trace.name,
            trace.requests.len(),
            Bytes(bytes)
        ));
    }
    Report {
        variants: Policy::ALL.map(Policy::variant).to_vec(),
        metrics: metrics(),
        rows: rows.done(),
        notes,
        ..environment.report("trace")
    }
}
