//! `eke bench show` and what the experiments refuse before they begin: the built program, and a real browser.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use common::{CHROMIUM, Public, bench, chromium, command, is_root};
use eke_testkit::real::skip;
use eke_testkit::tree;
use serde_json::Value;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/results/tests/fixtures");

fn fixture(name: &str) -> String {
    format!("{FIXTURES}/{name}.json")
}

fn report(name: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(fixture(name)).unwrap()).unwrap()
}

/// The page of a saved result.
fn page(place: &Path, name: &str) -> PathBuf {
    let page = place.join(format!("{name}.html"));
    let ran = bench(&["show", &fixture(name), "--html", page.to_str().unwrap(), "--force"]);
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    page
}

/// The values of an attribute, in order.
fn attributes<'a>(html: &'a str, name: &str) -> Vec<&'a str> {
    let opening = format!(" {name}=\"");
    html.split(opening.as_str()).skip(1).filter_map(|t| t.split('"').next()).collect()
}

/// The plots for a screen; those for a phone hold the same.
fn plots(dom: &str) -> Vec<&str> {
    let plots = dom.split("<svg class=\"wide\"").skip(1);
    plots.filter_map(|t| t.split("</svg>").next()).collect()
}

fn numbers(values: &[&str]) -> Vec<f64> {
    let mut numbers: Vec<f64> = values.iter().map(|v| v.parse().unwrap()).collect();
    numbers.sort_by(f64::total_cmp);
    numbers
}

/// The samples of rows that `wanted` holds of, ascending.
fn samples(report: &Value, wanted: impl Fn(&Value) -> bool) -> Vec<f64> {
    let rows = report["rows"].as_array().unwrap().iter().filter(|row| wanted(row));
    let samples = rows.flat_map(|row| row["samples"].as_array().unwrap());
    let mut samples: Vec<f64> = samples.map(|s| s.as_f64().unwrap()).collect();
    samples.sort_by(f64::total_cmp);
    samples
}

#[test]
fn a_saved_result_is_a_table_or_json() {
    let ran = bench(&["show", &fixture("switch")]);
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    assert!(
        ran.stdout.contains("1.4x more (loses, by 3 runs)")
            && ran.stdout.lines().all(|l| l.chars().count() <= 80)
    );
    let again = bench(&["show", &fixture("switch"), "--json"]).json();
    assert_eq!(again, report("switch"));
}

/// The results that are kept: `eke bench show` reads each, its command is one of today's, and it stands in the list.
#[test]
fn kept_results_are_shown_and_their_commands_still_work() {
    let results = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results");
    let list = std::fs::read_to_string(format!("{results}/README.md")).unwrap();
    let files = |dir: &str| std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let kept: Vec<PathBuf> =
        files(results).filter(|path| path.extension().is_some_and(|e| e == "json")).collect();
    for file in &kept {
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(list.contains(&format!("`{name}`")), "docs/results/README.md does not name {name}");
    }
    for file in kept.into_iter().chain(["paging", "capacity"].map(|name| fixture(name).into())) {
        let shown = bench(&["show", file.to_str().unwrap()]);
        assert_eq!(shown.status, Some(0), "{}: {}", file.display(), shown.shown());
        let report: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        let line = report["command"].as_str().unwrap();
        // Some need no root.
        let arguments = line.strip_prefix("sudo ").unwrap_or(line).strip_prefix("eke ").expect(line);
        let arguments =
            ["bench ", "prefetch "].iter().find_map(|verb| arguments.strip_prefix(verb)).expect(line);
        // What is understood is refused for a file that cannot be; nothing begins.
        let again = format!("\"$EKE_BENCH\" {arguments} --output /nonexistent/a.json");
        let mut shell = std::process::Command::new("sh");
        let ran: common::Ran = shell
            .args(["-c", &again])
            .env("EKE_BENCH", env!("CARGO_BIN_EXE_eke-bench"))
            .output()
            .unwrap()
            .into();
        assert!(ran.stderr.contains("cannot create /nonexistent/a.json"), "{line}: {}", ran.shown());
    }
}

