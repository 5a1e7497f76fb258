//! `eke bench replay`: the built program on generated, public and wrong traces.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use common::{Ran, bench, command};
use eke_testkit::tree::put;

#[test]
fn a_generated_scenario_reads_well() {
    let ran = bench(&["replay", "--scenario", "two-users", "--days", "3", "--budget", "64M"]);
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    for part in
        ["two users in turn, 3 days", "A budget of 64 MiB", "oracle", "page cache", "among 5", "waste"]
    {
        assert!(ran.stdout.contains(part), "no {part}: {}", ran.shown());
    }
}

#[test]
fn commands_of_a_public_trace_have_files_by_rule() {
    let dir = tempfile::tempdir().unwrap();
    let commands: String =
        (0..60).map(|i| format!("{}\n", ["ls", "cd", "vi", "make", "exit"][i % 5])).collect();
    put(dir.path(), "USER0", &commands);
    let ran = bench(&["replay", "--form", "purdue", dir.path().join("USER0").to_str().unwrap(), "--json"]);
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    let rows = ran.json()["rows"].as_array().unwrap().clone();
    let hits = rows.iter().filter(|row| row["variant"] == "oracle" && row["metric"] == "hit bytes");
    assert!(hits.map(|row| row["value"].as_f64().unwrap()).sum::<f64>() > 0.0, "{}", ran.shown());
}

#[test]
fn a_replay_is_a_page_with_curves_and_a_reliability_plot() {
    let dir = tempfile::tempdir().unwrap();
    let [page, json] = ["replay.html", "replay.json"].map(|name| dir.path().join(name).display().to_string());
    let scenario = ["replay", "--scenario", "one-user", "--days", "3"];
    let ran = bench(&[&scenario[..], &["--html", &page, "--output", &json]].concat());
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    assert!(ran.stdout.contains(&format!("Written: {page}")), "{}", ran.shown());
    let page_text = std::fs::read_to_string(&page).unwrap();
    assert!(page_text.contains("class=\"curve") && page_text.contains("as predicted"), "{page_text}");
    let shown = bench(&["show", &json]);
    assert!(
        shown.stdout.contains("came about") && shown.stdout.contains("--scenario one-user --days 3"),
        "{}",
        shown.shown()
    );
    let again = bench(&[&scenario[..], &["--html", &page]].concat());
    assert!(again.status == Some(2) && again.stderr.contains("--force"), "{}", again.shown());
}

#[test]
fn wrong_traces_and_arguments_say_what_would_be_right() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        put(dir.path(), name, text);
        dir.path().join(name).to_str().unwrap().to_owned()
    };
    let none = file("none.csv", "eke-prefetch-trace,1\n");
    let wrong = file("wrong.csv", "eke-prefetch-trace,1\nstart,now,0,/bin/a\n");
    let prints = |args: &[&str], status: i32, part: &str| {
        let ran = bench(args);
        assert!(ran.status == Some(status) && ran.stderr.contains(part), "{part}: {}", ran.shown());
    };
    prints(&["replay", &none], 1, "no program starts in");
    prints(&["replay", &wrong], 2, "line 2 of the trace");
    prints(&["replay", "/bin/sh"], 1, "cannot read");
    prints(&["replay", "/nonexistent.csv"], 1, "cannot read /nonexistent.csv: No such file");
    prints(&["replay"], 2, "required");
    prints(&["replay", &none, "--scenario", "one-user"], 2, "cannot be used with");
    prints(&["replay", &none, "--budget", "lots"], 2, "is not a size");
    let mut reader = command(&["replay", "-"]);
    let ran: Ran = reader.output().unwrap().into();
    assert!(ran.status == Some(2) && ran.stderr.contains("line 1 of the trace"), "{}", ran.shown());
}

#[test]
fn json_has_the_documented_shape() {
    let ran = bench(&["replay", "--scenario", "one-user", "--days", "2", "--json"]);
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    let schema = bench(&["schema"]).json()["replay"].clone();
    for key in schema["required"].as_array().unwrap() {
        assert!(ran.json().get(key.as_str().unwrap()).is_some(), "no {key}");
    }
}
