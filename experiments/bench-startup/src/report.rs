//! The report of all runs. Pure.

use std::collections::BTreeMap;

use eke_bench_core::{Environment, Results};
use eke_results::report::words::shown;
use eke_results::report::{Report, Role, Row, Variant as Compared, median};
use eke_results::rows::{Params, Rows, params};

use super::Options;
use super::calls::Calls;
use super::cost::Cost;
use super::harm::Harm;
use super::metrics::{self, Value};
use super::plan::{Run, Variant, What};
use super::programs::{self, Program};
use super::ten::Ten;
use super::trial::Trial;

/// A disk, by its place in [`Options::disks`].
pub type Disk = usize;

/// All measurements, by kind.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Measurements {
    /// The runs.
    pub trials: Vec<(Disk, &'static Program, Variant, Trial)>,
    /// The number and bytes of maps, by program.
    pub maps: BTreeMap<&'static str, (usize, u64)>,
    /// Launches under strace.
    pub calls: Vec<(Disk, &'static Program, Variant, Calls)>,
    /// Rows, with their programs.
    pub ten: Vec<(Disk, Variant, Vec<&'static Program>, Ten)>,
    /// A second reader beside a start.
    pub harm: Vec<(Disk, &'static Program, Variant, Harm)>,
    /// The CPU time of traced starts.
    pub cost: Vec<(Disk, &'static Program, Cost)>,
    /// What was left out, and what failed.
    pub notes: Vec<String>,
}

/// The outcome of one run.
#[derive(Debug, Clone, PartialEq)]
pub enum Measurement {
    /// A start.
    Start(Trial),
    /// A start under strace.
    Calls(Calls),
    /// A start beside another reader.
    Harm(&'static Program, Harm),
    /// Starts in a row.
    Ten(Vec<&'static Program>, Ten),
    /// The CPU time of starts with and without eke-prefetch.
    Cost(Cost),
}

/// Sorts the measurements by kind.
pub fn by_kind(
    results: Results<Run, Measurement>,
    maps: BTreeMap<&'static str, (usize, u64)>,
) -> Measurements {
    let mut measured = Measurements { maps, notes: results.notes, ..Measurements::default() };
    for (Run { disk, variant, what }, measurement) in results.measured {
        match (what, measurement) {
            (What::Start { program, .. }, Measurement::Start(trial)) => {
                measured.trials.push((disk, program, variant, trial));
            }
            (What::Traced { program }, Measurement::Calls(calls)) => {
                measured.calls.push((disk, program, variant, calls));
            }
            (_, Measurement::Harm(program, harm)) => measured.harm.push((disk, program, variant, harm)),
            (_, Measurement::Ten(row, ten)) => measured.ten.push((disk, variant, row, ten)),
            (What::Cost { program }, Measurement::Cost(cost)) => measured.cost.push((disk, program, cost)),
            _ => {}
        }
    }
    measured
}

/// The disk's name, or `this machine's own`.
pub fn disk_name(options: &Options, disk: Disk) -> String {
    options.disks.get(disk).cloned().flatten().unwrap_or_else(|| "this machine's own".to_owned())
}

/// The report.
pub fn report(
    environment: &Environment<'_>,
    options: &Options,
    variants: &[Variant],
    measured: Measurements,
) -> Report {
    let rows = rows(options, &measured);
    let mut notes = tables(options, &measured);
    notes.extend(measured.cost.iter().filter_map(|(_, program, cost)| cost_line(program, cost)));
    notes.extend(about(options));
    notes.extend(measured.notes);
    Report {
        variants: variants.iter().map(|v| compared(*v, options)).collect(),
        metrics: metrics::metrics(),
        rows,
        notes,
        ..environment.report("startup")
    }
}

/// The samples of a variant's runs.
fn samples(
    measured: &Measurements,
    disk: Disk,
    program: &str,
    variant: Variant,
    of: impl Fn(&Trial) -> f64,
) -> Vec<f64> {
    let same =
        |t: &&(Disk, &'static Program, Variant, Trial)| t.0 == disk && t.1.name == program && t.2 == variant;
    measured.trials.iter().filter(same).map(|(.., trial)| of(trial)).collect()
}

fn middle(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| median(samples))
}

fn cold_bytes(measured: &Measurements, disk: Disk, program: &str) -> Option<f64> {
    middle(&samples(measured, disk, program, Variant::Cold, |t| t.during.bytes as f64))
}

fn seconds(measured: &Measurements, disk: Disk, program: &str, variant: Variant) -> Option<f64> {
    middle(&samples(measured, disk, program, variant, |t| t.seconds))
}

fn rows(options: &Options, measured: &Measurements) -> Vec<Row> {
    let mut rows = Rows::default();
    let mut add = |variant: Variant, params: &Params, values: Vec<Value>| {
        for (metric, unit, value) in values {
            rows.add(variant.name(), params, metric, unit, [value]);
        }
    };
    let at = |disk: Disk, program: &str| {
        params([("disk", disk_name(options, disk).into()), ("program", program.to_owned().into())])
    };
    for (disk, program, variant, trial) in &measured.trials {
        let program = program.name;
        let cold_s = seconds(measured, *disk, program, Variant::Cold).filter(|_| *variant != Variant::Cold);
        let cold = cold_bytes(measured, *disk, program).filter(|_| *variant != Variant::Cold);
        add(*variant, &at(*disk, program), metrics::of_trial(trial, cold_s, cold));
    }
    for (program, (maps, bytes)) in &measured.maps {
        add(Variant::Cold, &params([("program", (*program).into())]), metrics::of_maps(*maps, *bytes));
    }
    for (disk, program, variant, calls) in &measured.calls {
        add(*variant, &at(*disk, program.name), metrics::of_calls(calls));
    }
    for (disk, program, variant, value) in faults(measured) {
        add(variant, &at(disk, program), vec![value]);
    }
    for (disk, variant, row, ten) in &measured.ten {
        let cold: Option<f64> = row.iter().map(|p| cold_bytes(measured, *disk, p.name)).sum();
        add(*variant, &params([("disk", disk_name(options, *disk).into())]), metrics::of_ten(ten, cold));
    }
    for (disk, program, variant, harm) in &measured.harm {
        add(*variant, &at(*disk, program.name), metrics::of_harm(harm));
    }
    for (disk, program, cost) in &measured.cost {
        let (unseen, seen) = metrics::of_cost(cost);
        add(Variant::Warm, &at(*disk, program.name), unseen);
        add(Variant::AtExec, &at(*disk, program.name), seen);
    }
    rows.done()
}

/// The time in page faults, for variants with launches with and without strace, and warm ones.
fn faults(measured: &Measurements) -> Vec<(Disk, &'static str, Variant, Value)> {
    let times = |disk: Disk, program: &str, variant: Variant| {
        let same = |c: &&(Disk, &'static Program, Variant, Calls)| {
            c.0 == disk && c.1.name == program && c.2 == variant
        };
        let calls_s = measured.calls.iter().find(same)?.3.seconds();
        Some(metrics::Times { start_s: seconds(measured, disk, program, variant)?, calls_s })
    };
    let others = measured.calls.iter().filter(|c| c.2 != Variant::Warm);
    let of = |(disk, program, variant, _): &(Disk, &'static Program, Variant, Calls)| {
        let (this, warm) =
            (times(*disk, program.name, *variant)?, times(*disk, program.name, Variant::Warm)?);
        Some((*disk, program.name, *variant, metrics::of_faults(this, warm)))
    };
    others.filter_map(of).collect()
}

/// The thesis's table, a sentence for each program and disk: time cold, warm and with preload, its gain, maps and size.
fn tables(options: &Options, measured: &Measurements) -> Vec<String> {
    let disks = 0..options.disks.len();
    let lines = disks.flat_map(|disk| {
        programs::all().filter_map(move |program| table_line(options, measured, disk, program))
    });
    lines.collect()
}

fn table_line(options: &Options, measured: &Measurements, disk: Disk, program: &Program) -> Option<String> {
    let cold = seconds(measured, disk, program.name, Variant::Cold)?;
    let of = |variant: Variant| {
        let seconds = seconds(measured, disk, program.name, variant)?;
        let gain = if variant == Variant::Warm {
            String::new()
        } else {
            format!(" (gain {:.0} %)", 100.0 * (1.0 - seconds / cold))
        };
        Some(format!(", {} {} s{gain}", variant.name(), shown(seconds)))
    };
    let others: String = Variant::ALL[1..].iter().filter_map(|v| of(*v)).collect();
    let maps = measured
        .maps
        .get(program.name)
        .map(|(maps, bytes)| format!("; {maps} maps, {} MB", shown((*bytes as f64 / 1e6).round())));
    let thesis = thesis(program.name).map(|row| format!(". The thesis: {row}"));
    Some(format!(
        "{} on {}: cold {} s{others}{}{}.",
        program.name,
        disk_name(options, disk),
        shown(cold),
        maps.unwrap_or_default(),
        thesis.unwrap_or_default()
    ))
}

/// The program's row in table 6.2 of the thesis.
fn thesis(program: &str) -> Option<&'static str> {
    match program {
        "writer" => Some("OpenOffice Writer cold 15 s, warm 2, preload 7 (gain 53 %); 323 maps, 90 MB"),
        "gedit" => Some("gedit cold 6 s, warm 0.1, preload 4 (gain 33 %); 216 maps, 52 MB"),
        "xterm" => Some("gnome-terminal cold 4 s, warm 0.4, preload 3 (gain 25 %); 184 maps, 27 MB"),
        _ => None,
    }
}

fn cost_line(program: &Program, cost: &Cost) -> Option<String> {
    let [(known, learned), (own_known, own_learned)] = metrics::overhead_percent(cost)?;
    Some(format!(
        "A warm start of {} takes {known:+.1} % of CPU time while eke-prefetch knows it and probes its files, and {learned:+.1} % while it is learned (medians, with what eke-prefetch takes itself, which is {own_known:.1} % and {own_learned:.1} %).",
        program.name
    ))
}

fn about(options: &Options) -> Vec<String> {
    let mut notes = vec![
        format!(
            "The programs lie on an ext4 image of their own with all files of their packages and of those that these depend on, mounted anew for each run: pages, dentries, inodes and the file system's own tables are cold. Disks: {}.",
            (0..options.disks.len()).map(|d| disk_name(options, d)).collect::<Vec<_>>().join(", ")
        ),
        "The X server, the programs' home directory (with what a first start leaves there) and /tmp are not on that disk. There is no window manager, session bus or settings daemon.".to_owned(),
        "A start is over when the first top-level window is mapped that is not override-redirect, as X reports it to clients; it may have nothing drawn yet.".to_owned(),
        "Time in system calls is that of one more launch under strace -f -T, all threads together, with what tracing costs; time in page faults is worked out from that and the starts without strace.".to_owned(),
    ];
    if options.harm {
        notes.push("The other reader reads single blocks of 4 KiB at random places of the same disk past the page cache, 20 a second as long as the disk keeps up.".to_owned());
    }
    if options.repeats < 3 {
        notes.push("Each run was made once or twice: a small difference can be chance.".to_owned());
    }
    notes
}

fn compared(variant: Variant, options: &Options) -> Compared {
    let role = match variant {
        Variant::Cold | Variant::Warm => Role::Baseline,
        Variant::Preload => Role::Peer,
        Variant::Ahead | Variant::AtExec => Role::Ours,
    };
    Compared { name: variant.name().to_owned(), role, set_up: set_up(variant, options) }
}

fn set_up(variant: Variant, options: &Options) -> String {
    match variant {
        Variant::Cold => "the disk was mounted just before".to_owned(),
        Variant::Warm => "the program was started and ended just before".to_owned(),
        Variant::Preload => format!(
            "preload 0.6.4 of Debian, its own daemon with a cycle of {} s (shipped: 20 s), nice 15 and idle I/O class as Debian starts it. Trained by three replays of a predecessor followed by the program. For each run its state is restored and the predecessor started; the program starts when preload reads no more: its best case. Its prefixes are the default ones on the programs' disk; its budget and everything else are defaults",
            options.preload_cycle_s
        ),
        Variant::Ahead => "eke-prefetch reads the program's file set, learned in three launches, before the start, and at exec what is missing; in the row it predicts by itself".to_owned(),
        Variant::AtExec => "eke-prefetch traces the exec of the program and reads its file set from then on; it has traced a launch before, so that it has measured the disk".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Reads;
    use crate::metrics::START;
    use crate::plan::tests::options;
    use crate::programs::named;

    fn measured() -> Measurements {
        let program = named("gedit").unwrap();
        let trial = |seconds, bytes, ahead: Option<u64>| Trial {
            seconds,
            major_faults: 1,
            during: Reads { requests: 1, bytes },
            ahead: ahead.map(|bytes| Reads { requests: 1, bytes }),
        };
        Measurements {
            trials: vec![
                (0, program, Variant::Cold, trial(6.0, 100_000_000, None)),
                (0, program, Variant::Cold, trial(6.2, 100_000_000, None)),
                (0, program, Variant::Warm, trial(0.2, 0, None)),
                (0, program, Variant::Preload, trial(4.0, 60_000_000, Some(50_000_000))),
            ],
            maps: [("gedit", (671, 258_000_000))].into(),
            ..Measurements::default()
        }
    }

    #[test]
    fn the_theses_table_is_a_sentence_for_each_program() {
        let lines = tables(&options(), &measured());
        assert_eq!(
            lines,
            [
                "gedit on sd: cold 6.10 s, warm 0.200 s, preload 4 s (gain 34 %); 671 maps, 258 MB. The thesis: gedit cold 6 s, warm 0.1, preload 4 (gain 33 %); 216 maps, 52 MB."
            ]
        );
    }

    #[test]
    fn repeats_are_samples_and_gains_are_beside_the_cold_median() {
        let rows = rows(&options(), &measured());
        let of =
            |variant: &str, metric: &str| rows.iter().find(|r| r.variant == variant && r.metric == metric);
        assert_eq!(of("cold", START).unwrap().samples, [6.0, 6.2]);
        assert!(of("cold", metrics::GAIN).is_none());
        let preload = of("preload", metrics::FOUND).unwrap();
        assert_eq!((preload.median, &preload.params["disk"]), (40.0, &"sd".into()));
        assert!((of("preload", metrics::UNUSED).unwrap().median - 10.0).abs() < 1e-9);
        assert_eq!(of("cold", metrics::MAPS).unwrap().params.len(), 1);
    }
}
