//! The report. Pure.

use eke_bench_core::Environment;
use eke_bench_web::client::SAMPLED;
use eke_bench_web::content::Content;
use eke_bench_web::server::nginx;
use eke_model::units::Bytes;
use eke_results::report::{DataTable, Metric, Report, Row, Variant as Compared, less, more};
use eke_results::rows::{Params, Rows, params};

use crate::engine::FAILOVER_MS;
use crate::faults::{Fault, Faulted};
use crate::metrics::{self, BESIDE_ONE, THROUGHPUT};
use crate::plan::{ENGINES, NODES, ORIGIN_MEMORY, Options, Run, Variant};
use crate::servers::varnish_memory;
use crate::trial::Trial;

/// The goals: origin reads beside one node's least, and throughput beside eke without the tier.
const MOST_READS: f64 = 1.3;
const LEAST_GAIN: f64 = 2.0;
/// The parameter of a row about a fault.
const FAULT: &str = "fault";
const SLOW: &str = "seconds with a 99th percentile above twice the usual";
const WORST: &str = "worst 99th percentile of a second";
const WRONG: &str = "wrong replies";
const FAILED: &str = "failed attempts";

/// The report.
pub fn report(
    environment: &Environment<'_>,
    options: &Options,
    variants: &[Variant],
    content: &Content,
    measured: &[(Run, Trial)],
    mut notes: Vec<String>,
) -> Report {
    let rows = rows(measured);
    notes.extend(goals(&rows));
    notes.extend(about_the_set_up(options, content));
    notes.extend(about_memory(measured));
    let faulted = measured.iter().filter_map(|(run, trial)| Some((run.variant, trial.faulted.as_ref()?)));
    let set_ups = variants.iter().map(|v| Compared {
        name: v.name().to_owned(),
        role: v.role(),
        set_up: set_up(*v, options.memory),
    });
    Report {
        // The tier is an option.
        default_variant: Variant::Eke.name().to_owned(),
        variants: set_ups.collect(),
        metrics: all_metrics(),
        rows,
        tables: faulted.map(|(variant, faulted)| table(variant, faulted)).collect(),
        notes,
        ..environment.report("farm")
    }
}

fn all_metrics() -> Vec<Metric> {
    let mut all = metrics::metrics();
    all.extend([
        less(SLOW, "after the fault at the begin of the phase; a second without an answer counts, too"),
        less(WORST, "of all seconds of the phase"),
        less(WRONG, "replies with other bytes than the file has; all were compared"),
        less(FAILED, "requests that a client then sent to another node"),
        more("seconds of the phase", "how long the farm was watched after the fault"),
    ]);
    all
}

fn rows(measured: &[(Run, Trial)]) -> Vec<Row> {
    let mut rows = Rows::default();
    for (run, trial) in measured {
        match &trial.faulted {
            Some(faulted) => add_faults(run.variant, faulted, &mut rows),
            None => {
                for (metric, unit, value) in metrics::of(&trial.window) {
                    rows.add(run.variant.name(), &Params::new(), metric, unit, [value]);
                }
            }
        }
    }
    rows.done()
}

fn add_faults(variant: Variant, faulted: &Faulted, rows: &mut Rows) {
    for phase in &faulted.phases {
        let params = params([(FAULT, phase.fault.name().into())]);
        let mut add = |metric, unit, value: f64| rows.add(variant.name(), &params, metric, unit, [value]);
        if let Some(slow) = faulted.slow_seconds(phase) {
            add(SLOW, "s", slow as f64);
        }
        let worst = phase.seconds.iter().filter_map(|s| s.p99_ms()).reduce(f64::max);
        worst.into_iter().for_each(|ms| add(WORST, "ms", ms));
        add(FAILED, "attempts", phase.seconds.iter().map(|s| s.failed).sum::<u64>() as f64);
        add("seconds of the phase", "s", phase.seconds.len() as f64);
    }
    rows.add(variant.name(), &Params::new(), WRONG, "replies", [faulted.wrong as f64]);
}

