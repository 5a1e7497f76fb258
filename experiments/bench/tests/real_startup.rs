//! `eke bench startup` for real: xterm and python from their own disk, a few seconds.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::clean::{Clean, disks_and_groups};
use common::{Ran, command, eke, until_begun};
use eke_testkit::real::{lacking, no_program, skip};
use eke_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Images of these tests, which the next one takes from there.
const CACHE: &str = env!("CARGO_TARGET_TMPDIR");

fn lacks() -> Option<String> {
    let needs =
        ["/dev/fuse", "/dev/loop-control", "/usr/bin/python3", "/var/lib/dpkg/info/python3-minimal.list"];
    lacking(&needs).or_else(|| no_program(&["mke2fs", "dpkg-query", "xterm", "Xvfb"]))
}

/// Mounts, disks, directories, and processes of experiments that start programs.
fn traces() -> String {
    format!("{}\n{:?}", disks_and_groups(), processes())
}

/// Launchers, preload's daemons with a configuration of ours, their predecessors, and processes in a test image.
fn processes() -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|e| e.file_name().to_str()?.parse().ok());
    let is_ours = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let exe = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        line.contains("lab startup") || line.contains("/run/eke/stage") || exe.starts_with("/run/eke")
    };
    pids.filter(is_ours).collect()
}

/// `eke bench startup` without what takes long.
fn startup(args: &[&str]) -> Command {
    let mut command = command(&["startup", "--no-calls", "--no-ten", "--patience", "120"]);
    command.args(args).env("XDG_CACHE_HOME", CACHE);
    command
}

fn ran(mut command: Command) -> Ran {
    eke_testkit::program::ran(&mut command)
}

/// The sample of a metric of a program's variant.
fn sample(report: &Value, metric: &str, variant: &str, program: &str) -> f64 {
    let rows = report["rows"].as_array().unwrap();
    let of = |row: &&Value| {
        row["metric"] == metric && row["variant"] == variant && row["params"]["program"] == program
    };
    let row = rows.iter().find(of);
    row.unwrap_or_else(|| panic!("no {metric} of {program} {variant}: {report}"))["samples"][0]
        .as_f64()
        .unwrap()
}

#[test]
fn a_cold_start_reads_what_a_warm_one_finds_in_memory() {
    if let Some(why) = lacks() {
        return skip("a_cold_start_reads", &why);
    }
    let clean = Clean::start(traces);
    let out = tempfile::tempdir().unwrap();
    let [json, html] =
        ["startup.json", "startup.html"].map(|n| out.path().join(n).to_str().unwrap().to_owned());
    let files = ["--output", &json, "--html", &html, "--json"];
    let what =
        ["--programs", "xterm,python", "--variants", "cold,warm", "--disk", "none,sd", "--repeats", "1"];
    let ran = ran(startup(&[&what[..], &files].concat()));
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    clean.is_as_before();
    let report = ran.json();
    let saved: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(saved, report);
    for program in ["xterm", "python"] {
        let of = |metric, variant| sample(&report, metric, variant, program);
        let (cold, warm) = (of("read while it starts", "cold"), of("read while it starts", "warm"));
        assert!(cold > 2.0 && warm < cold / 10.0, "{program}: {cold} MB cold, {warm} MB warm");
        assert!(of("major faults", "cold") > of("major faults", "warm"), "{report}");
        assert!(of("found in memory", "warm") > 90.0 && of("start", "warm") > 0.0);
        let rows = report["rows"].as_array().unwrap();
        let maps = |row: &&Value| row["metric"] == "maps" && row["params"]["program"] == program;
        assert!(rows.iter().find(maps).unwrap()["median"].as_f64().unwrap() > 10.0, "{report}");
    }
    let beside = sample(&report, "another reader, alone", "cold", "xterm");
    assert!(beside > 0.0, "{report}");
    assert!(std::fs::read_to_string(&html).unwrap().contains("read while it starts"));
    assert!(!report["notes"].to_string().contains("failed"), "{report}");
}

/// The report of xterm, cold and after preload.
fn cold_and_preload(clean: &Clean) -> Value {
    let variants = ["--programs", "xterm", "--variants", "cold,preload", "--repeats", "1"];
    let ran = ran(startup(&[&variants[..], &["--disk", "none", "--no-harm", "--json"]].concat()));
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    clean.is_as_before();
    let report = ran.json();
    assert!(!report["notes"].to_string().contains("failed"), "{report}");
    report
}

