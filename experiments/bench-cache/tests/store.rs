//! `bench store`, `bench trace` and `bench tiers` from their options to the table and the page. No test judges a measured value.

#![allow(clippy::unwrap_used, clippy::panic, reason = "functions of tests, which fail by it")]

use std::path::Path;
use std::sync::atomic::AtomicBool;

use eke_bench_cache::store::{self, Store};
use eke_bench_cache::tiers::Tiers;
use eke_bench_cache::trace::{self, Trace};
use eke_bench_core::{Environment, Experiment, Failure, run};
use eke_linux::Root;
use eke_present::progress::Silent;
use eke_results::page::page;
use eke_results::report::{Provenance, Report, Row, saved};
use eke_testkit::tree;

/// A few MiB of text that compresses; all lines differ.
fn corpus() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in 0..3 {
        let lines: String =
            (0..25_000).map(|n| format!("line {n} of file {file}: {:x}\n", n * 7919 + file)).collect();
        tree::put(dir.path(), &format!("text/{file}"), &lines);
    }
    dir
}

fn ran<E: Experiment>(experiment: &E, command: &str, stop: bool) -> Result<Report, Failure<E::Error>> {
    let (root, shutdown) = (Root::host(), AtomicBool::new(stop));
    let environment = Environment {
        root: &root,
        program: "/nonexistent/eke-bench".into(),
        cache: "/nonexistent".into(),
        command: command.to_owned(),
        provenance: Provenance::default(),
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

/// The report has a table of 80 columns, a page, and JSON that can be read again.
fn is_shown(report: &Report) {
    let table = report.to_string();
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(page(report).contains("<svg"));
    let text = serde_json::to_string(report).unwrap();
    let again = saved::parse(&text).unwrap();
    assert_eq!((again.rows.len(), &again.metrics), (report.rows.len(), &report.metrics));
}

#[test]
fn the_store_has_every_metric_once_and_is_shown() {
    let dir = corpus();
    let report = store_with(quick(dir.path()), false).unwrap();
    for metric in &report.metrics {
        let all: Vec<&Row> = rows(&report, &metric.name).collect();
        assert!(all.iter().any(|row| row.variant == "eke"), "{}: {all:?}", metric.name);
        // Its blocks may all have gone into holes of the heap: then its memory did not grow and has no ratio.
        let may_lack = metric.name == "mixed, bytes per byte of memory";
        assert!(may_lack || all.iter().any(|row| row.variant == "quick_cache"), "{}: {all:?}", metric.name);
        assert!(all.iter().all(|row| row.samples.len() == 1), "{}: {all:?}", metric.name);
    }
    let threads = |row: &Row| row.params["threads"].as_u64().unwrap();
    assert_eq!(rows(&report, "misses").map(threads).collect::<Vec<_>>(), [1, 1, 2, 2]);
    let sizes = rows(&report, "bytes per byte of memory by block size").filter(|row| row.variant == "eke");
    assert_eq!(
        sizes.map(|row| row.params["block_kib"].as_u64().unwrap()).collect::<Vec<_>>(),
        [16, 32, 64, 128]
    );
    for row in rows(&report, "mixed, hit ratio") {
        assert!((0.0..=100.0).contains(&row.median), "{row:?}");
    }
    assert!(report.notes.iter().any(|note| note.contains("of 3 files")), "{:?}", report.notes);
    is_shown(&report);
}

#[test]
fn wrong_options_and_corpora_are_errors() {
    let dir = corpus();
    let gone = dir.path().join("gone");
    let error = |options: store::Options| store_with(options, false).unwrap_err().to_string();
    assert!(error(quick(&gone)).contains("gone: No such file"));
    assert!(error(store::Options { block: 3 << 14, ..quick(dir.path()) }).contains("power of two"));
    assert!(error(store::Options { seconds: f64::NAN, ..quick(dir.path()) }).contains("seconds"));
    tree::put(&gone, "a", "little");
    assert!(error(quick(&gone)).contains("at least"));
    assert!(matches!(store_with(quick(dir.path()), true), Err(Failure::Interrupted)));
}

#[test]
fn every_trace_has_rates_for_every_policy() {
    let dir = tempfile::tempdir().unwrap();
    let keys = |n: u64| (0..n).map(|n| format!("{} {}\n", n * n % 97, 1000 + n * n % 97)).collect::<String>();
    let offsets: String = (0..400u64).map(|n| format!("{},4096\n", (n * n % 89) << 16)).collect();
    tree::put(dir.path(), "keys", &keys(500));
    tree::put(dir.path(), "disk.csv", &format!("offset,size\n{offsets}"));
    let report = trace_of(&[&dir.path().join("keys"), &dir.path().join("disk.csv")]).unwrap();
    for metric in &report.metrics {
        let points = if metric.name == "disk reads" { 5 } else { 3 };
        assert_eq!(rows(&report, &metric.name).count(), 2 * 5 * points, "{}", metric.name);
        assert!(rows(&report, &metric.name).all(|r| (0.0..=100.0).contains(&r.median)), "{}", metric.name);
    }
    // Without a store the policy does not matter.
    let alone: Vec<f64> = rows(&report, "disk reads")
        .filter(|row| row.params["store_percent"] == 0 && row.params["trace"] == "keys")
        .map(|row| row.median)
        .collect();
    assert!(alone.len() == 5 && alone.iter().all(|rate| *rate == alone[0]), "{alone:?}");
    is_shown(&report);
}

#[test]
fn an_invalid_trace_is_named() {
    let dir = tempfile::tempdir().unwrap();
    tree::put(dir.path(), "a/bad", "7 seven\n");
    tree::put(dir.path(), "a/good", "1 1\n");
    tree::put(dir.path(), "b/good", "1 1\n");
    let at = |path: &str| dir.path().join(path);
    let error = |files: &[&Path]| trace_of(files).unwrap_err().to_string();
    assert!(error(&[&at("a/bad")]).contains("a/bad: line 1"), "{}", error(&[&at("a/bad")]));
    assert!(error(&[&at("gone")]).contains("gone: No such file"), "{}", error(&[&at("gone")]));
    assert!(error(&[dir.path()]).contains("cannot replay"), "{}", error(&[dir.path()]));
    assert!(error(&[&at("a/good"), &at("b/good")]).contains("\"good\""));
}

#[test]
fn a_quick_grid_has_every_cell_and_way_and_its_worst_cells() {
    let tiers = |seed, stop| ran(&Tiers { seed, quick: true }, "eke bench tiers", stop);
    let report = tiers(1, false).unwrap();
    let lines: Vec<usize> = report.tables.iter().map(|table| table.lines.len()).collect();
    assert_eq!(lines, [10, 8, 32, 32, 32, 32, 32]);
    for table in &report.tables {
        let width = |line: &String| line.split('\t').count();
        assert!(table.lines.iter().all(|line| width(line) == table.columns.len()), "{}", table.title);
    }
    for metric in &report.metrics {
        assert!(rows(&report, &metric.name).count() >= 16, "{}", metric.name);
        assert!(rows(&report, &metric.name).all(|row| row.median.is_finite()), "{}", metric.name);
    }
    assert_eq!(report.tables, tiers(1, false).unwrap().tables, "the same seed");
    assert_ne!(report.tables, tiers(2, false).unwrap().tables);
    assert!(matches!(tiers(1, true), Err(Failure::Interrupted)));
    assert!(page(&report).contains("<svg"));
}
