//! The report of all runs. Pure.

use eke_bench_core::kept::Measured;
use eke_bench_core::{Environment, Results};
use eke_io::{Class, Histogram};
use eke_results::report::groups::quantile;
use eke_results::report::times::Times;
use eke_results::report::words::shown;
use eke_results::report::{Metric, Report, Role, Row, Variant as Compared, median};
use eke_results::report::{less, more};
use eke_results::rows::{Rows, params};

use super::plan::{Run, Variant, Writer};
use super::setting::{BACKGROUND, DIRTY};
use super::trial::Trial;
use super::{Options, limits};

/// The main metric: the 99th percentile of read latency.
pub const READ_P99: &str = "read p99";
const READ_P50: &str = "read p50";
const READS: &str = "read latency";
const RATE: &str = "reads";
const WRITTEN: &str = "written";
const START: &str = "program start";
const FLUSH: &str = "flush";

type Trials = Vec<(Run, Trial)>;

/// The report.
pub fn report(
    environment: &Environment<'_>,
    options: &Options,
    results: Results<Run, Measured<Trial>>,
) -> Report {
    let commits: Vec<String> = results.measured.iter().map(|(_, measured)| measured.commit.clone()).collect();
    let trials: Trials = results.measured.into_iter().map(|(run, measured)| (run, measured.of)).collect();
    let mut notes: Vec<String> = Vec::new();
    for writer in &options.writers {
        notes.extend(beside_default(&trials, *writer));
        notes.extend(limits::waits(&trials, *writer));
        notes.extend(limits::unsteady(&trials, *writer, &options.variants));
    }
    notes.extend(trials.iter().filter_map(|(run, trial)| governor_note(run, trial)));
    notes.extend(about(options, &trials));
    notes.extend(results.notes);
    Report {
        // The governor is an option.
        default_variant: Variant::Default.name().to_owned(),
        variants: options.variants.iter().map(|v| compared(*v)).collect(),
        metrics: metrics(),
        rows: rows(&options.disk, &trials, &commits),
        times: times(&options.disk, &trials),
        notes,
        ..environment.report("io")
    }
    .settled()
}

fn metrics() -> Vec<Metric> {
    vec![
        less(READ_P99, "99th percentile of random 4 KiB direct reads at a fixed rate, beside a writer."),
        less(READ_P50, "Median of the same reads."),
        more(WRITTEN, "Bytes that the disk wrote meanwhile: the writer's throughput."),
        less(START, "A cold program on the same disk, from its start to its end."),
        less(FLUSH, "The mean flush of the disk's cache meanwhile."),
        more(RATE, "Reads per second. Each read waits for the one before, so slow reads lower the rate."),
        less(READS, "Every read of all runs."),
    ]
}

fn rows(disk: &str, trials: &Trials, commits: &[String]) -> Vec<Row> {
    let mut rows = Rows::default();
    for ((run, trial), commit) in trials.iter().zip(commits) {
        rows.of_commit(commit);
        let at = params([("disk", disk.into()), ("writer", run.writer.name().into())]);
        let mut add = |metric, unit, samples: &[f64]| {
            rows.add(run.variant.name(), &at, metric, unit, samples.iter().copied());
        };
        let of = |share| quantile(&trial.reads_ms, share);
        add(READ_P99, "ms", of(0.99).as_slice());
        add(READ_P50, "ms", of(0.5).as_slice());
        add(WRITTEN, "MB/s", &[trial.written_per_s() / 1e6]);
        add(START, "s", &trial.starts_s);
        add(FLUSH, "ms", trial.flush_ms().as_slice());
        add(RATE, "1/s", &[trial.reads_ms.len() as f64 / trial.seconds.max(1e-9)]);
        add(READS, "ms", &trial.reads_ms);
    }
    rows.done()
}

