//! A setting at several values as a report, for its page: `eke io compare` and `eke io sweep`. Pure but for the machine's name.

use std::collections::BTreeMap;

use eke_io::Class;
use eke_io::compare::outcome::{Figure, Outcome, Side, classes};
use eke_kernel::Root;
use serde_json::Value;

use crate::experiment::{less, more};
use crate::report::times::Times;
use crate::report::{Machine, Metric, Report, Role, Variant};
use crate::rows::{Rows, params};

/// The report: of three numbers or more, figures of each class over the setting, else the values beside each other.
pub fn report(root: &Root, compared: &Outcome, experiment: &str, command: String) -> Report {
    let numbers: Option<Vec<f64>> = compared.sides.iter().map(|side| side.value.parse().ok()).collect();
    let over = numbers.filter(|numbers| numbers.len() > 2);
    let mut rows = Rows::default();
    for class in classes(&compared.sides) {
        for (i, side) in compared.sides.iter().enumerate() {
            let (variant, at) = match &over {
                Some(numbers) => (class.to_string(), params([(&compared.knob, numbers[i].into())])),
                None => (side.value.clone(), params([("class", class.to_string().into())])),
            };
            Figure::ALL.iter().for_each(|figure| add(&mut rows, &variant, &at, *figure, side, class));
        }
    }
    Report {
        experiment: experiment.to_owned(),
        command,
        machine: Machine::of(root),
        variants: variants(compared, over.is_some()),
        metrics: metrics(),
        rows: rows.done(),
        times: times(compared),
        notes: notes(compared),
    }
}

fn add(
    rows: &mut Rows,
    variant: &str,
    at: &BTreeMap<String, Value>,
    figure: Figure,
    side: &Side,
    class: Class,
) {
    let (unit, of) = match figure {
        Figure::PerSecond => ("1/s", 1.0),
        Figure::BytesPerSecond => ("MB/s", 1e6),
        _ => ("ms", 1e6),
    };
    rows.add(
        variant,
        at,
        figure.name(),
        unit,
        side.samples(class, figure).into_iter().flatten().map(|v| v / of),
    );
}

fn variants(compared: &Outcome, by_class: bool) -> Vec<Variant> {
    let variant = |(i, name): (usize, String)| {
        let role = if i == 0 { Role::Baseline } else { Role::Peer };
        Variant { name, role, set_up: String::new() }
    };
    let values = compared.sides.iter().map(|side| side.value.clone());
    let classes = classes(&compared.sides).into_iter().map(|class| class.to_string());
    // the values, too: their histograms are beside each other
    let names: Vec<String> = if by_class { classes.chain(values).collect() } else { values.collect() };
    names.into_iter().enumerate().map(variant).collect()
}

fn metrics() -> Vec<Metric> {
    let about = |figure: Figure| match figure {
        Figure::Mean => "The average latency of a run.",
        Figure::P50 => "Half of a run's requests were answered within it.",
        Figure::P99 => "99 of 100 were.",
        Figure::P999 => "999 of 1000 were.",
        Figure::PerSecond => "Requests a second.",
        Figure::BytesPerSecond => "What was read or written.",
    };
    let metric = |figure: Figure| {
        if figure.is_time() { less(figure.name(), about(figure)) } else { more(figure.name(), about(figure)) }
    };
    Figure::ALL.map(metric).to_vec()
}

fn times(compared: &Outcome) -> Vec<Times> {
    let mut all = Vec::new();
    for class in classes(&compared.sides) {
        for side in &compared.sides {
            let of = side.all.classes.iter().find(|figures| figures.class == class);
            let none = BTreeMap::new();
            all.extend(of.and_then(|f| Times::of(&side.value, &none, class.to_string(), &f.latency.whole)));
        }
    }
    all
}

fn notes(compared: &Outcome) -> Vec<String> {
    let values: Vec<&str> = compared.sides.iter().map(|side| side.value.as_str()).collect();
    let runs = compared.sides.first().map_or(0, |side| side.runs.len());
    let about = format!(
        "{} at {}: {runs} runs each, interleaved, with latencies of {}, by {}. The setting is as it was before.",
        compared.knob,
        values.join(", "),
        compared.device,
        compared.source
    );
    std::iter::once(about).chain(compared.missing.iter().map(|what| format!("Missing: {what}."))).collect()
}

#[cfg(test)]
mod tests {
    use eke_io::figures::{Device, Figures, Latency};
    use eke_io::{Mode, Operation};
    use eke_testkit::fake_kernel::FakeKernel;

    use super::*;
    use crate::page::page;

    fn outcome(values: &[&str]) -> Outcome {
        let side = |(i, value): (usize, &&str)| {
            let mut side = Side::new(value);
            let mut latency = Latency::default();
            (0..100).for_each(|_| latency.whole.record(1_500_000 << i));
            let class = Class::new(Operation::Read, Mode::Sync);
            let device = Device { classes: vec![Figures { class, latency }], ..Device::default() };
            side.add(2.0, device);
            side
        };
        let sides = values.iter().enumerate().map(side).collect();
        Outcome {
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
        assert!(p99.iter().all(|r| r.variant == p99[0].variant && r.params.len() == 1));
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
        assert!(!page.contains("class=\"curve") && page.contains("How long: "), "{page}");
    }
}
