//! The demo's report as text.

use std::fmt::Write as _;

use eke_model::units::Nanos;

use super::{DemoReport, DemoRun};
use crate::stressor::latency::Latency;

/// Two medians within this factor count as alike.
const ALIKE: f64 = 1.3;

/// Renders the report for a terminal: a table, its meaning, and notes. Lines have at most 100 characters, except notes.
pub fn render(report: &DemoReport) -> String {
    let mut out = format!(
        "A process with {} of its own pages, compressible 3 to 1, in a box of {}:\n\n",
        report.data, report.memory
    );
    let _ = writeln!(
        out,
        "  {:<18} {:<32} {:>10} {:>10} {:>9}",
        "swap", "the process", "read p50", "read p99", "reads"
    );
    let _ = writeln!(out, "{}", row("none", &report.without));
    if let Some(disk) = &report.disk {
        let _ = writeln!(out, "{}", row("on the disk", disk));
    }
    let _ = writeln!(out, "{}\n", row("compressed", &report.compressed));
    for line in meaning(report) {
        let _ = writeln!(out, "{line}");
    }
    for note in &report.notes {
        let _ = writeln!(out, "note: {note}");
    }
    let _ = writeln!(out, "The demo took {:.0} s.", report.seconds);
    out
}

fn row(name: &str, part: &DemoRun) -> String {
    let time = |of: fn(&Latency) -> Nanos| part.reads.as_ref().map_or("-".to_owned(), |t| of(t).to_string());
    let count = part.reads.map_or("-".to_owned(), |t| t.count.to_string());
    format!("  {name:<18} {:<32} {:>10} {:>10} {count:>9}", outcome(part), time(|t| t.p50), time(|t| t.p99))
}

fn outcome(part: &DemoRun) -> String {
    let seconds = part.run.seconds;
    match (part.finished, part.run.oom_killed, part.run.exit_code) {
        (true, ..) if part.passes == 0 => format!("only filled, {:.1} s", part.work_seconds),
        (true, ..) => format!("finished, {:.1} s", part.work_seconds),
        (_, true, _) if part.run.over_budget => format!("killed over its budget, {seconds:.1} s"),
        (_, true, _) => format!("killed by the kernel, {seconds:.1} s"),
        _ if part.run.interrupted => format!("stuck, ended after {seconds:.0} s"),
        _ if part.corrupted_pages > 0 => format!("{} PAGES WERE CORRUPTED", part.corrupted_pages),
        (.., Some(code)) => format!("failed with exit code {code}"),
        _ => format!("ended by signal {}", part.run.signal.unwrap_or(0)),
    }
}

fn meaning(report: &DemoReport) -> Vec<String> {
    let mut lines = vec![verdict(report)];
    if let Some(ratio) = report.compressed.run.ratio() {
        let run = &report.compressed.run;
        lines.push(format!(
            "At most {} of it were swapped, compressed into {} of RAM: {ratio:.2} to 1. The box paid for that RAM.",
            run.most_swapped, run.charged_for_most_swapped
        ));
    }
    lines.extend(report.disk.as_ref().and_then(|disk| against_disk(disk, &report.compressed)));
    lines
}

fn verdict(report: &DemoReport) -> String {
    let without = match &report.without.run {
        run if run.interrupted => {
            "Without swap it got stuck, reading its own program from the disk again and again"
        }
        run if run.oom_killed => "Without swap it was killed",
        _ => "Without swap it did not finish",
    };
    match (report.without.finished, report.compressed.finished) {
        (false, true) => {
            format!("{without}; with compressed swap it finished, every page as it was written.")
        }
        (false, false) => format!("{without}. It did not finish with compressed swap either."),
        (true, true) => {
            "It finished with compressed swap, but also without: this box was not too small for it."
                .to_owned()
        }
        (true, false) => "It finished without swap, but not with compressed swap.".to_owned(),
    }
}

fn against_disk(disk: &DemoRun, compressed: &DemoRun) -> Option<String> {
    let (before, after) = (disk.reads?, compressed.reads?);
    let factor = |a: Nanos, b: Nanos| a.0 as f64 / b.0.max(1) as f64;
    let (median, p99) = (factor(before.p50, after.p50), factor(before.p99, after.p99));
    let fault_shares = format!(
        "({:.0} % of the reads came from the disk, {:.0} % from compressed memory)",
        disk.reads_from_swap * 100.0,
        compressed.reads_from_swap * 100.0
    );
    Some(if median > ALIKE {
        format!(
            "A random read takes {} instead of {}: {median:.1} times faster, p99 {p99:.1} times {fault_shares}.",
            after.p50, before.p50
        )
    } else if median < 1.0 / ALIKE {
        format!(
            "This machine's disk is not slower: a random read takes {} there and {} from compressed memory {fault_shares}.",
            before.p50, after.p50
        )
    } else {
        format!(
            "This machine's disk is about as fast: a random read takes {} there and {} from compressed memory {fault_shares}.",
            before.p50, after.p50
        )
    })
}
