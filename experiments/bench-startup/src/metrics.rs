//! The metrics of the runs. Pure.

use eke_results::report::groups::quantile;
use eke_results::report::{Metric, median};
use eke_results::report::{less, more};

use super::calls::Calls;
use super::cost::Cost;
use super::harm::Harm;
use super::ten::Ten;
use super::trial::Trial;

const MB: f64 = 1e6;

/// The main metric.
pub const START: &str = "start";
/// How much shorter a start is than a cold one.
pub const GAIN: &str = "gain over cold";
const READ: &str = "read while it starts";
const REQUESTS: &str = "requests while it starts";
const FAULTS: &str = "major faults";
/// The share of a cold start's reads that was in memory already.
pub const FOUND: &str = "found in memory";
/// Bytes read before the start.
pub const AHEAD: &str = "read ahead";
/// Those that the start did not use.
pub const UNUSED: &str = "read ahead and not used";
/// The number of maps, as the thesis counts.
pub const MAPS: &str = "maps";
/// Their bytes.
pub const MAP_SIZE: &str = "size of maps";
const CALLS_READ: &str = "time in read";
const CALLS_DIRECTORY: &str = "time in getdents";
const CALLS_OPEN: &str = "time in open and stat";
const CALLS_ALL: &str = "time in system calls";
const BEYOND: &str = "time in page faults, about";
const CALLS_SLOW: &str = "calls longer than 1 ms";
const TEN: &str = "ten in a row";
const TEN_READ: &str = "ten in a row, read while they start";
const TEN_ALL: &str = "ten in a row, read in all";
const TEN_FOUND: &str = "ten in a row, found in memory";
const ALONE: &str = "another reader, alone";
const BESIDE_AHEAD: &str = "another reader, beside reading ahead";
const BESIDE_AHEAD_WORST: &str = "another reader, beside reading ahead, 95th percentile";
const BESIDE_START: &str = "another reader, beside a start";
const BESIDE_START_MEAN: &str = "another reader, beside a start, mean";
const BESIDE_START_WORST: &str = "another reader, beside a start, 95th percentile";
const START_BESIDE: &str = "start beside another reader";

const CPU: &str = "CPU time of a start";
const CPU_LEARNED: &str = "CPU time of a start that is learned";

/// A metric, its unit, and its value.
pub type Value = (&'static str, &'static str, f64);

/// The values of one run. `cold` is the median of the bytes that a cold start of the program reads.
pub fn of_trial(trial: &Trial, cold_s: Option<f64>, cold: Option<f64>) -> Vec<Value> {
    let bytes = trial.during.bytes as f64;
    let mut values = vec![
        (START, "s", trial.seconds),
        (READ, "MB", bytes / MB),
        (REQUESTS, "requests", trial.during.requests as f64),
        (FAULTS, "faults", trial.major_faults as f64),
    ];
    values.extend(cold_s.filter(|c| *c > 0.0).map(|c| (GAIN, "%", 100.0 * (1.0 - trial.seconds / c))));
    values.extend(cold.and_then(|cold| found(bytes, cold)).map(|share| (FOUND, "%", share)));
    if let Some(ahead) = trial.ahead {
        let ahead = ahead.bytes as f64;
        values.push((AHEAD, "MB", ahead / MB));
        values.extend(cold.map(|cold| (UNUSED, "MB", unused(ahead, cold, bytes) / MB)));
    }
    values
}

/// The share of a cold start's reads that this start did not read, in percent: the byte hit rate. Both include the kernel's read-around.
fn found(bytes: f64, cold: f64) -> Option<f64> {
    (cold > 0.0).then(|| 100.0 * (1.0 - bytes / cold).max(0.0))
}

/// Bytes read ahead beyond the bytes saved, at least 0: since the kernel reads around faulting pages, fewer may be read ahead than
/// saved.
fn unused(ahead: f64, cold: f64, bytes: f64) -> f64 {
    (ahead - (cold - bytes).max(0.0)).max(0.0)
}

/// The values of a program's maps.
pub fn of_maps(maps: usize, bytes: u64) -> Vec<Value> {
    vec![(MAPS, "maps", maps as f64), (MAP_SIZE, "MB", bytes as f64 / MB)]
}

/// The values of a traced launch.
pub fn of_calls(calls: &Calls) -> Vec<Value> {
    vec![
        (CALLS_ALL, "s", calls.seconds()),
        (CALLS_READ, "s", calls.read_s),
        (CALLS_DIRECTORY, "s", calls.directory_s),
        (CALLS_OPEN, "s", calls.open_s),
        (CALLS_SLOW, "calls", calls.slow as f64),
    ]
}

/// Median seconds of a variant of a program: its start, and its system calls.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Times {
    /// Without strace.
    pub start_s: f64,
    /// Under strace.
    pub calls_s: f64,
}

