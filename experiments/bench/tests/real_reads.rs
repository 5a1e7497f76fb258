//! `eke bench reads` for real: a few megabytes, a few moments.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::path::Path;
use std::process::{Command, Stdio};

use common::{Ran, build_cache, command};
use eke_testkit::real::{lacking, lock_machine, skip};
use eke_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

fn reads(dir: &Path, args: &[&str]) -> Command {
    let mut command = command(&["reads", "--size", "32M"]);
    command.arg("--dir").arg(dir).arg("--corpus").arg("/usr/share/common-licenses").args(args);
    command
}

fn lacks() -> Option<String> {
    lacking(&["/dev/fuse", "/usr/share/common-licenses/GPL-3"])
}

/// Nothing is mounted in the directory, and nothing is left there.
fn is_clean(dir: &Path) -> bool {
    let mounts = eke_linux::Root::host().read("proc/self/mounts").unwrap();
    let empty = std::fs::read_dir(dir).unwrap().next().is_none();
    empty && !mounts.contains(dir.to_str().unwrap())
}

#[test]
fn every_way_of_reading_has_figures_and_nothing_is_left() {
    if let Some(why) = lacks() {
        return skip("every_way_of_reading_has_figures", &why);
    }
    let _machine = lock_machine();
    build_cache();
    let dir = TempDir::new_in("/var/tmp").unwrap();
    let ran = eke_testkit::program::ran(&mut reads(dir.path(), &["--quick", "--seconds", "0.05", "--json"]));
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    assert!(is_clean(dir.path()));
    let report = ran.json();
    let rows = report["rows"].as_array().unwrap();
    for variant in [
        "files, from the disk",
        "files, from the page cache",
        "mount, from the store",
        "mount, from the page cache",
    ] {
        let values = rows.iter().filter(|row| row["variant"] == variant);
        let positive = values.filter(|row| row["samples"][0].as_f64().is_some_and(|value| value > 0.0));
        assert_eq!(positive.count(), 4, "{variant}: {report}");
    }
    let notes = report["notes"].to_string();
    assert!(notes.contains("block reads were hits"), "{notes}");
}

#[test]
fn an_interrupted_one_leaves_nothing() {
    if let Some(why) = lacks() {
        return skip("an_interrupted_one_leaves_nothing", &why);
    }
    let _machine = lock_machine();
    build_cache();
    let dir = TempDir::new_in("/var/tmp").unwrap();
    let mut command = reads(dir.path(), &["--seconds", "20"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mounted =
        || eke_linux::Root::host().read("proc/self/mounts").unwrap().contains(dir.path().to_str().unwrap());
    wait_for("the mount", mounted);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ran = Ran::from(eke_testkit::program::output_of(child));
    assert!(ran.status == Some(1) && ran.shown().contains("interrupted"), "{}", ran.shown());
    assert!(is_clean(dir.path()));
}

#[test]
fn what_cannot_be_measured_is_said() {
    let ran = eke_testkit::program::ran(&mut reads(Path::new("/nowhere"), &[]));
    assert!(ran.status == Some(1) && ran.shown().contains("/nowhere"), "{}", ran.shown());
    let ran = eke_testkit::program::ran(&mut reads(Path::new("/var/tmp"), &["--seconds", "0"]));
    assert!(ran.status == Some(2) && ran.shown().contains("more than 0"), "{}", ran.shown());
}
