//! A replay of predictors as a report: hits and waste by budget, ranks, and how often predictions came true.
//! Pure, except for the machine's name.

use std::collections::BTreeMap;

use eke_linux::Root;
use eke_prefetch_replay::Row;
use serde_json::Value;

use eke_results::report::{Machine, Metric, Report, Role, Variant};
use eke_results::report::{less, more};
use eke_results::rows::{Params, Rows, params};

use crate::provenance;

const HAPPENED: &str = "came about";
const PREDICTED: &str = "as predicted";
const COUNT: &str = "predictions";
const OURS: &str = "eke";

/// The report of a replay of `trace`.
pub fn report(root: &Root, trace: &str, replayed: &[Row], command: String) -> Report {
    let mut rows = Rows::default();
    for row in replayed {
        add(&mut rows, row);
    }
    add_reliability(&mut rows, replayed);
    let rows = rows.done();
    let mut variants: Vec<Variant> = Vec::new();
    for name in rows.iter().map(|row| &row.variant) {
        if !variants.iter().any(|known| known.name == *name) {
            variants.push(Variant { name: name.clone(), role: role(name), set_up: String::new() });
        }
    }
    Report {
        experiment: "prefetch replay".to_owned(),
        command,
        provenance: Some(provenance::now(root)),
        machine: Machine::of(root),
        variants,
        metrics: metrics(),
        rows,
        notes: notes(trace, replayed),
        ..Report::default()
    }
}

fn role(variant: &str) -> Role {
    match variant {
        OURS => Role::Ours,
        "page cache" | "oracle" | PREDICTED => Role::Baseline,
        _ => Role::Peer,
    }
}

fn metrics() -> Vec<Metric> {
    vec![
        more(
            "hit maps",
            "Of the maps that starting programs need, those that were prefetched before: the thesis's measure.",
        ),
        more("hit bytes", "The same by bytes."),
        less("waste", "Of what was prefetched, what no program used before it was given up; an upper bound."),
        less("fetched per start", "What was read for it, for each start."),
        more("hit at", "The next program was among the first so many."),
        more(
            HAPPENED,
            "Of the programs of which this was predicted, those that started in time: on the line where both are the same.",
        ),
        more(COUNT, "How often this was predicted: a bin of few says little."),
    ]
}

/// The conditions, as numbers where possible.
fn add(rows: &mut Rows, row: &Row) {
    let (unit, of) = if row.unit == "bytes" { ("MB", 1e6) } else { (row.unit.as_str(), 1.0) };
    let mut add = |name: &str, at: Params| rows.add(name, &at, &row.metric, unit, [row.value / of]);
    match row.metric.as_str() {
        "hit maps" | "hit bytes" | "waste" | "fetched per start" => {
            let Some(bytes) = number(row, "budget") else { return };
            let mib = (bytes / f64::from(1 << 20) * 10.0).round() / 10.0;
            for (name, chosen) in places(row) {
                add(&name, params([("budget_mib", mib.into()), ("chosen", chosen.into())]));
            }
        }
        "hit at" => {
            if let Some(k) = number(row, "k") {
                add(&row.variant, params([("among", k.into())]));
            }
        }
        _ => {}
    }
}

/// The variant's name and the choice beside which it is shown. Preload's model also chooses by itself, and is shown beside the better
/// choice then. The page cache chooses nothing, and is shown beside both.
fn places(row: &Row) -> Vec<(String, &'static str)> {
    const PER_BYTE: &str = "by what a byte saves";
    const PROBABILITY: &str = "by probability";
    let name = row.variant.clone();
    match row.params.get("order").map(String::as_str) {
        Some("own") if role(&name) == Role::Peer => vec![(format!("{name}, its own choice"), PER_BYTE)],
        Some("own") => Vec::new(),
        Some("probability") => vec![(name, PROBABILITY)],
        Some(_) => vec![(name, PER_BYTE)],
        None => vec![(name.clone(), PER_BYTE), (name, PROBABILITY)],
    }
}

fn number(row: &Row, param: &str) -> Option<f64> {
    row.params.get(param)?.parse().ok()
}

/// A bin of predictions and what became of them.
struct ReliabilityBin<'a> {
    of: &'a BTreeMap<String, String>,
    predicted: f64,
    observed: f64,
    count: f64,
}

impl<'a> ReliabilityBin<'a> {
    fn horizon(&self) -> Option<&'a String> {
        self.of.get("horizon")
    }

    fn sentence(&self) -> String {
        let count = self.count;
        format!(
            "{:.1} % came about of {:.1} % predicted ({count} predictions)",
            self.observed, self.predicted
        )
    }
}

/// All bins, in order.
fn bins(replayed: &[Row]) -> impl Iterator<Item = ReliabilityBin<'_>> {
    let value = |of: &BTreeMap<String, String>, metric: &str| {
        replayed.iter().find(|row| row.metric == metric && row.params == *of).map(|row| row.value)
    };
    let all = replayed.iter().filter(|row| row.metric == "predicted" && row.params.contains_key("from"));
    all.filter_map(move |Row { params: of, value: predicted, .. }| {
        let (observed, count) = (value(of, "observed")?, value(of, "count")?);
        Some(ReliabilityBin { of, predicted: *predicted, observed, count })
    })
}

