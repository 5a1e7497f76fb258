//! `eke bench web` for real: a few megabytes, a few seconds.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use common::clean::{Clean, disks_and_groups};
use common::{Ran, build_cache, command, eke, until_begun};
use eke_testkit::real::{lacking, no_program, skip};
use eke_testkit::tree;
use eke_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Images of these tests, which the next one takes from there.
const CACHE: &str = env!("CARGO_TARGET_TMPDIR");
const NGINX: &str = "/usr/sbin/nginx";

fn lacks() -> Option<String> {
    let needs = ["/dev/fuse", "/sys/fs/cgroup", "/dev/loop-control"];
    lacking(&needs).or_else(|| no_program(&["mke2fs", "nginx"]))
}

/// Mounts, disks, directories, groups, and servers that serve what experiments mount.
fn traces() -> String {
    format!("{}\n{}", disks_and_groups(), servers().len())
}

/// Processes in boxes of this experiment: servers with their workers, and eke-cache. One that is dead, and that the machine's first
/// process has not yet taken note of, has no command line.
fn servers() -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|e| e.file_name().to_str()?.parse().ok());
    let is_in_a_box = |pid: &u32| {
        let groups = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        groups.contains("/eke/web-") && !line.is_empty()
    };
    pids.filter(is_in_a_box).collect()
}

/// Files to cut from.
fn corpus() -> PathBuf {
    let dir = Path::new(CACHE).join("web-corpus");
    if !dir.is_dir() {
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::copy("/proc/self/exe", dir.join("program")).unwrap();
    }
    dir
}

/// `eke bench web` of 8.6 MB on a quick disk, for 2 s each.
fn web(args: &[&str]) -> Command {
    let mut command = command(&["web", "--clients", "5", "--memory", "200M", "--connections", "4"]);
    command.args(["--disk", "sd", "--warm-up", "2", "--seconds", "2", "--axes", "base", "--corpus"]);
    command.arg(corpus()).args(args).env("XDG_CACHE_HOME", CACHE);
    command
}

fn ran(mut command: Command) -> Ran {
    eke_testkit::program::ran(&mut command)
}