/// The time of page faults, which the kernel does not report: the time beyond a warm start, less that of its system calls. Threads that
/// wait in parallel, and chance, may make it negative.
pub fn of_faults(times: Times, warm: Times) -> Value {
    (BEYOND, "s", (times.start_s - warm.start_s) - (times.calls_s - warm.calls_s))
}

/// The values of a row. `cold` is the sum of bytes that cold starts of its programs read.
pub fn of_ten(ten: &Ten, cold: Option<f64>) -> Vec<Value> {
    let mut values = vec![
        (TEN, "s", ten.seconds.iter().sum()),
        (TEN_READ, "MB", ten.during.bytes as f64 / MB),
        (TEN_ALL, "MB", ten.all.bytes as f64 / MB),
    ];
    let share = cold.and_then(|cold| found(ten.during.bytes as f64, cold));
    values.extend(share.map(|share| (TEN_FOUND, "%", share)));
    values
}

/// The values of starts without eke-prefetch, and with it.
pub fn of_cost(cost: &Cost) -> (Vec<Value>, Vec<Value>) {
    let values = |metric, seconds: &[f64]| seconds.iter().map(move |s| (metric, "s", *s)).collect::<Vec<_>>();
    let unseen = [CPU, CPU_LEARNED].into_iter().flat_map(|metric| values(metric, &cost.unseen_s));
    let seen = [values(CPU, &cost.known_s), values(CPU_LEARNED, &cost.learned_s)].concat();
    (unseen.collect(), seen)
}

/// The additional CPU time of starts in percent, by medians: known, learned; then the part that `eke-prefetch` takes itself.
pub fn overhead_percent(cost: &Cost) -> Option<[(f64, f64); 2]> {
    let unseen = Some(&cost.unseen_s).filter(|s| !s.is_empty()).map(|s| median(s)).filter(|s| *s > 0.0)?;
    let more = |seconds: &[f64]| (!seconds.is_empty()).then(|| 100.0 * (median(seconds) / unseen - 1.0));
    let own = |seconds: &[f64]| 100.0 * median(seconds) / unseen;
    let both = (more(&cost.known_s)?, more(&cost.learned_s)?);
    Some([both, (own(&cost.own_known_s), own(&cost.own_learned_s))])
}

/// The values of a second reader.
pub fn of_harm(harm: &Harm) -> Vec<Value> {
    let middle = |name, ms: &[f64]| (!ms.is_empty()).then(|| (name, "ms", median(ms)));
    let mut values = vec![(START_BESIDE, "s", harm.seconds)];
    values.extend(middle(ALONE, &harm.alone_ms));
    values.extend(middle(BESIDE_AHEAD, &harm.ahead_ms));
    values.extend(quantile(&harm.ahead_ms, 0.95).map(|ms| (BESIDE_AHEAD_WORST, "ms", ms)));
    values.extend(middle(BESIDE_START, &harm.start_ms));
    values.extend(eke_statistics::mean(&harm.start_ms).map(|ms| (BESIDE_START_MEAN, "ms", ms)));
    values.extend(quantile(&harm.start_ms, 0.95).map(|ms| (BESIDE_START_WORST, "ms", ms)));
    values
}

