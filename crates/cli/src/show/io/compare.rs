//! `io compare` and `io sweep` as text.

use std::fmt::Write as _;

use eke_io::compare::result::{ComparisonResult, MetricDifference, RunMetric, Side, classes};
use eke_io::{Class, Histogram};
use eke_model::units::Bytes;
use eke_present::table::Table;

use super::histogram::{time, two};

/// Both histograms of each class side by side, and the differences.
pub fn pair(compared: &ComparisonResult) -> String {
    let mut out = heading(compared);
    let [a, b] = &compared.sides[..] else { return sweep(compared) };
    for class in classes(&compared.sides) {
        let _ = writeln!(out, "\n  {class}");
        out += &two([&a.value, &b.value], [&whole(a, class), &whole(b, class)]);
        let _ = write!(out, "\n{}", table(compared, class, [&a.value, &b.value]));
    }
    out + &foot(compared)
}

/// A table and a plot for each class.
pub fn sweep(compared: &ComparisonResult) -> String {
    let mut out = heading(compared);
    for class in classes(&compared.sides) {
        let _ = write!(out, "\n  {class}\n{}", values(compared, class));
        out += &plot(compared, class);
    }
    out + &foot(compared)
}

fn heading(compared: &ComparisonResult) -> String {
    let values: Vec<&str> = compared.sides.iter().map(|side| side.value.as_str()).collect();
    let runs = compared.sides.first().map_or(0, |side| side.runs.len());
    let mut out = format!(
        "{}: {}, {runs} runs each, latencies of {} (by {})\n",
        compared.knob,
        values.join(" and "),
        compared.device,
        compared.source
    );
    for what in &compared.missing {
        let _ = writeln!(out, "missing: {what}");
    }
    out
}

fn foot(compared: &ComparisonResult) -> String {
    let runs = compared.sides.first().map_or(0, |side| side.runs.len());
    let doubt =
        if runs < 5 { " With so few runs the interval is too narrow: read it as a hint." } else { "" };
    format!(
        "\nA difference is the mean over the pairs, with its 95 % interval (bootstrap). \"chance\": the interval includes 0.{doubt}\nThe setting is as it was before.\n"
    )
}

fn whole(side: &Side, class: Class) -> Histogram {
    let figures = side.all.classes.iter().find(|f| f.class == class);
    figures.map(|f| f.latency.whole).unwrap_or_default()
}

fn table(compared: &ComparisonResult, class: Class, names: [&str; 2]) -> Table {
    let mut table = Table::new(&["", names[0], names[1], "difference", "from", "to", ""]).ending_in_words();
    for differs in compared.differences.iter().filter(|d| d.class == class) {
        table.row(row(differs));
    }
    table
}

fn row(differs: &MetricDifference) -> [String; 7] {
    let MetricDifference { metric, a, b, difference, .. } = differs;
    let share = if *a > 0.0 { format!("{:+.0} %", 100.0 * difference.mean / a) } else { String::new() };
    let verdict = if difference.is_clear() {
        share
    } else {
        format!("{share}, chance").trim_start_matches(", ").to_owned()
    };
    [
        metric.name().to_owned(),
        value(*metric, *a),
        value(*metric, *b),
        signed(*metric, difference.mean),
        signed(*metric, difference.low),
        signed(*metric, difference.high),
        verdict,
    ]
}

fn value(metric: RunMetric, value: f64) -> String {
    match metric {
        RunMetric::BytesPerSecond => Bytes(value as u64).to_string(),
        RunMetric::PerSecond => format!("{value:.1}"),
        _ => time(Some(value)),
    }
}

fn signed(metric: RunMetric, of: f64) -> String {
    if of.is_infinite() {
        return "?".to_owned();
    }
    format!("{}{}", if of < 0.0 { "−" } else { "+" }, value(metric, of.abs()))
}

fn values(compared: &ComparisonResult, class: Class) -> Table {
    let header: Vec<&str> = std::iter::once("").chain(RunMetric::ALL.map(RunMetric::name)).collect();
    let mut table = Table::new(&header);
    for side in &compared.sides {
        let cells = RunMetric::ALL
            .map(|metric| side.mean(class, metric).map_or_else(|| "-".to_owned(), |v| value(metric, v)));
        table.row(std::iter::once(side.value.clone()).chain(cells));
    }
    table
}

/// The 99th percentile as a bar for each value.
fn plot(compared: &ComparisonResult, class: Class) -> String {
    const WIDTH: f64 = 50.0;
    let p99 = |side: &Side| side.mean(class, RunMetric::P99);
    let most = compared.sides.iter().filter_map(p99).fold(0.0, f64::max);
    let name = compared.sides.iter().map(|side| side.value.chars().count()).max().unwrap_or(0);
    if most == 0.0 {
        return String::new();
    }
    let mut out = "\n  p99\n".to_owned();
    for side in &compared.sides {
        let Some(ns) = p99(side) else { continue };
        let bar = "@".repeat(((ns / most.max(1.0) * WIDTH).round() as usize).max(1));
        let _ = writeln!(out, "  {:>name$} |{bar} {}", side.value, time(Some(ns)));
    }
    out
}