fn table(variant: Variant, faulted: &Faulted) -> DataTable {
    let columns = [
        "second",
        "fault",
        "answered",
        "MB",
        "median, ms",
        "99th percentile, ms",
        "failed attempts",
        "MB read by the origin",
    ];
    DataTable {
        title: format!(
            "{}: what clients saw in each second; the usual 99th percentile is {:.0} ms.",
            variant.name(),
            faulted.usual_ms().unwrap_or(0.0)
        ),
        columns: columns.map(str::to_owned).to_vec(),
        lines: faulted.lines(),
        is_long: true,
    }
}

/// What was reached, and what was not.
fn goals(rows: &[Row]) -> Vec<String> {
    let of = |metric: &str, variant: Variant| {
        let row = rows.iter().find(|r| r.metric == metric && r.variant == variant.name());
        row.map(|r| r.median)
    };
    let mut notes = Vec::new();
    let is_met = |met| if met { "is met" } else { "is missed" };
    if let Some(times) = of(BESIDE_ONE, Variant::Shared) {
        notes.push(format!(
            "The goal of at most {MOST_READS} times the origin reads of one node {}: {times:.2} times.",
            is_met(times <= MOST_READS)
        ));
    }
    if let Some((own, shared)) = of(THROUGHPUT, Variant::Eke).zip(of(THROUGHPUT, Variant::Shared)) {
        let times = shared / own.max(f64::MIN_POSITIVE);
        notes.push(format!(
            "The goal of at least {LEAST_GAIN} times the throughput of eke without the tier {}: {times:.2} times.",
            is_met(times >= LEAST_GAIN)
        ));
    }
    notes.extend(Variant::ALL.into_iter().filter_map(|variant| goal_of_faults(variant, rows)));
    notes
}

fn goal_of_faults(variant: Variant, rows: &[Row]) -> Option<String> {
    let rows: Vec<&Row> = rows.iter().filter(|r| r.variant == variant.name()).collect();
    let name = variant.name();
    let wrong = rows.iter().find(|r| r.metric == WRONG)?.median;
    let slow: Vec<String> = rows
        .iter()
        .filter(|r| r.metric == SLOW && r.params.get(FAULT).is_some_and(|f| f != Fault::None.name()))
        .filter(|r| r.median > 1.0)
        .map(|r| format!("{} {} s", r.params[FAULT].as_str().unwrap_or_default(), r.median))
        .collect();
    let wrong =
        if wrong == 0.0 { "no reply was wrong".to_owned() } else { format!("{wrong} replies were wrong") };
    Some(if slow.is_empty() {
        format!(
            "{name}: {wrong}, and after each fault the 99th percentile was above twice the usual for at most a second."
        )
    } else {
        format!(
            "{name}: {wrong}. The 99th percentile was above twice the usual for more than a second: {}.",
            slow.join(", ")
        )
    })
}

fn about_the_set_up(options: &Options, content: &Content) -> Vec<String> {
    let memory = options.memory;
    let mut notes = vec![
        format!(
            "The farm: {NODES} nodes with {memory} each and an origin with {ORIGIN_MEMORY} and the slow disk `{}`; with a shared tier also {ENGINES} members of a cluster, each with {memory} for content. Each is in a network namespace with a link of 1 Gb/s, and in a box with its memory and without swap. All run on one machine: its CPUs are shared by all.",
            options.disk
        ),
        "The nodes reach the origin's disk by NBD in user space (nbdkit, nbdfuse) and mount ext4 on it, read-only, as on a SAN. It is not sshfs: that has no inode numbers that are the same on all nodes, and `eke cache mount --shared` refuses it for that reason.".to_owned(),
        format!(
            "The content: {} files of 16 KiB to 1 MiB, {} in all, {:.2} to 1 by LZ4 in blocks of 64 KiB ({}).",
            content.files.len(),
            Bytes(content.total()),
            content.properties.ratio,
            content.properties.corpus
        ),
        format!(
            "Clients: {} persistent connections to each node without pause, complete files, popularity zipf:{}, the same sequence in each run. Every length is checked, and the bytes of each {SAMPLED}th reply; with faults those of all.",
            options.connections, options.exponent
        ),
        format!(
            "Each run begins with empty caches, warms up for {} s and is measured for {} s. {}.",
            options.warm_up.as_secs(),
            options.window.as_secs(),
            nginx::ABOUT
        ),
    ];
    if options.quick {
        notes.push(
            "A quick run: few variants, small, each once; a small difference can be chance.".to_owned(),
        );
    }
    notes
}