/// All metrics, in the order of the report.
pub fn metrics() -> Vec<Metric> {
    vec![
        less(
            START,
            "from before fork and exec until its first window is mapped, or until it ended (python, chromium)",
        ),
        more(GAIN, "the part of a cold start's time that it did not take; the thesis's gain"),
        less(READ, "from the disk, by whomever"),
        less(REQUESTS, "at the disk"),
        less(FAULTS, "page faults that waited for the disk, of the program and what it started"),
        more(
            FOUND,
            "of the bytes that a cold start reads, those that were not read now. What the kernel reads around pages is in both",
        ),
        less(AHEAD, "before the start"),
        less(UNUSED, "what was read ahead beyond the bytes that it saved the start"),
        less(MAPS, "files mapped until then, as lines of /proc/PID/maps with a file behind them, each once"),
        less(MAP_SIZE, "their lengths: what preload reads"),
        less(
            CALLS_ALL,
            "read, getdents, open, stat, exec and mmap, of all threads together, under strace, one launch each",
        ),
        less(CALLS_READ, "of these: reads of files"),
        less(CALLS_DIRECTORY, "of these: names in directories"),
        less(CALLS_OPEN, "of these: open, stat, access, readlink, exec"),
        less(
            BEYOND,
            "what a start takes longer than a warm one, less what its system calls take longer; threads that wait at once blur it",
        ),
        less(CALLS_SLOW, "of these, as the thesis counts"),
        less(
            TEN,
            "programs one after the other, each closed before the next, from a cold disk: their starts together",
        ),
        less(TEN_READ, "from the disk, by whomever"),
        less(TEN_ALL, "from the disk, before the first and between the starts too"),
        more(
            TEN_FOUND,
            "of the bytes that these starts read when each is cold, those that were not read. Cold: the bare page cache",
        ),
        less(
            START_BESIDE,
            "a launch while another program reads 20 random blocks a second from the same disk",
        ),
        less(ALONE, "what one of its reads takes while nothing else happens, median"),
        less(BESIDE_AHEAD, "the same while something is read ahead, median"),
        less(BESIDE_AHEAD_WORST, "the same, all but the slowest twentieth"),
        less(BESIDE_START, "the same while the program starts, median"),
        less(BESIDE_START_MEAN, "the same, mean"),
        less(BESIDE_START_WORST, "the same, 95th percentile"),
        less(
            CPU,
            "of the program's processes and, for eke, of eke-prefetch, warm, of a program that is known",
        ),
        less(CPU_LEARNED, "the same while eke learns the start, until it is kept"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Reads;

    #[test]
    fn what_seeing_costs_is_a_share_of_what_starts_take_unseen() {
        let cost = Cost {
            unseen_s: vec![2.0, 2.0, 9.0],
            known_s: vec![2.02],
            learned_s: vec![2.1, 2.1],
            own_known_s: vec![0.01],
            own_learned_s: vec![0.04, 0.04],
        };
        let [(known, learned), (own_known, own_learned)] = overhead_percent(&cost).unwrap();
        assert!((known - 1.0).abs() < 1e-9 && (learned - 5.0).abs() < 1e-9, "{known} {learned}");
        assert!((own_known - 0.5).abs() < 1e-9 && (own_learned - 2.0).abs() < 1e-9);
        assert_eq!(overhead_percent(&Cost { unseen_s: Vec::new(), ..cost.clone() }), None);
        let (unseen, seen) = of_cost(&cost);
        assert_eq!((unseen.len(), seen.len()), (6, 3));
    }

    fn value(values: &[Value], metric: &str) -> Option<f64> {
        values.iter().find(|f| f.0 == metric).map(|f| f.2)
    }

    fn reads(bytes: u64) -> Reads {
        Reads { requests: 7, bytes }
    }

    #[test]
    fn gain_share_and_waste_are_beside_a_cold_start() {
        let trial = Trial {
            seconds: 5.0,
            major_faults: 3,
            during: reads(20_000_000),
            ahead: Some(reads(120_000_000)),
        };
        let values = of_trial(&trial, Some(20.0), Some(100_000_000.0));
        for (metric, expected) in
            [(START, 5.0), (GAIN, 75.0), (READ, 20.0), (FOUND, 80.0), (AHEAD, 120.0), (UNUSED, 40.0)]
        {
            assert_eq!(value(&values, metric), Some(expected), "{metric}");
        }
    }

    #[test]
    fn what_has_no_sense_is_not_there_and_nothing_is_below_nothing() {
        let trial = Trial { seconds: 5.0, during: reads(50), ahead: None, ..Trial::default() };
        let values = of_trial(&trial, None, None);
        assert!([GAIN, FOUND, AHEAD, UNUSED].iter().all(|m| value(&values, m).is_none()));
        let thrifty = Trial { ahead: Some(reads(10)), ..trial };
        let values = of_trial(&thrifty, Some(0.0), Some(40.0));
        assert_eq!(
            (value(&values, FOUND), value(&values, UNUSED), value(&values, GAIN)),
            (Some(0.0), Some(1e-5), None)
        );
    }

    #[test]
    fn what_calls_do_not_explain_is_faults() {
        let times = |start_s, calls_s| Times { start_s, calls_s };
        let (_, _, seconds) = of_faults(times(6.0, 3.3), times(0.1, 0.8));
        assert!((seconds - 3.4).abs() < 1e-9, "{seconds}");
    }

    #[test]
    fn every_figure_has_a_metric() {
        let trial = Trial { ahead: Some(reads(1)), ..Trial::default() };
        let harm = Harm { alone_ms: vec![1.0], ahead_ms: vec![2.0], start_ms: vec![3.0], seconds: 1.0 };
        let all = [
            of_trial(&trial, Some(1.0), Some(1.0)),
            of_maps(3, 4),
            of_calls(&Calls::default()),
            vec![of_faults(Times::default(), Times::default())],
            of_ten(&Ten::default(), Some(1.0)),
            of_harm(&harm),
            of_cost(&Cost { unseen_s: vec![1.0], ..Cost::default() }).0,
        ];
        let metrics = metrics();
        for (name, ..) in all.concat() {
            assert!(metrics.iter().any(|m| m.name == name), "{name}");
        }
        assert_eq!(metrics[0].name, START);
        assert_eq!(metrics.len(), all.concat().len(), "a metric without a value");
    }
}
