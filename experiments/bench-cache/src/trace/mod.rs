//! `eke bench trace`: how many requests each order of eviction serves, on traces by law and on recorded ones.
//!
//! - [`laws`]: traces by law; [`recorded`]: traces from files
//! - [`levels`]: the page cache before the store
//! - [`replay`]: who decides what is held

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

use levels::{alike, behind, footprint};
use replay::{Served, Who};

/// What a block weighs in the page cache, bytes.
pub(crate) const BLOCK: u32 = 64 << 10;
/// Sizes of the cache, in percent of what the trace's blocks weigh together.
const SIZES: [u64; 6] = [1, 2, 5, 10, 20, 50];
const SIZES_IF_QUICK: [u64; 3] = [2, 10, 50];
/// The page cache before the store, in percent of the trace's blocks.
const PAGE_CACHE_PERCENT: u64 = 5;
/// All memory in the comparison of shares, in percent of the trace's blocks unpacked, and the store's shares of it.
const MEMORY_PERCENT: u64 = 20;
const SHARES: [u64; 5] = [0, 20, 50, 80, 95];
const SEEDS: u64 = 3;

const HITS: &str = "hit rate";
const BYTES: &str = "byte hit rate";
const ALIKE: &str = "hit rate, all blocks alike";
const BEHIND: &str = "hit rate behind a page cache";
const READS: &str = "reads of the disk";

/// What the user asks for: the experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Recorded traces; without any, traces by law.
    pub files: Vec<PathBuf>,
    /// Fewer sizes, one seed.
    pub quick: bool,
}

/// Why there are no rates.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that is no trace.
    #[error("cannot replay {}: {why}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        why: recorded::NotATrace,
    },
    /// Two traces of one name would be one.
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
        for who in Who::ALL {
            if traces.environment.is_interrupted() {
                return Ok(None);
            }
            traces.environment.progress.doing(who.name());
            add(&traces.all[*number], who, sizes(self.quick), &mut rows);
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

/// Everything of one trace and one policy.
fn add(trace: &laws::Trace, who: Who, sizes: &[u64], rows: &mut Rows) {
    let (blocks, bytes) = footprint(&trace.requests);
    let mut put =
        |params: &Params, metric: &str, value: f64| rows.add(who.name(), params, metric, "%", [value]);
    let equal = alike(&trace.requests);
    let missed = behind(share(blocks, PAGE_CACHE_PERCENT), &trace.requests);
    for percent in sizes {
        let capacity = Bytes(bytes).scaled(*percent as f64 / 100.0);
        let at = params([("trace", trace.name.as_str().into()), ("cache_percent", (*percent).into())]);
        let whole = who.serve(capacity, &trace.requests);
        put(&at, HITS, hit_percent(whole));
        put(&at, BYTES, 100.0 * whole.hit_bytes as f64 / whole.bytes.max(1) as f64);
        put(&at, ALIKE, hit_percent(who.serve(capacity, &equal)));
        put(&at, BEHIND, hit_percent(who.serve(capacity, &missed)));
    }
    for store in SHARES {
        let at = params([("trace", trace.name.as_str().into()), ("store_percent", store.into())]);
        put(&at, READS, reads(who, store, blocks, &trace.requests));
    }
}

/// Of 100 requests those that go to the disk, where the store has `store` percent of the memory and the page cache the rest. The
/// page cache holds blocks unpacked. The store is inclusive: what the page cache holds takes room in it too.
fn reads(who: Who, store: u64, blocks: usize, trace: &[Request]) -> f64 {
    let memory = share(blocks, MEMORY_PERCENT) as u64 * u64::from(BLOCK);
    let of_store = memory * store / 100;
    let pages = usize::try_from((memory - of_store) / u64::from(BLOCK)).unwrap_or(usize::MAX);
    let missed = behind(pages, trace);
    let served = who.serve(Bytes(of_store), &missed).hits;
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
            "requests that a cache alone serves, of all, by its size beside what the trace's blocks weigh packed",
        ),
        more(
            BEHIND,
            "the store behind a page cache (LRU, 5 % of the blocks, unpacked): of the requests that the page cache lacks, those that the store serves",
        ),
        less(
            READS,
            "requests that neither page cache nor store serves, with memory for 20 % of the blocks unpacked in all, by the store's share of it",
        ),
        more(BYTES, "the same as the hit rate, in packed bytes"),
        more(ALIKE, "the hit rate if each block weighed the same: what weighing by packed bytes changes"),
    ]
}

fn report(environment: &Environment<'_>, options: &Trace, traces: &[laws::Trace], rows: Rows) -> Report {
    let mut notes = vec![
        "A replay is exact: the same trace has the same rates again, on any machine. Samples are seeds; of a recorded trace there is one.".to_owned(),
    ];
    if options.files.is_empty() {
        notes.push(laws::ABOUT.into());
    }
    for trace in traces.iter().filter(|_| !options.files.is_empty()) {
        let (blocks, bytes) = footprint(&trace.requests);
        notes.push(format!(
            "{}: {} requests for {blocks} blocks, {} packed.",
            trace.name,
            trace.requests.len(),
            Bytes(bytes)
        ));
    }
    Report {
        variants: Who::ALL.map(Who::variant).to_vec(),
        metrics: metrics(),
        rows: rows.done(),
        notes,
        ..environment.report("trace")
    }
}
