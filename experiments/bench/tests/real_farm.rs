//! `eke bench farm` for real: a few megabytes, a few seconds.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::process::{Command, Stdio};

use common::clean::{Clean, disks_and_groups};
use common::{Ran, build_farm, command, until_begun};
use eke_testkit::real::{lacking, no_program, skip};
use eke_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Content of these tests.
const CACHE: &str = env!("CARGO_TARGET_TMPDIR");

fn lacks() -> Option<String> {
    let needs = ["/dev/fuse", "/sys/fs/cgroup", "/dev/loop-control", "/proc/self/ns/net"];
    let programs = ["mke2fs", "nginx", "ip", "tc", "nsenter", "nbdkit", "nbdfuse"];
    lacking(&needs).or_else(|| no_program(&programs)).or_else(|| {
        let engine = no_program(&["redis-server"]);
        engine.filter(|_| no_program(&["valkey-server"]).is_some())
    })
}

/// Mounts, disks, directories, groups, processes in boxes, and namespaces of farms.
fn traces() -> String {
    let names = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let names = names.map(|e| e.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|n| n.starts_with("ekefarm")).collect();
    names.sort();
    let kept = std::fs::read_dir(format!("{CACHE}/eke-bench/farm")).into_iter().flatten().flatten();
    let kept = kept.filter(|e| e.file_name().to_string_lossy().starts_with("stage")).count();
    format!("{}\n{}\n{}\n{kept}", disks_and_groups(), names.join("\n"), members().len())
}

/// Processes in boxes of this experiment. One that is dead, and that the machine's first process has not yet taken note of, has no command
/// line.
fn members() -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|e| e.file_name().to_str()?.parse().ok());
    let is_in_a_box = |pid: &u32| {
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        groups.contains("/eke/farm") && !line.is_empty()
    };
    pids.filter(is_in_a_box).collect()
}

/// `eke bench farm` of 12 MB on a quick disk, for 2 s each.
fn farm(args: &[&str]) -> Command {
    let mut command = command(&["farm", "--memory", "96M", "--content", "12M", "--connections", "2"]);
    command.args(["--disk", "sd", "--warm-up", "2", "--seconds", "2", "--phase", "1"]);
    command.args(args).env("XDG_CACHE_HOME", CACHE);
    command
}

fn ran(mut command: Command) -> Ran {
    eke_testkit::program::ran(&mut command)
}

/// The median of a metric of a variant.
fn median(report: &Value, metric: &str, variant: &str) -> f64 {
    let rows = report["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["metric"] == metric && row["variant"] == variant);
    row.unwrap_or_else(|| panic!("no {metric} of {variant}: {report}"))["median"].as_f64().unwrap()
}

#[test]
fn a_farm_is_measured_and_leaves_nothing() {
    if let Some(why) = lacks() {
        return skip("a_farm_is_measured", &why);
    }
    build_farm();
    let clean = Clean::start(traces);
    let out = tempfile::tempdir().unwrap();
    let html = out.path().join("farm.html");
    let words = ["--variants", "alone,eke,shared,proxy,faults", "--json", "--html", html.to_str().unwrap()];
    let ran = ran(farm(&words));
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    clean.is_as_before();
    let report = ran.json();
    let notes = report["notes"].to_string();
    assert!(!notes.contains("failed") && !notes.contains("killed"), "{notes}");
    for variant in ["page cache", "eke", "eke, shared", "nginx proxy_cache"] {
        assert!(median(&report, "throughput", variant) > 0.1, "{report}");
        assert!(median(&report, "response time, 99th percentile", variant) > 0.0);
        assert!(median(&report, "bytes on the wire", variant) > 0.1);
        assert!(median(&report, "origin reads beside one node's least", variant) > 0.1);
    }
    for variant in ["eke", "eke, shared"] {
        assert!((0.0..=100.0).contains(&median(&report, "found in the node's store", variant)), "{report}");
    }
    let rows = report["rows"].as_array().unwrap();
    assert!(!rows.iter().any(|r| r["metric"] == "found in the shared tier" && r["variant"] == "eke"));
    assert_eq!(median(&report, "wrong replies", "eke, shared, with faults"), 0.0);
    let seconds = report["tables"][0]["lines"].to_string();
    for fault in ["engine member killed", "link to another member cut", "node started again"] {
        assert!(seconds.contains(fault), "{seconds}");
    }
    assert!(std::fs::read_to_string(&html).unwrap().contains("eke, shared"));
}

/// An experiment with as many processes in boxes: origin, engine, and all of the first node.
fn begun() -> std::process::Child {
    let mut command = farm(&["--variants", "shared"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let is_begun = until_begun(&mut child, || members().len() >= 12);
    assert!(is_begun, "no node: {}", Ran::from(eke_testkit::program::output_of(child)).shown());
    child
}

#[test]
fn ctrl_c_leaves_nothing() {
    if let Some(why) = lacks() {
        return skip("ctrl_c_leaves_nothing", &why);
    }
    build_farm();
    let clean = Clean::start(traces);
    let child = begun();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ran: Ran = eke_testkit::program::output_of(child).into();
    assert_eq!(ran.status, Some(1), "{}", ran.shown());
    assert!(ran.stderr.ends_with("eke: interrupted; everything is as it was before\n"), "{}", ran.shown());
    clean.is_as_before();
}

#[test]
fn after_a_kill_the_next_one_removes_what_was_left() {
    if let Some(why) = lacks() {
        return skip("after_a_kill_the_next_one_removes", &why);
    }
    build_farm();
    let clean = Clean::start(traces);
    let mut child = begun();
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    wait_for("the boxes to be empty", || members().is_empty());
    assert_ne!(traces(), clean.before, "a test that cannot fail");
    let next = ran(farm(&["--variants", "alone"]));
    assert_eq!(next.status, Some(0), "{}", next.shown());
    clean.is_as_before();
}

#[test]
fn what_cannot_be_is_said_before_anything_is_made() {
    if let Some(why) = lacks() {
        return skip("what_cannot_be_is_said", &why);
    }
    let clean = Clean::start(traces);
    for (args, message) in [
        (&["--variants", "nfs"][..], "there is no variant \"nfs\" in this experiment; there are: alone, eke"),
        (&["--memory", "8M"], "a node of 8.0 MiB is too small; give at least 64 MiB"),
        (&["--content", "1M"], "content of 1.0 MiB is too little"),
        (&["--zipf", "4"], "\"4\" is not a number from 0 to 3, as 0.8"),
    ] {
        let mut line = command(&["farm"]);
        line.args(args).env("XDG_CACHE_HOME", "/proc/nonexistent");
        let ran = ran(line);
        assert_eq!(ran.status, Some(2), "{args:?}: {}", ran.shown());
        assert!(ran.stderr.contains(message) && ran.stdout.is_empty(), "{args:?}: {}", ran.shown());
        clean.is_as_before();
    }
}