#[test]
fn preload_learns_a_program_and_reads_it_ahead() {
    if let Some(why) = lacks().or_else(|| no_program(&["preload", "ionice"])) {
        return skip("preload_learns", &why);
    }
    let clean = Clean::start(traces);
    // preload learns by polls. On a busy machine it may miss a program, and then reads nothing ahead.
    let has_read_ahead = |report: &Value| sample(report, "read ahead", "preload", "xterm") > 1.0;
    let mut reports = (0..3).map(|_| cold_and_preload(&clean));
    let report = reports.find(has_read_ahead).expect("preload reads ahead in one of three experiments");
    let of = |metric, variant| sample(&report, metric, variant, "xterm");
    let (cold, after) = (of("read while it starts", "cold"), of("read while it starts", "preload"));
    assert!(after < cold, "{cold} MB cold, {after} MB after preload");
}

/// An experiment of this variant, as soon as one of its processes is as `wanted`.
fn begun(variant: &str, wanted: fn(u32) -> bool) -> (std::process::Child, Vec<u32>) {
    let mut command =
        startup(&["--programs", "xterm", "--variants", variant, "--disk", "sd", "--repeats", "50"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut seen = Vec::new();
    let is_begun = until_begun(&mut child, || {
        seen = processes();
        seen.iter().any(|pid| wanted(*pid))
    });
    assert!(is_begun, "no program: {}", Ran::from(eke_testkit::program::output_of(child)).shown());
    (child, seen)
}

fn exe(pid: u32) -> std::path::PathBuf {
    std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default()
}

fn is_xterm(pid: u32) -> bool {
    exe(pid).starts_with("/run/eke") && exe(pid).ends_with("xterm")
}

fn is_preload(pid: u32) -> bool {
    exe(pid).ends_with("sbin/preload")
}

#[test]
fn ctrl_c_leaves_nothing() {
    if let Some(why) = lacks().or_else(|| no_program(&["preload"])) {
        return skip("ctrl_c_leaves_nothing", &why);
    }
    let clean = Clean::start(traces);
    for (variant, wanted) in [("cold", is_xterm as fn(u32) -> bool), ("preload", is_preload)] {
        let (child, _) = begun(variant, wanted);
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let ran: Ran = eke_testkit::program::output_of(child).into();
        assert_eq!(ran.status, Some(1), "{}", ran.shown());
        assert!(
            ran.stderr.ends_with("eke: interrupted; everything is as it was before\n"),
            "{}",
            ran.shown()
        );
        clean.is_as_before();
    }
}

#[test]
fn after_a_kill_the_programs_end_and_down_takes_the_rest() {
    if let Some(why) = lacks().or_else(|| no_program(&["preload"])) {
        return skip("after_a_kill_the_programs_end", &why);
    }
    let clean = Clean::start(traces);
    for (variant, wanted) in [("cold", is_xterm as fn(u32) -> bool), ("preload", is_preload)] {
        let (mut child, programs) = begun(variant, wanted);
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        let left = || programs.iter().any(|pid| processes().contains(pid));
        wait_for(&format!("{programs:?} of {variant} to end"), || !left());
        assert_ne!(traces(), clean.before, "a test that cannot fail");
        let down = eke(&["down"]);
        assert_eq!(down.status, Some(0), "{}", down.shown());
        clean.is_as_before();
    }
}

#[test]
fn what_cannot_be_is_said_before_anything_is_made() {
    let clean = Clean::start(traces);
    let shown = |args: &[&str]| {
        let mut line = command(&["startup"]);
        line.args(args).env("XDG_CACHE_HOME", "/proc/nonexistent");
        ran(line).shown()
    };
    insta::assert_snapshot!("startup_unknown_program", shown(&["--programs", "xterm,ed"]));
    insta::assert_snapshot!("startup_unknown_variant", shown(&["--variants", "hot"]));
    insta::assert_snapshot!("startup_unknown_disk", shown(&["--disk", "floppy"]));
    insta::assert_snapshot!("startup_cycle_too_short", shown(&["--preload-cycle", "1"]));
    insta::assert_snapshot!("startup_no_repeats", shown(&["--repeats", "0"]));
    clean.is_as_before();
}

#[test]
fn eke_that_is_not_built_is_said_where_it_was_asked_for() {
    if let Some(why) = lacks() {
        return skip("eke_that_is_not_built", &why);
    }
    // A directory with eke alone.
    let alone = common::Public::new();
    let mut line = Command::new(alone.path());
    line.args(["startup", "--variants", "eke-ahead", "--programs", "xterm"]).stdin(Stdio::null());
    let ran = ran(line);
    assert_eq!(ran.status, Some(2), "{}", ran.shown());
    assert!(
        ran.stderr.contains("eke-prefetch is not beside") && ran.stderr.contains("make build"),
        "{}",
        ran.shown()
    );
    assert!(Path::new(CACHE).is_dir());
}
