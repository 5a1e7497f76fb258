//! `eke bench store`, `eke bench reads`, `eke bench names`, `eke bench warm`, `eke bench trace` and `eke bench tiers`: what the cache does.

use eke_bench_cache::names::{self, Names};
use eke_bench_cache::reads::{self, Reads};
use eke_bench_cache::store::{self, Store};
use eke_bench_cache::tiers::Tiers;
use eke_bench_cache::trace::Trace;
use eke_bench_cache::warm::{self, Warm};
use eke_model::units::Bytes;
use eke_present::command_line::{quoted, set, size};
use eke_present::exit::Outcome;

use super::experiment::verb;
use crate::args::{NamesBench, ReadsBench, StoreBench, TiersBench, TraceBench, WarmBench};
use crate::context::Context;

/// The default time of a measurement, in seconds.
const SECONDS: f64 = 0.25;
const SECONDS_IF_QUICK: f64 = 0.05;

/// `eke bench store`.
pub fn store(context: &Context, options: &StoreBench) -> Outcome {
    verb(context, &Store::new(asked(options)), store_command(options), &options.files)
}

/// `eke bench reads`.
pub fn reads(context: &Context, options: &ReadsBench) -> Outcome {
    let experiment = Reads(reads::Options {
        corpus: options.corpus.clone(),
        dir: options.dir.clone(),
        size: reads_size(options),
        seconds: reads_seconds(options),
        quick: options.quick,
    });
    verb(context, &experiment, reads_command(options), &options.files)
}

fn reads_seconds(options: &ReadsBench) -> f64 {
    options.seconds.unwrap_or(if options.quick { 0.2 } else { 1.0 })
}

fn reads_size(options: &ReadsBench) -> Bytes {
    options.size.unwrap_or(Bytes::mib(if options.quick { 64 } else { 256 }))
}

/// The command line that makes a result again.
fn reads_command(options: &ReadsBench) -> String {
    let mut words = vec!["eke bench reads".to_owned()];
    words.extend(set(&[("--quick", options.quick)]));
    words.extend(options.corpus.as_ref().map(|dir| format!("--corpus {}", quoted(&dir.to_string_lossy()))));
    words.push(format!("--dir {}", quoted(&options.dir.to_string_lossy())));
    words.push(format!("--size {} --seconds {}", size(reads_size(options)), reads_seconds(options)));
    words.join(" ")
}

/// `eke bench names`.
pub fn names(context: &Context, options: &NamesBench) -> Outcome {
    let (dir, files) = (options.dir.clone(), names_number(options));
    let experiment = Names(names::Options { dir, files, quick: options.quick });
    verb(context, &experiment, names_command(options), &options.files)
}

fn names_number(options: &NamesBench) -> u32 {
    options.number.unwrap_or(if options.quick { 2_000 } else { 100_000 })
}

fn names_command(options: &NamesBench) -> String {
    let mut words = vec!["eke bench names".to_owned()];
    words.extend(set(&[("--quick", options.quick)]));
    words.push(format!("--dir {}", quoted(&options.dir.to_string_lossy())));
    words.push(format!("--number {}", names_number(options)));
    words.join(" ")
}

/// `eke bench warm`.
pub fn warm(context: &Context, options: &WarmBench) -> Outcome {
    context.need_root("`eke bench warm` makes a disk of its own, which needs root")?;
    let quick = |few: u64, usual: u64| if options.quick { few } else { usual };
    let experiment = Warm(warm::Options {
        dir: options.dir.clone(),
        disk: options.disk.clone(),
        content: warm_sizes(options).0,
        memory: warm_sizes(options).1,
        requests: quick(200, 1000) as usize,
        idle_s: quick(10, 60),
        beside_s: quick(10, 60),
        rounds: warm_rounds(options) as usize,
    });
    verb(context, &experiment, warm_command(options), &options.files)
}

/// Of the files and of the store.
fn warm_sizes(options: &WarmBench) -> (Bytes, Bytes) {
    let (size, memory) = if options.quick { (48, 16) } else { (320, 64) };
    (options.size.unwrap_or(Bytes::mib(size)), options.memory.unwrap_or(Bytes::mib(memory)))
}

fn warm_rounds(options: &WarmBench) -> u32 {
    options.rounds.unwrap_or(if options.quick { 1 } else { 3 })
}

