//! `io compare` and `io sweep` as text.

use std::fmt::Write as _;

use eke_io::compare::outcome::{Differs, Figure, Outcome, Side, classes};
use eke_io::{Class, Histogram};
use eke_model::units::Bytes;
use eke_present::table::Table;

use super::histogram::{time, two};

/// Both histograms of each class side by side, and the differences.
pub fn pair(compared: &Outcome) -> String {
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
pub fn sweep(compared: &Outcome) -> String {
    let mut out = heading(compared);
    for class in classes(&compared.sides) {
        let _ = write!(out, "\n  {class}\n{}", values(compared, class));
        out += &plot(compared, class);
    }
    out + &foot(compared)
}

fn heading(compared: &Outcome) -> String {
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

fn foot(compared: &Outcome) -> String {
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

fn table(compared: &Outcome, class: Class, names: [&str; 2]) -> Table {
    let mut table = Table::new(&["", names[0], names[1], "difference", "from", "to", ""]).ending_in_words();
    for differs in compared.differences.iter().filter(|d| d.class == class) {
        table.row(row(differs));
    }
    table
}

fn row(differs: &Differs) -> [String; 7] {
    let Differs { figure, a, b, difference, .. } = differs;
    let share = if *a > 0.0 { format!("{:+.0} %", 100.0 * difference.mean / a) } else { String::new() };
    let verdict = if difference.is_clear() {
        share
    } else {
        format!("{share}, chance").trim_start_matches(", ").to_owned()
    };
    [
        figure.name().to_owned(),
        value(*figure, *a),
        value(*figure, *b),
        signed(*figure, difference.mean),
        signed(*figure, difference.low),
        signed(*figure, difference.high),
        verdict,
    ]
}

fn value(figure: Figure, value: f64) -> String {
    match figure {
        Figure::BytesPerSecond => Bytes(value as u64).to_string(),
        Figure::PerSecond => format!("{value:.1}"),
        _ => time(Some(value)),
    }
}

fn signed(figure: Figure, of: f64) -> String {
    if of.is_infinite() {
        return "?".to_owned();
    }
    format!("{}{}", if of < 0.0 { "−" } else { "+" }, value(figure, of.abs()))
}

fn values(compared: &Outcome, class: Class) -> Table {
    let header: Vec<&str> = std::iter::once("").chain(Figure::ALL.map(Figure::name)).collect();
    let mut table = Table::new(&header);
    for side in &compared.sides {
        let cells = Figure::ALL
            .map(|figure| side.mean(class, figure).map_or_else(|| "-".to_owned(), |v| value(figure, v)));
        table.row(std::iter::once(side.value.clone()).chain(cells));
    }
    table
}

/// The 99th percentile as a bar for each value.
fn plot(compared: &Outcome, class: Class) -> String {
    const WIDTH: f64 = 50.0;
    let p99 = |side: &Side| side.mean(class, Figure::P99);
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
