//! The report of `eke io compare` and `eke io sweep`, for the page. Pure but for the machine's name.

use std::collections::BTreeMap;

use eke_io::Class;
use eke_io::compare::result::{ComparisonResult, MetricDifference, RunMetric, Side, classes};
use eke_linux::Root;
use serde_json::Value;

use eke_results::report::times::Times;
use eke_results::report::words::shown;
use eke_results::report::{Machine, Metric, Report, Role, Variant};
use eke_results::report::{less, more};
use eke_results::rows::{Rows, params};

/// The report, class by class: latencies over the setting if it has three or more numeric values, else the values side by side.
pub fn report(root: &Root, compared: &ComparisonResult, experiment: &str, command: String) -> Report {
    let numbers: Option<Vec<f64>> = compared.sides.iter().map(|side| side.value.parse().ok()).collect();
    let over = numbers.filter(|numbers| numbers.len() > 2);
    let mut rows = Rows::default();
    for class in classes(&compared.sides) {
        for (i, side) in compared.sides.iter().enumerate() {
            let mut at = params([("class", class.to_string().into())]);
            let variant = match &over {
                Some(numbers) => {
                    at.insert(compared.knob.clone(), numbers[i].into());
                    compared.device.clone()
                }
                None => side.value.clone(),
            };
            RunMetric::ALL.iter().for_each(|figure| add(&mut rows, &variant, &at, *figure, side, class));
        }
    }
    Report {
        experiment: experiment.to_owned(),
        command,
        machine: Machine::of(root),
        variants: variants(compared),
        metrics: metrics(),
        rows: rows.done(),
        times: times(compared),
        notes: notes(compared),
        ..Report::default()
    }
}

fn add(
    rows: &mut Rows,
    variant: &str,
    at: &BTreeMap<String, Value>,
    figure: RunMetric,
    side: &Side,
    class: Class,
) {
    let (unit, of) = unit(figure);
    rows.add(
        variant,
        at,
        figure.name(),
        unit,
        side.samples(class, figure).into_iter().flatten().map(|v| v / of),
    );
}

/// The values, also as variants of the histograms.
fn variants(compared: &ComparisonResult) -> Vec<Variant> {
    let role = |i| if i == 0 { Role::Baseline } else { Role::Peer };
    let sides = compared.sides.iter().enumerate();
    sides
        .map(|(i, side)| Variant { name: side.value.clone(), role: role(i), set_up: String::new() })
        .collect()
}

fn metrics() -> Vec<Metric> {
    let about = |figure: RunMetric| match figure {
        RunMetric::Mean => "The average latency of a run.",
        RunMetric::P50 => "Half of a run's requests were answered within it.",
        RunMetric::P99 => "99 of 100 were.",
        RunMetric::P999 => "999 of 1000 were.",
        RunMetric::PerSecond => "Requests a second.",
        RunMetric::BytesPerSecond => "What was read or written.",
    };
    let metric = |figure: RunMetric| {
        if figure.is_time() { less(figure.name(), about(figure)) } else { more(figure.name(), about(figure)) }
    };
    RunMetric::ALL.map(metric).to_vec()
}

fn times(compared: &ComparisonResult) -> Vec<Times> {
    let mut all = Vec::new();
    for class in classes(&compared.sides) {
        for side in &compared.sides {
            let of = side.all.classes.iter().find(|of| of.class == class);
            let none = BTreeMap::new();
            all.extend(of.and_then(|f| Times::of(&side.value, &none, class.to_string(), &f.latency.whole)));
        }
    }
    all
}

fn notes(compared: &ComparisonResult) -> Vec<String> {
    let values: Vec<&str> = compared.sides.iter().map(|side| side.value.as_str()).collect();
    let runs = compared.sides.first().map_or(0, |side| side.runs.len());
    let about = format!(
        "{} at {}: {runs} runs each, interleaved, with latencies of {}, by {}. The setting is as it was before.",
        compared.knob,
        values.join(", "),
        compared.device,
        compared.source
    );
    let mut notes = vec![about];
    notes.extend(compared.differences.iter().filter_map(|differs| difference(compared, differs)));
    notes.extend(
        (runs < 5).then(|| "With so few runs the intervals are too narrow: read them as a hint.".to_owned()),
    );
    notes.extend(compared.missing.iter().map(|what| format!("Missing: {what}.")));
    notes
}

