//! Rows and notes from the outcome of a guest. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use eke_bench_desktop::session::{End, metrics};
use eke_model::units::Bytes;
use eke_results::report::Metric;
use eke_results::report::{less, more};
use eke_results::rows::{Rows, params};
use eke_swap::measure::Measured;

use super::{PAGES, mib};
use crate::guest::GuestOutcome;

const HELD: &str = "documents held";
const DENSITY: &str = "memory held by each byte of RAM";
const KILLED: &str = "ended by a kill";
const LATE: &str = "reached the time limit";
const OPENING: &str = "opening a document";
const PAGE: &str = "one page";

/// One run.
#[derive(Debug, Clone)]
pub struct Run {
    pub variant: String,
    pub memory_mib: u32,
    /// How many documents there were to open.
    pub documents: usize,
    pub outcome: GuestOutcome,
}

pub(super) fn metrics(limit: Duration) -> Vec<Metric> {
    let minutes = limit.as_secs() / 60;
    let ratio = "only ratios between variants are meaningful, since the CPU is emulated and the disk is not";
    vec![
        more(
            HELD,
            &format!(
                "documents opened and browsed through {PAGES} pages before one was killed or a page took too long"
            ),
        ),
        more(
            DENSITY,
            "the documents' own memory, resident and swapped, by the RAM that the machine's kernel has",
        ),
        less(
            KILLED,
            "1 for a run that ended by a kill, 0 for one that ended by a page that took too long, by the time limit or with all open",
        ),
        less(
            LATE,
            &format!("1 for a run that was cut off after {minutes} minutes: what it held is \"at least\""),
        ),
        less(OPENING, &format!("from starting the viewer to its first page drawn; {ratio}")),
        less(PAGE, &format!("from the key to the page drawn; {ratio}")),
    ]
}

/// Adds all measurements of a run.
pub(super) fn add(run: &Run, rows: &mut Rows) {
    let events = &run.outcome.events;
    let params = params([("machine_mib", run.memory_mib.into())]);
    let mut put = |metric, unit, samples: Vec<f64>| rows.add(&run.variant, &params, metric, unit, samples);
    let (count, held) = metrics::capacity(events, PAGES);
    put(HELD, "documents", vec![count as f64]);
    let memory = run.outcome.memory;
    let density = (held.anonymous + held.swapped).0 as f64 / memory.0.max(1) as f64;
    put(DENSITY, "bytes", if memory.0 > 0 { vec![density] } else { Vec::new() });
    put(KILLED, "of 1", vec![of_1(is_killed(&run.outcome))]);
    put(LATE, "of 1", vec![of_1(run.outcome.timed_out)]);
    put(OPENING, "s", metrics::openings(events));
    put(PAGE, "s", metrics::browsed(events).into_iter().flat_map(|b| b.seconds).collect());
}