/// The histogram of each class of requests to the disk, merged over all runs.
fn times(disk: &str, trials: &Trials) -> Vec<Times> {
    let mut all: Vec<((Class, Writer, Variant), Histogram)> = Vec::new();
    for (run, trial) in trials {
        for requests in &trial.device.classes {
            let key = (requests.class, run.writer, run.variant);
            match all.iter_mut().find(|(known, _)| *known == key) {
                Some((_, whole)) => whole.merge(&requests.latency.whole),
                None => all.push((key, requests.latency.whole)),
            }
        }
    }
    let of = |((class, writer, variant), whole): &((Class, Writer, Variant), Histogram)| {
        let at = params([("disk", disk.into()), ("writer", writer.name().into())]);
        Times::of(variant.name(), &at, class.to_string(), whole)
    };
    all.iter().filter_map(of).collect()
}

/// Compares eke with the kernel's default and with the aim, in a sentence.
fn beside_default(trials: &Trials, writer: Writer) -> Option<String> {
    let of = |variant: Variant, metric: &dyn Fn(&Trial) -> Option<f64>| {
        let same = trials.iter().filter(|(run, _)| run.variant == variant && run.writer == writer);
        let samples: Vec<f64> = same.filter_map(|(_, trial)| metric(trial)).collect();
        (!samples.is_empty()).then(|| median(&samples))
    };
    let p99 = |trial: &Trial| quantile(&trial.reads_ms, 0.99);
    let written = |trial: &Trial| Some(trial.written_per_s() / 1e6);
    let (default, eke) = (of(Variant::Default, &p99)?, of(Variant::Eke, &p99)?);
    let (before, after) = (of(Variant::Default, &written)?, of(Variant::Eke, &written)?);
    let (share, kept) = (100.0 * eke / default, 100.0 * after / before);
    let is_kept = share <= 50.0 && kept >= 95.0;
    Some(format!(
        "Beside {}: with eke 99 of 100 reads take at most {} ms instead of {} ms ({share:.0} %), and {} MB/s are written instead of {} ({kept:.0} %). The aim was at most half of the time with at least 95 % written: {}.",
        writer.name(),
        shown(eke),
        shown(default),
        shown(after),
        shown(before),
        if is_kept { "reached" } else { "not reached" }
    ))
}

/// The governor's changes; the last one shows what limits it.
fn governor_note(run: &Run, trial: &Trial) -> Option<String> {
    if run.variant != Variant::Eke {
        return None;
    }
    let changes = match trial.changes.as_slice() {
        [] => limits::nothing(trial),
        all => all.iter().map(|change| change.trim_end_matches('.')).collect::<Vec<_>>().join(" | "),
    };
    Some(format!("Governor beside {}, round {}: {changes}.", run.writer.name(), run.round + 1))
}

fn about(options: &Options, trials: &Trials) -> Vec<String> {
    let mut notes = vec![
        format!(
            "The disk is the modelled disk \"{}\" behind a loop device: its queue, its schedulers and its writeback throttle are the kernel's. Each run has a new disk.",
            options.disk
        ),
        format!(
            "Each run is measured for {} s after {} s of warm-up, in which the governor finds its settings; the cost of finding them is not measured.",
            options.measured_s, options.warm_up_s
        ),
        format!("The reader makes at most {} reads per second, one at a time: faster answers do not make more load.", options.rate),
        format!("vm.dirty_bytes is {DIRTY} and vm.dirty_background_bytes {BACKGROUND} unless a variant says otherwise, as on a machine of 1 GiB: on a larger one writers would seldom meet the limits."),
        format!("The order within a round is random. The first {} rounds have all variants, the others those that must be known best.", options.fewer.min(options.repeats)),
        "Written bytes are those that reached the disk, not those that programs wrote to memory.".to_owned(),
        "ZFS is not measured: on a machine that has it, `eke io compare zfs_vdev_async_write_max_active 10 3 -- LOAD` repeats the study.".to_owned(),
    ];
    if trials.iter().any(|(_, trial)| trial.source != "bpf") {
        notes.push("The disk's latencies are the kernel's averages: BPF was not available.".to_owned());
    }
    if options.repeats < 3 {
        notes.push("Each run was made once or twice: a small difference can be chance.".to_owned());
    }
    notes
}

