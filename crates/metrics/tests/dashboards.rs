//! The Grafana dashboards in `docs/grafana` ask for metrics and labels that eke exports, and have the form that Grafana imports.

#![allow(clippy::unwrap_used, reason = "helpers of tests, which fail by it")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use eke_metrics::{Kind, table};
use serde_json::Value;

const NAMES: [&str; 2] = ["lab", "machine"];
/// Labels of the scrape: Prometheus', and those of `eke ltsp targets`.
const OF_THE_SCRAPE: [&str; 4] = ["instance", "job", "client", "mac"];

fn dashboard(name: &str) -> Value {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/grafana");
    serde_json::from_str(&std::fs::read_to_string(docs.join(format!("{name}.json"))).unwrap()).unwrap()
}

fn panels(dashboard: &Value) -> &[Value] {
    dashboard["panels"].as_array().unwrap()
}

/// All queries: of panels and of variables.
fn queries(dashboard: &Value) -> Vec<String> {
    let targets = panels(dashboard).iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let variables = dashboard["templating"]["list"].as_array().unwrap().iter();
    let of_variables = variables.filter_map(|v| v["query"]["query"].as_str());
    targets.map(|t| t["expr"].as_str().unwrap()).chain(of_variables).map(str::to_owned).collect()
}

/// The names of samples, each with its labels.
fn exported() -> BTreeMap<String, Vec<&'static str>> {
    let of = |metric: &eke_metrics::Metric, part: &str| {
        let mut labels = metric.labels.to_vec();
        labels.extend((part == "_bucket").then_some("le"));
        (format!("{}{}{part}", metric.name, metric.kind.suffix()), labels)
    };
    let parts = |kind| if kind == Kind::Histogram { &["_bucket", "_sum", "_count"][..] } else { &[""] };
    table::all().flat_map(|metric| parts(metric.kind).iter().map(move |part| of(metric, part))).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The labels in the braces after a metric, and those of `by (...)`.
fn labels(query: &str) -> BTreeSet<&str> {
    let matchers = query.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let named = matchers.flat_map(|inside| inside.split(',')).filter_map(|matcher| words(matcher).next());
    let by = query.split("by (").skip(1).filter_map(|rest| rest.split(')').next()).flat_map(words);
    named.chain(by).collect()
}

#[test]
fn every_metric_and_label_of_a_query_is_exported() {
    let exported = exported();
    for name in NAMES {
        let queries = queries(&dashboard(name));
        assert!(queries.len() > 8, "{name}");
        for query in queries {
            let metrics: Vec<&str> = words(&query).filter(|word| word.starts_with("eke_")).collect();
            assert!(!metrics.is_empty(), "{name}: {query}");
            for metric in &metrics {
                assert!(exported.contains_key(*metric), "{name}: {metric} of {query} is not exported");
            }
            let known: Vec<&str> = metrics.iter().flat_map(|metric| exported[*metric].clone()).collect();
            for label in labels(&query) {
                assert!(
                    known.contains(&label) || OF_THE_SCRAPE.contains(&label),
                    "{name}: {label} of {query}"
                );
            }
        }
    }
}

#[test]
fn legends_name_labels_that_their_query_keeps() {
    let exported = exported();
    for name in NAMES {
        for panel in panels(&dashboard(name)) {
            for target in panel["targets"].as_array().unwrap() {
                let (query, legend) =
                    (target["expr"].as_str().unwrap(), target["legendFormat"].as_str().unwrap());
                let metric = words(query).find(|word| word.starts_with("eke_")).unwrap();
                for label in legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next()) {
                    let is_there = if query.contains(" by (") { labels(query).contains(label) } else { true };
                    let is_known = exported[metric].contains(&label) || OF_THE_SCRAPE.contains(&label);
                    assert!(is_there && is_known, "{name}: {label} of {query}");
                }
            }
        }
    }
}

/// What Grafana needs to import a dashboard, and panels that do not overlap.
#[test]
fn the_form_is_that_of_a_dashboard() {
    for name in NAMES {
        let dashboard = dashboard(name);
        assert_eq!(dashboard["uid"], format!("eke-{name}"));
        assert!(dashboard["schemaVersion"].as_u64() >= Some(36) && dashboard["title"].is_string());
        let mut taken = BTreeSet::new();
        let mut ids = BTreeSet::new();
        for panel in panels(&dashboard) {
            assert!(ids.insert(panel["id"].as_u64().unwrap()), "{name}: {}", panel["id"]);
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{name}: {}", panel["title"]);
            assert!(["timeseries", "stat", "table"].contains(&panel["type"].as_str().unwrap()));
            assert!(panel["description"].as_str().unwrap().ends_with('.'), "{}", panel["title"]);
            let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
            assert!(w > 0 && h > 0 && x + w <= 24, "{name}: {}", panel["title"]);
            for cell in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
                assert!(taken.insert(cell), "{name}: {} overlaps", panel["title"]);
            }
        }
    }
}