fn of_1(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

/// A session without an end event was killed itself, unless its time was over.
fn is_killed(outcome: &GuestOutcome) -> bool {
    let killed = matches!(metrics::end(&outcome.events), None | Some(End::Killed { .. }));
    killed && !outcome.timed_out
}

/// How each run ended, what the kernel and eke's guard said about what they killed or stopped, and the settings of each variant.
pub(super) fn notes(runs: &[Run], limit: Duration) -> Vec<String> {
    let ends = runs.iter().map(|run| {
        let (count, _) = metrics::capacity(&run.outcome.events, PAGES);
        format!("{}, {} MiB, {} held: {}.", run.variant, run.memory_mib, count, end(run, limit))
    });
    let killed = runs.iter().flat_map(|run| {
        run.outcome.killed.iter().map(|line| format!("{}, {} MiB, said {line}", run.variant, run.memory_mib))
    });
    ends.chain(killed).chain(in_force(runs)).collect()
}

fn end(run: &Run, limit: Duration) -> String {
    let outcome = &run.outcome;
    let moved = moved(outcome);
    if outcome.timed_out {
        let minutes = limit.as_secs() / 60;
        return format!("the time limit of {minutes} minutes was reached, so this is \"at least\"{moved}");
    }
    match metrics::end(&outcome.events) {
        None => format!("the session itself was killed for lack of memory{moved}"),
        Some(End::Finished) => {
            format!("all {} documents were open, so this is \"at least\"{moved}", run.documents)
        }
        Some(_) => format!("the run ended because {}{moved}", metrics::describe_end(&outcome.events)),
    }
}

/// The kernel's counters and the pools' peak. A run that was cut off has no counters.
fn moved(outcome: &GuestOutcome) -> String {
    let (pool, counters) = (&outcome.fullest, &outcome.counters);
    let mut parts = Vec::new();
    if pool.zram_original.0 > 0 {
        parts.push(format!("zram held {} MiB in {} MiB", mib(pool.zram_original), mib(pool.zram_used)));
    }
    if pool.zswap_original.0 > 0 {
        parts.push(format!("zswap held {} MiB in {} MiB", mib(pool.zswap_original), mib(pool.zswap_used)));
    }
    if !outcome.timed_out {
        let (out, back) = (counters.swapped_out, counters.swapped_in);
        parts.push(format!(
            "{out} pages swapped out, {back} back, {} file pages read again",
            counters.file_refaults
        ));
        parts.push(format!("{:.0} s", outcome.seconds));
    }
    format!(" ({})", parts.join("; "))
}

/// The settings of each variant, from its first run in each machine.
fn in_force(runs: &[Run]) -> Vec<String> {
    let mut first: BTreeMap<(u32, &str), &Run> = BTreeMap::new();
    for run in runs {
        first.entry((run.memory_mib, &run.variant)).or_insert(run);
    }
    let known = first.values().filter(|run| !run.outcome.settings.is_empty());
    known
        .map(|run| {
            let by = match run.outcome.set_up_by.as_str() {
                "package" => "set up by its package",
                "values" => "set up by documented values",
                _ => "in force",
            };
            format!("{}, {} MiB, {by}: {}.", run.variant, run.memory_mib, settings(&run.outcome.settings))
        })
        .collect()
}

fn settings(settings: &BTreeMap<String, String>) -> String {
    let zswap = settings.get("zswap.enabled").is_some_and(|value| value == "Y");
    let shown = settings.iter().filter(|(key, _)| zswap || !key.starts_with("zswap."));
    let text = shown.map(|(key, value)| match (key.ends_with(".disksize"), value.parse()) {
        (true, Ok(bytes)) => format!("{key} {} MiB", mib(Bytes(bytes))),
        _ => format!("{key} {value}"),
    });
    text.collect::<Vec<_>>().join(", ")
}

/// eke's measurement as a sentence; `None` for other text.
pub(super) fn measured_note(memory_mib: u32, disk: bool, text: &str) -> Option<String> {
    let measured: Measured = serde_json::from_str(text).ok()?;
    let rows = measured.algorithms.iter().map(|row| match &row.unusable {
        Some(why) => format!("{}: {why}", row.label()),
        None => format!("{} {:.2} to 1 ({} pages, p99 {})", row.label(), row.ratio, row.pages, row.load_p99),
    });
    let rows: Vec<String> = rows.collect();
    let disk = if disk { " with a disk" } else { "" };
    Some(format!("eke measured in {memory_mib} MiB{disk}: {}.", rows.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::outcome::Pool;
    use eke_bench_desktop::session::{Event, MemoryUse};
    use eke_results::report::Row;

    const LIMIT: Duration = Duration::from_secs(600);

    fn document(number: usize) -> Vec<Event> {
        let page = |page| Event::Page {
            document: number,
            page,
            back: false,
            seconds: 2.0,
            content: 0,
            as_expected: None,
        };
        let held = MemoryUse {
            documents: number + 1,
            anonymous: Bytes::mib(30),
            swapped: Bytes::mib(20),
            file: Bytes(0),
        };
        let opened = Event::Opened { document: number, seconds: 8.0, content: 0 };
        [opened].into_iter().chain((1..=PAGES).map(page)).chain([Event::Memory(held)]).collect()
    }

    fn run(documents: usize, end: Option<End>, timed_out: bool) -> Run {
        let ended = end.map(Event::Ended);
        let events = (0..documents).flat_map(document).chain(ended).collect();
        let outcome = GuestOutcome { events, timed_out, memory: Bytes::mib(100), ..GuestOutcome::default() };
        Run { variant: "eke".into(), memory_mib: 124, documents: 12, outcome }
    }

    fn killed() -> End {
        End::Killed { what: "viewer of document 3".into(), signal: Some(9) }
    }

    fn rows(run: &Run) -> Vec<Row> {
        let mut rows = Rows::default();
        add(run, &mut rows);
        rows.done()
    }

    fn sample(run: &Run, metric: &str) -> Option<f64> {
        rows(run).iter().find(|row| row.metric == metric).map(|row| row.samples[0])
    }

    #[test]
    fn a_killed_run_holds_what_was_browsed_before() {
        let run = run(2, Some(killed()), false);
        let values = [HELD, DENSITY, KILLED, LATE].map(|metric| sample(&run, metric).unwrap());
        assert_eq!(values, [2.0, 0.5, 1.0, 0.0]);
        let rows = rows(&run);
        assert!(rows.iter().all(|row| row.params["machine_mib"] == 124));
        assert_eq!(rows.iter().find(|row| row.metric == PAGE).unwrap().samples.len(), 2 * PAGES as usize);
        assert!(notes(&[run], LIMIT)[0].starts_with(
            "eke, 124 MiB, 2 held: the run ended because viewer of document 3 was killed for lack of memory ("
        ));
    }

    #[test]
    fn a_run_that_was_cut_off_is_at_least_and_not_killed() {
        let run = run(3, None, true);
        assert_eq!([KILLED, LATE].map(|metric| sample(&run, metric).unwrap()), [0.0, 1.0]);
        let note = &notes(&[run], LIMIT)[0];
        assert!(
            note.contains("3 held: the time limit of 10 minutes was reached, so this is \"at least\""),
            "{note}"
        );
        assert!(!note.contains("swapped out"), "it has no counters: {note}");
    }

    #[test]
    fn a_session_that_was_killed_itself_is_a_kill_and_nothing_held_is_a_figure() {
        let mut run = run(0, None, false);
        assert_eq!([HELD, KILLED].map(|metric| sample(&run, metric).unwrap()), [0.0, 1.0]);
        run.outcome.memory = Bytes(0);
        assert_eq!(sample(&run, DENSITY), None);
    }

    #[test]
    fn all_open_is_at_least() {
        let note = &notes(&[run(12, Some(End::Finished), false)], LIMIT)[0];
        assert!(note.contains("12 held: all 12 documents were open, so this is \"at least\""), "{note}");
    }

    #[test]
    fn what_was_in_force_is_said_once_for_each() {
        let mut run = run(1, Some(killed()), false);
        run.outcome.set_up_by = "package".into();
        for (key, value) in [("zram0.disksize", "268435456"), ("zswap.enabled", "N"), ("vm.swappiness", "60")]
        {
            run.outcome.settings.insert(key.into(), value.into());
        }
        run.outcome.fullest =
            Pool { zram_original: Bytes::mib(40), zram_used: Bytes::mib(10), ..Pool::default() };
        let notes = notes(&[run.clone(), run], LIMIT);
        assert_eq!(notes.len(), 3);
        assert!(notes[0].contains("zram held 40 MiB in 10 MiB"), "{}", notes[0]);
        assert_eq!(
            notes[2],
            "eke, 124 MiB, set up by its package: vm.swappiness 60, zram0.disksize 256 MiB."
        );
    }

    #[test]
    fn what_eke_measured_is_said() {
        assert_eq!(measured_note(124, false, "no measurement"), None);
        let text = serde_json::to_string(&Measured::default()).unwrap();
        assert!(measured_note(124, true, &text).unwrap().starts_with("eke measured in 124 MiB with a disk"));
    }
}
