//! `eke bench store`, `eke bench reads`, `eke bench names`, `eke bench warm`, `eke bench trace` and `eke bench tiers`: what the cache does.

use eke_bench_cache::names::{self, Names};
use eke_bench_cache::reads::{self, Reads};
use eke_bench_cache::store::{self, Store};
use eke_bench_cache::tiers::Tiers;
use eke_bench_cache::trace::Trace;
use eke_bench_cache::warm::{self, Warm};
use eke_model::units::Bytes;
use eke_present::exit::Outcome;

use super::experiment::verb;
use crate::args::{NamesBench, ReadsBench, StoreBench, TiersBench, TraceBench, WarmBench};
use crate::context::Context;

/// The default time of a measurement, in seconds.
const SECONDS: f64 = 0.25;
const SECONDS_IF_QUICK: f64 = 0.05;

/// `eke bench store`.
pub fn store(context: &Context, options: &StoreBench) -> Outcome {
    verb(context, &Store::new(asked(options)), &options.files)
}

/// `eke bench reads`.
pub fn reads(context: &Context, options: &ReadsBench) -> Outcome {
    let experiment = Reads(reads::Options {
        corpus: options.corpus.clone(),
        dir: options.dir.clone(),
        size: options.size.unwrap_or(Bytes::mib(if options.quick { 64 } else { 256 })),
        seconds: options.seconds.unwrap_or(if options.quick { 0.2 } else { 1.0 }),
        quick: options.quick,
    });
    verb(context, &experiment, &options.files)
}

/// `eke bench names`.
pub fn names(context: &Context, options: &NamesBench) -> Outcome {
    let files = options.number.unwrap_or(if options.quick { 2_000 } else { 100_000 });
    let experiment = Names(names::Options { dir: options.dir.clone(), files, quick: options.quick });
    verb(context, &experiment, &options.files)
}

/// `eke bench warm`.
pub fn warm(context: &Context, options: &WarmBench) -> Outcome {
    let quick = |few: u64, usual: u64| if options.quick { few } else { usual };
    let experiment = Warm(warm::Options {
        dir: options.dir.clone(),
        disk: options.disk.clone(),
        content: options.size.unwrap_or(Bytes::mib(quick(48, 320))),
        memory: options.memory.unwrap_or(Bytes::mib(quick(16, 64))),
        requests: quick(200, 1000) as usize,
        idle_s: quick(10, 60),
        beside_s: quick(10, 60),
        rounds: options.rounds.map_or(quick(1, 3) as usize, |rounds| rounds as usize),
    });
    verb(context, &experiment, &options.files)
}

/// `eke bench trace`.
pub fn trace(context: &Context, options: &TraceBench) -> Outcome {
    let experiment = Trace { files: options.traces.clone(), quick: options.quick };
    verb(context, &experiment, &options.files)
}

/// `eke bench tiers`.
pub fn tiers(context: &Context, options: &TiersBench) -> Outcome {
    let experiment = Tiers { seed: options.seed, quick: options.quick };
    verb(context, &experiment, &options.files)
}

fn asked(options: &StoreBench) -> store::Options {
    let usual = store::Options::default();
    store::Options {
        corpus: options.corpus.clone(),
        threads: options.threads.map_or(usual.threads, |threads| threads as usize),
        seconds: options.seconds.unwrap_or(if options.quick { SECONDS_IF_QUICK } else { SECONDS }),
        block: usize::try_from(options.block.0).unwrap_or(usize::MAX),
        quick: options.quick,
    }
}