#[test]
fn what_is_no_result_is_told_apart() {
    let place = tempfile::tempdir().unwrap();
    let whole = std::fs::read_to_string(fixture("switch")).unwrap();
    for (name, text, part) in [
        ("nothing", "", "cut short"),
        ("half", &whole[..whole.len() / 2], "cut short"),
        ("text", "not JSON", "not JSON"),
        ("other", "{\"name\": \"eke\"}", "not the result of an `eke bench` experiment: missing field"),
    ] {
        tree::put(place.path(), name, text);
        let file = place.path().join(name);
        let html = place.path().join("page.html");
        let ran = bench(&["show", file.to_str().unwrap(), "--html", html.to_str().unwrap()]);
        assert_eq!(ran.status, Some(1), "{name}: {}", ran.shown());
        assert!(ran.stderr.contains(part) && ran.stderr.contains(file.to_str().unwrap()), "{}", ran.stderr);
        assert!(!html.exists());
    }
    let gone = bench(&["show", "/nonexistent.json"]);
    assert!(gone.stderr.contains("cannot show /nonexistent.json: No such file"), "{}", gone.stderr);
    let directory = bench(&["show", place.path().to_str().unwrap()]);
    assert!(directory.stderr.contains("no file that"), "{}", directory.stderr);
}

#[test]
fn no_file_is_replaced_unasked_and_that_is_said_before_an_experiment() {
    let place = tempfile::tempdir().unwrap();
    tree::put(place.path(), "old.html", "old");
    let old = place.path().join("old.html");
    let old_text = old.to_str().unwrap();
    for args in [
        &["show", &fixture("switch"), "--html", old_text][..],
        &["capacity", "--quick", "--html", old_text],
        &["paging", "--quick", "--output", old_text],
    ] {
        let ran = bench(args);
        assert_eq!(ran.status, Some(2), "{}", ran.shown());
        assert!(ran.stderr.contains("exists already") && ran.stderr.contains("--force"), "{}", ran.stderr);
        assert_eq!(std::fs::read_to_string(&old).unwrap(), "old");
    }
    let nowhere = bench(&["switch", "--quick", "--output", "/proc/nonexistent/a.json"]);
    assert!(
        nowhere.stderr.contains("cannot create /proc/nonexistent/a.json: No such file"),
        "{}",
        nowhere.shown()
    );
}

#[test]
fn experiments_say_why_they_need_root() {
    if !is_root() {
        return skip("experiments_say_why_they_need_root", "only root can become nobody");
    }
    let public = Public::new();
    for name in ["paging", "switch", "capacity", "web"] {
        let ran = public.as_nobody(&[name, "--quick"]);
        assert_eq!(ran.status, Some(4), "{}", ran.shown());
        assert!(ran.stderr.contains("makes a box and a slow disk"), "{}", ran.stderr);
    }
}

#[test]
fn the_experiments_have_examples_and_check_their_options() {
    for name in ["paging", "switch", "capacity", "web", "reads", "store", "trace", "show"] {
        let help = bench(&[name, "--help"]);
        assert!(help.stdout.contains("Example:"), "{}", help.shown());
    }
    for (args, part) in [
        (&["paging", "--disk", "floppy"][..], "there are laptop, sd, nfs, scsi2008, nfs1g, sata"),
        (&["paging", "--repeats", "0"], "0 is not in 1..=100"),
        (&["switch", "--memory", "much"], "is not a size"),
        (&["capacity", "--in", "cloud"], "possible values: box, machine"),
        (&["store", "--block", "48K"], "a power of two from 4K to 256K"),
        (&["store", "--threads", "0"], "0 is not in 1..=1024"),
        (&["store", "--seconds", "0"], "give more than 0"),
    ] {
        let ran = bench(args);
        assert_eq!(ran.status, Some(2), "{}", ran.shown());
        assert!(ran.stderr.contains(part), "{}", ran.stderr);
    }
}