/// Observed over predicted frequencies with their counts, and the diagonal.
fn add_reliability(rows: &mut Rows, replayed: &[Row]) {
    for bin in bins(replayed) {
        let within = bin.horizon().map_or(Value::Null, |s| format!("{s} s").into());
        let at = params([("predicted_percent", bin.predicted.into()), ("within", within)]);
        rows.add(PREDICTED, &at, HAPPENED, "%", [bin.predicted]);
        rows.add(OURS, &at, HAPPENED, "%", [bin.observed]);
        rows.add(OURS, &at, COUNT, "", [bin.count]);
    }
}

/// A mean over all predictions would show the many small ones only.
fn reliability_notes(replayed: &[Row]) -> Vec<String> {
    let mut of_horizon: Vec<(&String, Vec<String>)> = Vec::new();
    for bin in bins(replayed) {
        let Some(horizon) = bin.horizon() else { continue };
        match of_horizon.last_mut().filter(|(last, _)| *last == horizon) {
            Some((_, sentences)) => sentences.push(bin.sentence()),
            None => of_horizon.push((horizon, vec![bin.sentence()])),
        }
    }
    let note = |(horizon, sentences): (&String, Vec<String>)| {
        format!("eke's predictions for {horizon} s by bins: {}.", sentences.join("; "))
    };
    of_horizon.into_iter().map(note).collect()
}

fn notes(trace: &str, replayed: &[Row]) -> Vec<String> {
    let starts = replayed.iter().find(|row| row.metric == "starts").map_or(0.0, |row| row.value);
    let mut notes = vec![
        format!("The trace: {trace}; {starts} starts of programs."),
        "The oracle knows what comes; the page cache is what was used last, with nothing prefetched."
            .to_owned(),
    ];
    let unbound = replayed.iter().filter(|row| row.metric == "bound" && row.value == 0.0);
    notes.extend(unbound.filter_map(|row| {
        let mib = number(row, "budget")? / f64::from(1 << 20);
        let name = places(row).into_iter().next()?.0;
        Some(format!(
            "A budget of {mib:.1} MiB was enough for everything that {name} chose: its hits mean nothing."
        ))
    }));
    notes.extend(reliability_notes(replayed));
    notes
}

#[cfg(test)]
mod tests {
    use eke_testkit::fake_kernel::FakeKernel;

    use std::collections::BTreeSet;

    use super::*;
    use eke_results::page::page;
    use eke_results::report::groups::{Group, groups};

    fn row(variant: &str, of: &[(&str, &str)], metric: &str, unit: &str, value: f64) -> Row {
        let params = of.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Row { variant: variant.into(), params, metric: metric.into(), unit: unit.into(), value }
    }

    fn replayed() -> Vec<Row> {
        let mut rows = vec![row("trace", &[], "starts", "", 9.0)];
        for (budget, hits) in [("1048576", 10.0), ("2097152", 20.0), ("4194304", 40.0)] {
            let mut hit = |name, at: &[(&str, &str)], value| rows.push(row(name, at, "hit maps", "%", value));
            hit("eke", &[("budget", budget), ("order", "per byte")], hits + 1.0);
            hit("page cache", &[("budget", budget)], hits / 2.0);
            for (order, less) in [("probability", 1.0), ("own", 5.0), ("per byte", 0.0)] {
                hit("preload", &[("budget", budget), ("order", order)], hits - less);
            }
        }
        for (from, predicted, observed) in [("0", 1.0, 2.0), ("0.1", 15.0, 14.0), ("0.5", 60.0, 70.0)] {
            let of = [("from", from), ("to", "1"), ("horizon", "60")];
            rows.push(row("eke", &of, "predicted", "%", predicted));
            rows.push(row("eke", &of, "observed", "%", observed));
            rows.push(row("eke", &of, "count", "", 1000.0 / predicted));
        }
        rows.push(row("eke", &[("budget", "4194304"), ("order", "probability")], "bound", "%", 0.0));
        rows
    }

    #[test]
    fn hits_are_curves_over_budgets_and_reliability_is_one_over_what_was_predicted() {
        let report = report(&FakeKernel::new().root(), "mine.csv", &replayed(), String::new());
        let groups = groups(&report);
        let sweeps: Vec<_> = groups.iter().map(|g| g.sweep.as_ref().map(|s| s.key.as_str())).collect();
        let bins = Some("predicted_percent");
        assert_eq!(sweeps, [Some("budget_mib"), Some("budget_mib"), bins, bins]);
        let names = |group: &Group<'_>| {
            let names: BTreeSet<_> = group.members.iter().map(|m| m.label.clone()).collect();
            names.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(names(&groups[0]), ["eke", "page cache", "preload", "preload, its own choice"]);
        assert_eq!(names(&groups[1]), ["page cache", "preload"]);
        assert_eq!(
            (names(&groups[2]), groups[2].members.len()),
            (vec!["as predicted".into(), "eke".into()], 6)
        );
        let counts: Vec<f64> =
            report.rows.iter().filter(|row| row.metric == COUNT).map(|row| row.median).collect();
        assert_eq!(counts, [1000.0, 1000.0 / 15.0, 1000.0 / 60.0]);
        assert!(page(&report).contains("class=\"curve"));
    }

    #[test]
    fn what_a_reader_must_know_is_said() {
        let notes = notes("mine.csv", &replayed()).join("\n");
        for part in [
            "mine.csv; 9 starts",
            "4.0 MiB was enough for everything that eke chose",
            "for 60 s by bins: 2.0 % came about of 1.0 % predicted (1000 predictions); 14.0 % came",
        ] {
            assert!(notes.contains(part), "{part}: {notes}");
        }
    }
}