/// A note about a difference that is more than chance, for the most important measures.
fn difference(compared: &ComparisonResult, differs: &MetricDifference) -> Option<String> {
    let MetricDifference { value, class, metric, a, b, difference } = differs;
    let (unit, of) = unit(*metric);
    let matters = matches!(metric, RunMetric::Mean | RunMetric::P99 | RunMetric::BytesPerSecond);
    (matters && difference.is_clear() && difference.low.is_finite()).then(|| {
        format!(
            "{class}, {}: {} {unit} at {value} instead of {} at {}; the difference is between {} and {} (95 %).",
            metric.name(),
            shown(b / of),
            shown(a / of),
            compared.sides.first().map_or("", |side| &side.value),
            shown(difference.low / of),
            shown(difference.high / of)
        )
    })
}

/// The unit of a measure on the page, and its size in the measure's own unit.
fn unit(figure: RunMetric) -> (&'static str, f64) {
    match figure {
        RunMetric::PerSecond => ("1/s", 1.0),
        RunMetric::BytesPerSecond => ("MB/s", 1e6),
        _ => ("ms", 1e6),
    }
}

#[cfg(test)]
mod tests {
    use eke_io::counters::{ClassLatency, Device, Latency};
    use eke_io::{Mode, Operation};
    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;
    use eke_results::page::page;

    fn outcome(values: &[&str]) -> ComparisonResult {
        let side = |(i, value): (usize, &&str)| {
            let mut side = Side::new(value);
            let mut latency = Latency::default();
            (0..100).for_each(|_| latency.whole.record(1_500_000 << i));
            let class = Class::new(Operation::Read, Mode::Sync);
            let device = Device { classes: vec![ClassLatency { class, latency }], ..Device::default() };
            side.add(2.0, device);
            side
        };
        let sides = values.iter().enumerate().map(side).collect();
        ComparisonResult {
            knob: "queue.nr_requests of sda".into(),
            device: "sda".into(),
            source: "bpf".into(),
            missing: Vec::new(),
            sides,
            differences: Vec::new(),
        }
    }

    fn made(values: &[&str]) -> Report {
        report(&FakeKernel::new().root(), &outcome(values), "io sweep", String::new())
    }

    #[test]
    fn three_numbers_are_a_curve_and_every_value_has_its_histogram() {
        let report = made(&["64", "16", "4"]);
        let p99: Vec<_> = report.rows.iter().filter(|r| r.metric == "p99").collect();
        assert_eq!(p99.len(), 3);
        assert!(p99.iter().all(|r| r.variant == "sda" && r.params.len() == 2));
        assert!(p99[0].median > 1.0 && p99[0].median < 2.2, "{}", p99[0].median);
        assert_eq!(report.times.iter().map(|t| t.variant.as_str()).collect::<Vec<_>>(), ["64", "16", "4"]);
        let page = page(&report);
        assert!(page.contains("class=\"curve") && page.matches("data-from=").count() == 2 * 3, "{page}");
    }

    #[test]
    fn words_are_beside_each_other() {
        let report = made(&["none", "mq-deadline"]);
        assert_eq!(
            report.variants.iter().map(|v| v.name.as_str()).collect::<Vec<_>>(),
            ["none", "mq-deadline"]
        );
        let page = page(&report);
        assert!(!page.contains("class=\"curve") && page.contains("Latency: "), "{page}");
        assert!(page.contains("<h1>eke io sweep</h1>") && !page.contains("What the colours mean"), "{page}");
    }

    #[test]
    fn what_is_more_than_chance_gets_a_note() {
        let mut compared = outcome(&["none", "bfq"]);
        for i in 1..5 {
            for side in &mut compared.sides {
                let mut run = side.runs[0].clone();
                run.seconds += f64::from(i) / 100.0;
                side.runs.push(run);
            }
        }
        compared.differences = eke_io::compare::result::differences(&compared.sides, 1);
        let notes = notes(&compared).join("\n");
        assert!(notes.contains("read, sync, average: 3 ms at bfq instead of 1.50 at none"), "{notes}");
    }
}