fn warm_command(options: &WarmBench) -> String {
    let ((content, memory), rounds) = (warm_sizes(options), warm_rounds(options));
    let mut words = vec!["eke bench warm".to_owned()];
    words.extend(set(&[("--quick", options.quick)]));
    words.push(format!("--dir {} --disk {}", quoted(&options.dir.to_string_lossy()), quoted(&options.disk)));
    words.push(format!("--size {} --memory {} --rounds {rounds}", size(content), size(memory)));
    words.join(" ")
}

/// `eke bench trace`.
pub fn trace(context: &Context, options: &TraceBench) -> Outcome {
    let experiment = Trace { files: options.traces.clone(), quick: options.quick };
    verb(context, &experiment, trace_command(options), &options.files)
}

/// `eke bench tiers`.
pub fn tiers(context: &Context, options: &TiersBench) -> Outcome {
    let experiment = Tiers { seed: options.seed, quick: options.quick };
    verb(context, &experiment, tiers_command(options), &options.files)
}

fn tiers_command(options: &TiersBench) -> String {
    let mut words = vec!["eke bench tiers".to_owned()];
    words.extend(set(&[("--quick", options.quick)]));
    words.push(format!("--seed {}", options.seed));
    words.join(" ")
}

fn asked(options: &StoreBench) -> store::Options {
    let usual = store::Options::default();
    store::Options {
        corpus: options.corpus.clone(),
        threads: options.threads.map_or(usual.threads, |threads| threads as usize),
        seconds: seconds(options),
        block: usize::try_from(options.block.0).unwrap_or(usize::MAX),
        quick: options.quick,
    }
}

fn seconds(options: &StoreBench) -> f64 {
    options.seconds.unwrap_or(if options.quick { SECONDS_IF_QUICK } else { SECONDS })
}

/// The command line that makes a result again; as many threads as that machine has CPUs, unless some were asked for.
fn store_command(options: &StoreBench) -> String {
    let mut words = vec!["eke bench store".to_owned()];
    words.extend(set(&[("--quick", options.quick)]));
    words.extend(options.corpus.as_ref().map(|dir| format!("--corpus {}", quoted(&dir.to_string_lossy()))));
    words.extend(options.threads.map(|threads| format!("--threads {threads}")));
    words.push(format!("--seconds {} --block {}", seconds(options), size(options.block)));
    words.join(" ")
}

fn trace_command(options: &TraceBench) -> String {
    let mut words = vec!["eke bench trace".to_owned()];
    words.extend(set(&[("--quick", options.quick)]));
    words.extend(options.traces.iter().map(|file| quoted(&file.to_string_lossy())));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::again::parsed;
    use super::*;
    use crate::args::Verb;

    fn again(line: &str) -> String {
        match parsed(line) {
            Verb::Store(options) => store_command(&options),
            Verb::Reads(options) => reads_command(&options),
            Verb::Names(options) => names_command(&options),
            Verb::Warm(options) => warm_command(&options),
            Verb::Trace(options) => trace_command(&options),
            Verb::Tiers(options) => tiers_command(&options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_command_makes_the_same_again() {
        let line = again("eke bench store --corpus ./files --quick --output a.json");
        assert_eq!(line, "eke bench store --quick --corpus ./files --seconds 0.05 --block 64K");
        assert_eq!(again(&line), line);
        let line = again("eke bench store --threads 3 --block 131072 --seconds 1.5");
        assert_eq!(line, "eke bench store --threads 3 --seconds 1.5 --block 128K");
        let line = again("eke bench reads --quick --dir /srv");
        assert_eq!(line, "eke bench reads --quick --dir /srv --size 64M --seconds 0.2");
        assert_eq!(again(&line), line);
        let line = again("eke bench names --dir /srv");
        assert_eq!(line, "eke bench names --dir /srv --number 100000");
        assert_eq!(again(&line), line);
        let line = again("eke bench warm --quick --disk sd");
        let all = "eke bench warm --quick --dir /var/tmp --disk sd --size 48M --memory 16M --rounds 1";
        assert_eq!(line, all);
        assert_eq!(again(&line), line);
        let line = again("eke bench tiers --quick");
        assert_eq!(line, "eke bench tiers --quick --seed 1");
        assert_eq!(again(&line), line);
        assert_eq!(again("eke bench trace a.csv --quick b"), "eke bench trace --quick a.csv b");
    }
}