/// The sample of a metric of a variant.
fn sample(report: &Value, metric: &str, variant: &str) -> f64 {
    let rows = report["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["metric"] == metric && row["variant"] == variant);
    row.unwrap_or_else(|| panic!("no {metric} of {variant}: {report}"))["samples"][0].as_f64().unwrap()
}

#[test]
fn an_experiment_has_figures_and_leaves_nothing() {
    if let Some(why) = lacks() {
        return skip("an_experiment_has_figures", &why);
    }
    let clean = Clean::start(traces);
    let out = tempfile::tempdir().unwrap();
    let [json, html] = ["web.json", "web.html"].map(|n| out.path().join(n).to_str().unwrap().to_owned());
    let ran = ran(web(&["--variants", "ext4,ext4x2", "--output", &json, "--html", &html, "--json"]));
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    clean.is_as_before();
    let report = ran.json();
    let saved: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(saved, report);
    for variant in ["ext4", "ext4, twice the memory"] {
        assert!(sample(&report, "throughput", variant) > 0.1, "{report}");
        assert!(sample(&report, "response time, median", variant) > 0.0);
    }
    assert!(std::fs::read_to_string(&html).unwrap().contains("ext4, twice the memory"));
    assert!(report["command"].as_str().unwrap().contains("--variants ext4,ext4x2 --axes base"));
}

#[test]
fn eke_serves_the_same_files_from_its_store() {
    if let Some(why) = lacks() {
        return skip("eke_serves_the_same_files", &why);
    }
    build_cache();
    let clean = Clean::start(traces);
    let ran = ran(web(&["--variants", "ext4,eke,eke-sync", "--json"]));
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    clean.is_as_before();
    let report = ran.json();
    for variant in ["eke over ext4", "eke over ext4, sync"] {
        assert!(sample(&report, "throughput", variant) > 0.1, "{report}");
        let (held, raw) =
            (sample(&report, "store", variant), sample(&report, "content in the store", variant));
        assert!(held > 0.0 && raw > 1.0, "{variant}: {held} of {raw} MiB");
        let share = sample(&report, "compressed share", variant);
        assert!((0.0..=100.0).contains(&share), "{variant}: {share} %");
        assert!(sample(&report, "CPU, decompression", variant) >= 0.0);
    }
    let notes = report["notes"].to_string();
    assert!(!notes.contains("failed"), "{notes}");
}

#[test]
fn a_grid_measures_only_cells_that_are_not_in_its_file() {
    if let Some(why) = lacks() {
        return skip("a_grid_measures_only_cells", &why);
    }
    build_cache();
    let clean = Clean::start(traces);
    let out = tempfile::tempdir().unwrap();
    let json = out.path().join("grid.json");
    let grid = |seconds: &str| {
        let mut command = command(&["web", "--grid", "--quick", "--warm-up", "1", "--json", "--output"]);
        // A tree that was changed has no commit of its own.
        command.arg(&json).args(["--seconds", seconds, "--any-commit"]).env("XDG_CACHE_HOME", CACHE);
        ran(command)
    };
    let first = grid("1");
    assert_eq!(first.status, Some(0), "{}", first.shown());
    clean.is_as_before();
    let rows = |report: &Value| report["rows"].as_array().unwrap().clone();
    let mut report: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!((&report, rows(&report).len()), (&first.json(), 2 * 2 * 4));
    let other = grid("2");
    assert_eq!(other.status, Some(2), "{}", other.shown());
    assert!(other.stderr.contains("is of \"sudo eke bench web --quick --grid"), "{}", other.shown());
    // Without its second cell, the file is that of a grid that was stopped.
    let half = rows(&report)[..8].to_vec();
    report["rows"] = half.clone().into();
    std::fs::remove_file(&json).unwrap();
    tree::put(out.path(), "grid.json", &report.to_string());
    let second = grid("1").json();
    assert_eq!((&rows(&second)[..8], rows(&second).len()), (&half[..], 16));
    let third = grid("1");
    assert_eq!(rows(&third.json()), rows(&second), "nothing is left to measure");
    clean.is_as_before();
}

/// An experiment whose server runs: nginx with two workers, and before them eke's supervisor and worker.
fn begun(variant: &str) -> (std::process::Child, Vec<u32>) {
    let mut command = web(&["--variants", variant]);

    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut seen = Vec::new();
    let is_begun = until_begun(&mut child, || {
        seen = servers();
        seen.len() >= if variant == "eke" { 5 } else { 3 }
    });
    assert!(is_begun, "no server: {}", Ran::from(eke_testkit::program::output_of(child)).shown());
    (child, seen)
}

fn are_gone(pids: &[u32]) {
    wait_for(&format!("{pids:?} to end"), || !pids.iter().any(|pid| servers().contains(pid)));
}

#[test]
fn ctrl_c_leaves_nothing() {
    if let Some(why) = lacks() {
        return skip("ctrl_c_leaves_nothing", &why);
    }
    let clean = Clean::start(traces);
    build_cache();
    let (child, _) = begun("eke");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ran: Ran = eke_testkit::program::output_of(child).into();
    assert_eq!(ran.status, Some(1), "{}", ran.shown());
    assert!(ran.stderr.ends_with("eke: interrupted; everything is as it was before\n"), "{}", ran.shown());
    clean.is_as_before();
}

#[test]
fn after_a_kill_the_server_ends_and_the_rest_goes_with_down_or_the_next_one() {
    if let Some(why) = lacks() {
        return skip("after_a_kill_the_server_ends", &why);
    }
    build_cache();
    let clean = Clean::start(traces);
    let killed = |variant| {
        let (mut child, servers) = begun(variant);
        kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
        child.wait().unwrap();
        are_gone(&servers);
        assert_ne!(traces(), clean.before, "a test that cannot fail");
    };
    killed("eke");
    let down = eke(&["down"]);
    assert_eq!(down.status, Some(0), "{}", down.shown());
    clean.is_as_before();
    killed("ext4");
    let next = ran(web(&["--variants", "ext4"]));
    assert_eq!(next.status, Some(0), "{}", next.shown());
    clean.is_as_before();
}

#[test]
fn what_cannot_be_is_said_before_anything_is_made() {
    if let Some(why) = lacks() {
        return skip("what_cannot_be_is_said", &why);
    }
    let clean = Clean::start(traces);
    for (args, status, message) in [
        (
            &["--variants", "ext5"][..],
            2,
            "there is no variant \"ext5\" in this experiment; there are: ext4, ext4x2",
        ),
        (&["--axes", "time"], 2, "there is no axis \"time\" in this experiment; there are: base, load"),
        (&["--requests", "zipf"], 2, "neither `uniform` nor `zipf:EXPONENT`"),
        (&["--grid"], 2, "--output <FILE.json>"),
        (&["--grid", "--output", "/proc/meminfo"], 2, "/proc/meminfo is no grid (it is not JSON"),
        (&["--grid", "--output", "/proc/nonexistent/a.json"], 1, "cannot create /proc/nonexistent/a.json"),
        (&["--grid", "--output", "a.json", "--memory", "1G"], 2, "cannot be used with '--memory <SIZE>'"),
        (&["--share", "90"], 2, "90 is not in 1..=85"),
        (&["--clients", "0"], 2, "0 is not in 1..=100000"),
        (&["--memory", "8M"], 2, "a box of 8.0 MiB is too small for a web server"),
        (&["--corpus", "/nonexistent"], 1, "cannot read /nonexistent: No such file or directory"),
        (&["--corpus", "/proc/sys"], 1, "nothing to cut the content from"),
    ] {
        let mut line = command(&["web"]);
        line.args(args).env("XDG_CACHE_HOME", "/proc/nonexistent");
        let ran = ran(line);
        assert_eq!(ran.status, Some(status), "{args:?}: {}", ran.shown());
        assert!(ran.stderr.contains(message) && ran.stdout.is_empty(), "{args:?}: {}", ran.shown());
        clean.is_as_before();
    }
}

#[test]
fn without_nginx_it_says_what_to_install() {
    if let Some(why) = lacks().or_else(|| no_program(&["unshare"])) {
        return skip("without_nginx_it_says", &why);
    }
    let clean = Clean::start(traces);
    // A machine without it, as far as this one process sees.
    let hidden = format!("mount --bind /dev/null {NGINX} && exec \"$@\"");
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "sh", "-c", &hidden, "sh", env!("CARGO_BIN_EXE_eke-bench"), "web"]);
    shell.args(["--variants", "ext4"]).stdin(Stdio::null());
    let ran = ran(shell);
    assert_eq!(ran.status, Some(1), "{}", ran.shown());
    let message = "eke: nginx is not installed, and this experiment needs it; `make bench-deps`";
    assert!(ran.stderr.starts_with(message), "{}", ran.shown());
    clean.is_as_before();
}