#[test]
fn a_reader_that_is_gone_is_no_failure() {
    let mut shown = command(&["show", &fixture("paging")]).stdout(Stdio::piped()).spawn().unwrap();
    drop(shown.stdout.take());
    assert_eq!(eke_testkit::program::end_of(&mut shown).code(), Some(0));
}

#[test]
fn the_pages_show_the_data_in_a_real_browser() {
    if !Path::new(CHROMIUM).exists() {
        return skip("the_pages_show_the_data_in_a_real_browser", "no /usr/bin/chromium on this machine");
    }
    let place = tempfile::tempdir().unwrap();
    let dom = |name: &str| {
        let ran = chromium(&page(place.path(), name), &["--dump-dom"]);
        assert!(!ran.stderr.contains("CONSOLE"), "{}", ran.stderr);
        assert_eq!(attributes(&ran.stdout, "id").iter().filter(|id| **id == "json").count(), 1);
        ran.stdout
    };
    paging(&dom("paging"));
    capacity(&dom("capacity"));
    variations(&dom("variations"));
}

/// Two plots of totals with a dot for each run, two of page times with a stroke for each page.
fn paging(dom: &str) {
    let (report, plots) = (report("paging"), plots(dom));
    assert_eq!(plots.len(), 4);
    for (plot, document) in plots.iter().zip(["A", "B"]) {
        let of = |row: &Value| row["metric"] == "total" && row["params"]["document"] == document;
        assert_eq!(numbers(&attributes(plot, "data-value")), samples(&report, of));
    }
    for (plot, document) in plots[2..].iter().zip(["A", "B"]) {
        let of = |row: &&Value| row["metric"] == "page" && row["params"]["document"] == document;
        let rows: Vec<&Value> = report["rows"].as_array().unwrap().iter().filter(of).collect();
        let strokes = plot.split("<path class=\"strokes").skip(1);
        let strokes = strokes.map(|t| t.split('>').next().unwrap().matches('M').count());
        assert_eq!(strokes.collect::<Vec<_>>(), vec![300; rows.len()]);
        let medians: Vec<&str> = attributes(plot, "data-median");
        let expected: Vec<String> = rows.iter().map(|r| r["median"].as_f64().unwrap().to_string()).collect();
        assert_eq!(medians, expected);
    }
}

/// A curve with each variant at its sizes; the download is the report.
fn capacity(dom: &str) {
    let (report, plots) = (report("capacity"), plots(dom));
    assert_eq!(plots.len(), 2);
    let held = |row: &Value| row["metric"] == "documents held";
    assert_eq!(numbers(&attributes(plots[0], "data-value")), samples(&report, held));
    assert_eq!(
        numbers(&attributes(plots[0], "data-at")),
        [0.0, 32.0, 62.0, 62.0, 64.0, 96.0, 124.0, 128.0, 160.0, 192.0, 248.0]
    );
    let address = attributes(dom, "href")[0].strip_prefix("data:application/json,").unwrap();
    let embedded: Value = serde_json::from_slice(&percent_decoded(address)).unwrap();
    assert_eq!(embedded, report);
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut parts = text.split('%');
    let first = parts.next().unwrap_or_default().as_bytes().to_vec();
    parts.fold(first, |mut out, part| {
        out.push(u8::from_str_radix(&part[..2], 16).unwrap());
        out.extend(part[2..].bytes());
        out
    })
}

/// Bars, then differences; the text of the plots has the names.
fn variations(dom: &str) {
    let plots = plots(dom);
    assert_eq!(plots.len(), 5);
    assert!(plots[1].contains("what each setting changes"));
    let dots = attributes(plots[1], "data-variant");
    assert_eq!(
        dots.iter().filter(|name| **name == "eke, page-cluster 3").count(),
        4,
        "3 runs and the median"
    );
    assert!(attributes(plots[1], "data-value").iter().any(|v| v.starts_with('-')));
}