fn compared(variant: Variant) -> Compared {
    let little = "vm.dirty_bytes 16 MiB, vm.dirty_background_bytes 4 MiB";
    let (role, set_up) = match variant {
        Variant::Default => (
            Role::Baseline,
            "the kernel's defaults for a loop device: no scheduler, the writeback throttle at its default"
                .to_owned(),
        ),
        Variant::Scheduler(name) => (Role::Peer, format!("queue/scheduler {name}, with its defaults")),
        Variant::Again => (Role::Baseline, "the same again: the difference of these two is noise".to_owned()),
        Variant::Strict => (Role::Peer, "queue/scheduler bfq, queue/iosched/strict_guarantees 1".to_owned()),
        Variant::NoThrottle => (Role::Peer, "queue/wbt_lat_usec 0".to_owned()),
        Variant::Throttle(us) => (
            Role::Peer,
            format!("queue/wbt_lat_usec {us}; the kernel's default is 2000, for disks that rotate 75000"),
        ),
        Variant::Dirty => (Role::Peer, little.to_owned()),
        Variant::DirtyBfq => (Role::Peer, format!("{little}, queue/scheduler bfq")),
        Variant::Idle => (Role::Peer, "the writer under ionice -c 3, queue/scheduler bfq".to_owned()),
        Variant::Eke => (Role::Ours, "eke-io govern with its defaults".to_owned()),
    };
    Compared { name: variant.name().to_owned(), role, set_up }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(ms: f64, mb_per_s: f64) -> Trial {
        use eke_io::counters::{ClassLatency, Device};
        use eke_io::{Class, Latency, Mode, Operation};
        use eke_model::units::Bytes;
        let latency = Latency { bytes: Bytes((mb_per_s * 1e7) as u64), ..Latency::default() };
        let class = Class::new(Operation::Write, Mode::Async);
        let device = Device { classes: vec![ClassLatency { class, latency }], ..Device::default() };
        Trial { reads_ms: vec![1.0, ms], seconds: 10.0, device, source: "bpf".into(), ..Trial::default() }
    }

    fn trials(eke_ms: f64, eke_mb: f64) -> Trials {
        let run = |variant| Run { round: 0, variant, writer: Writer::Stream };
        vec![(run(Variant::Default), trial(100.0, 40.0)), (run(Variant::Eke), trial(eke_ms, eke_mb))]
    }

    #[test]
    fn the_aim_is_reported_with_both_values() {
        let sentence = |ms, mb| beside_default(&trials(ms, mb), Writer::Stream).unwrap();
        let reached = sentence(40.0, 39.0);
        assert!(
            reached.contains("at most 40 ms instead of 100 ms (40 %), and 39 MB/s")
                && reached.ends_with(": reached."),
            "{reached}"
        );
        assert!(
            sentence(60.0, 40.0).ends_with("not reached.") && sentence(40.0, 37.0).ends_with("not reached.")
        );
        assert_eq!(beside_default(&trials(1.0, 1.0), Writer::Fsync), None);
    }

    #[test]
    fn each_metric_is_a_row() {
        let rows = rows("sd", &trials(40.0, 39.0), &["a".to_owned(), "a".to_owned()]);
        assert_eq!(
            rows.iter().filter(|r| r.metric == READ_P99).map(|r| r.median).collect::<Vec<_>>(),
            [100.0, 40.0]
        );
        assert!(rows.iter().all(|r| metrics().iter().any(|m| m.name == r.metric)));
        assert!(rows.iter().all(|r| r.metric != START), "nothing was started");
    }
}
