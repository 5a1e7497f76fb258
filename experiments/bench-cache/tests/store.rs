//! `bench store` and `bench trace` from their options to the table and the page; no figure is judged by its size.

#![allow(clippy::unwrap_used, clippy::panic, reason = "functions of tests, which fail by it")]

use std::path::Path;
use std::sync::atomic::AtomicBool;

use eke_bench_cache::store::{self, Store};
use eke_bench_cache::trace::{self, Trace};
use eke_bench_core::{Environment, Experiment, Failure, run};
use eke_linux::Root;
use eke_present::progress::Silent;
use eke_results::page::page;
use eke_results::report::{Report, Row, saved};
use eke_testkit::tree;

/// A few MiB of text that compresses, no two lines alike.
fn corpus() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for file in 0..3 {
        let lines: String =
            (0..25_000).map(|n| format!("line {n} of file {file}: {:x}\n", n * 7919 + file)).collect();
        tree::put(place.path(), &format!("text/{file}"), &lines);
    }
    place
}

fn ran<E: Experiment>(experiment: &E, command: &str, stop: bool) -> Result<Report, Failure<E::Error>> {
    let (root, shutdown) = (Root::host(), AtomicBool::new(stop));
    let environment = Environment {
        root: &root,
        program: "/nonexistent/eke-bench".into(),
        cache: "/nonexistent".into(),
        command: command.to_owned(),
        progress: &Silent,
        shutdown: &shutdown,
    };
    run(experiment, &environment)
}

fn store_with(options: store::Options, stop: bool) -> Result<Report, Failure<store::Error>> {
    ran(&Store::new(options), "eke bench store", stop)
}

fn quick(corpus: &Path) -> store::Options {
    let corpus = Some(corpus.to_owned());
    store::Options { corpus, threads: 2, seconds: 0.004, block: 64 << 10, quick: true }
}

fn trace_of(files: &[&Path]) -> Result<Report, Failure<trace::Error>> {
    let files = files.iter().map(|file| file.to_path_buf()).collect();
    ran(&Trace { files, quick: true }, "eke bench trace", false)
}

fn rows<'r>(report: &'r Report, metric: &'r str) -> impl Iterator<Item = &'r Row> {
    report.rows.iter().filter(move |row| row.metric == metric)
}

/// A table of 80 columns, a page, and JSON that is read again.
fn is_shown(report: &Report) {
    let table = report.to_string();
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(page(report).contains("<svg"));
    let text = serde_json::to_string(report).unwrap();
    let again = saved::parse(&text).unwrap();
    assert_eq!((again.rows.len(), &again.metrics), (report.rows.len(), &report.metrics));
}

#[test]
fn the_store_has_every_figure_once_and_is_shown() {
    let place = corpus();
    let report = store_with(quick(place.path()), false).unwrap();
    for metric in &report.metrics {
        let all: Vec<&Row> = rows(&report, &metric.name).collect();
        assert!(all.iter().any(|row| row.variant == "eke"), "{}: {all:?}", metric.name);
        assert!(all.iter().any(|row| row.variant == "quick_cache"), "{}: {all:?}", metric.name);
        assert!(all.iter().all(|row| row.samples.len() == 1), "{}: {all:?}", metric.name);
    }
    let threads = |row: &Row| row.params["threads"].as_u64().unwrap();
    assert_eq!(rows(&report, "misses").map(threads).collect::<Vec<_>>(), [1, 1, 2, 2]);
    let sizes = rows(&report, "held by block size").filter(|row| row.variant == "eke");
    assert_eq!(
        sizes.map(|row| row.params["block_kib"].as_u64().unwrap()).collect::<Vec<_>>(),
        [16, 32, 64, 128]
    );
    for row in rows(&report, "mixed, hit ratio") {
        assert!(row.median > 0.0 && row.median <= 100.0, "{row:?}");
    }
    assert!(report.notes.iter().any(|note| note.contains("of 3 files")), "{:?}", report.notes);
    is_shown(&report);
}

#[test]
fn what_the_store_cannot_do_is_said() {
    let place = corpus();
    let gone = place.path().join("gone");
    let said = |options: store::Options| store_with(options, false).unwrap_err().to_string();
    assert!(said(quick(&gone)).contains("gone: No such file"));
    assert!(said(store::Options { block: 3 << 14, ..quick(place.path()) }).contains("power of two"));
    assert!(said(store::Options { seconds: f64::NAN, ..quick(place.path()) }).contains("seconds"));
    tree::put(&gone, "a", "little");
    assert!(said(quick(&gone)).contains("at least"));
    assert!(matches!(store_with(quick(place.path()), true), Err(Failure::Interrupted)));
}

#[test]
fn traces_have_rates_for_everybody_and_nothing_gets_lost() {
    let place = tempfile::tempdir().unwrap();
    let keys = |n: u64| (0..n).map(|n| format!("{} {}\n", n * n % 97, 1000 + n * n % 97)).collect::<String>();
    let offsets: String = (0..400u64).map(|n| format!("{},4096\n", (n * n % 89) << 16)).collect();
    tree::put(place.path(), "keys", &keys(500));
    tree::put(place.path(), "disk.csv", &format!("offset,size\n{offsets}"));
    let report = trace_of(&[&place.path().join("keys"), &place.path().join("disk.csv")]).unwrap();
    for metric in &report.metrics {
        let points = if metric.name == "reads of the disk" { 5 } else { 3 };
        assert_eq!(rows(&report, &metric.name).count(), 2 * 5 * points, "{}", metric.name);
        assert!(rows(&report, &metric.name).all(|r| (0.0..=100.0).contains(&r.median)), "{}", metric.name);
    }
    // Without a store nobody's policy matters.
    let alone: Vec<f64> = rows(&report, "reads of the disk")
        .filter(|row| row.params["store_percent"] == 0 && row.params["trace"] == "keys")
        .map(|row| row.median)
        .collect();
    assert!(alone.len() == 5 && alone.iter().all(|rate| *rate == alone[0]), "{alone:?}");
    is_shown(&report);
}

#[test]
fn a_trace_that_is_none_is_named() {
    let place = tempfile::tempdir().unwrap();
    tree::put(place.path(), "a/bad", "7 seven\n");
    tree::put(place.path(), "a/good", "1 1\n");
    tree::put(place.path(), "b/good", "1 1\n");
    let at = |path: &str| place.path().join(path);
    let said = |files: &[&Path]| trace_of(files).unwrap_err().to_string();
    assert!(said(&[&at("a/bad")]).contains("a/bad: line 1"), "{}", said(&[&at("a/bad")]));
    assert!(said(&[&at("gone")]).contains("gone: No such file"), "{}", said(&[&at("gone")]));
    assert!(said(&[place.path()]).contains("cannot replay"), "{}", said(&[place.path()]));
    assert!(said(&[&at("a/good"), &at("b/good")]).contains("\"good\""));
}