fn about_memory(measured: &[(Run, Trial)]) -> Vec<String> {
    let killed = measured.iter().filter(|(_, trial)| trial.oom_kills > 0);
    let note = |(run, trial): &(Run, Trial)| {
        let name = run.variant.name();
        format!("{name}: the kernel killed {} processes for lack of memory.", trial.oom_kills)
    };
    killed.map(note).collect()
}

fn set_up(variant: Variant, memory: Bytes) -> String {
    let kept =
        "on this machine's own disk, which no other variant has; it keeps everything that was requested once";
    match variant {
        Variant::Alone => format!("nginx over ext4, and the page cache of {memory}"),
        Variant::Eke => format!("`eke cache mount` between them, all in {memory}"),
        Variant::EkeMore => {
            let (eke, memory) = (Variant::Eke.name(), variant.memory(memory));
            format!("as \"{eke}\", in {memory}: each node has its share of the engine's memory")
        }
        Variant::Shared => {
            format!(
                "`eke cache mount --shared redis+cluster://...`, in {memory}; the engine has {memory} on each of {ENGINES} more hosts"
            )
        }
        Variant::Again => format!("as \"{}\": the difference is noise", Variant::Shared.name()),
        Variant::Proxy => format!(
            "nginx with proxy_cache, in {memory}, in front of an nginx on the origin; its files are {kept}"
        ),
        Variant::Varnish => {
            format!(
                "Varnish with {} for content, in {memory}, in front of an nginx on the origin",
                varnish_memory(memory)
            )
        }
        Variant::Faults => {
            "as \"eke, shared\"; members and nodes are killed, cut off and started again".to_owned()
        }
        Variant::Replicas => format!(
            "as \"{}\", and each member of the engine has a replica with {memory} on a host of its own; a member that does not answer is replaced after {FAILOVER_MS} ms",
            Variant::Faults.name()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::{Phase, Second};
    use crate::metrics::{Counters, Window};
    use std::time::Duration;

    fn measured(variant: Variant, megabytes: u64) -> (Run, Trial) {
        let after = Counters { bytes: megabytes * 1_000_000, ..Counters::default() };
        let window = Window { seconds: 1.0, response_ms: vec![5.0], after, distinct: 1, ..Window::default() };
        (Run { variant, round: 1 }, Trial { window, faulted: None, oom_kills: 0 })
    }

    #[test]
    fn goals_are_met_or_missed() {
        let all = [measured(Variant::Eke, 40), measured(Variant::Shared, 100)];
        let notes = goals(&rows(&all)).join("\n");
        assert!(notes.contains("one node is met: 0.00 times"), "{notes}");
        assert!(notes.contains("without the tier is met: 2.50 times"), "{notes}");
        let all = [measured(Variant::Eke, 60), measured(Variant::Shared, 100)];
        assert!(goals(&rows(&all)).join("\n").contains("without the tier is missed: 1.67 times"));
        assert!(goals(&rows(&all[..1])).is_empty());
    }

    #[test]
    fn faults_have_rows_of_their_own() {
        let second = |ms| Second { response_ms: vec![ms], ..Second::default() };
        let phase = |fault, all: &[f64]| {
            let seconds = all.iter().map(|ms| second(*ms)).collect();
            Phase { fault, action: Duration::ZERO, seconds }
        };
        let phases = vec![phase(Fault::None, &[10.0]), phase(Fault::NodeKilled, &[50.0, 60.0, 10.0])];
        let faulted = Faulted { phases, ..Faulted::default() };
        let mut trial = measured(Variant::Faults, 1);
        trial.1.faulted = Some(faulted);
        let rows = rows(&[trial]);
        assert!(rows.iter().all(|r| r.metric != THROUGHPUT));
        let metrics = all_metrics();
        assert!(rows.iter().all(|r| metrics.iter().any(|m| m.name == r.metric)));
        let notes = goals(&rows).join("\n");
        assert!(
            notes.starts_with("eke, shared, with faults: no reply was wrong. ")
                && notes.contains("node killed 2 s"),
            "{notes}"
        );
    }
}
