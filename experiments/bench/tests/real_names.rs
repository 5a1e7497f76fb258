//! `eke bench names` for real: some hundred files.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use common::{build_cache, command};
use eke_testkit::real::{lacking, lock_machine, no_program, skip};
use tempfile::TempDir;

#[test]
fn every_source_of_names_has_figures_and_nothing_is_left() {
    if let Some(why) = lacking(&["/dev/fuse"]).or_else(|| no_program(&["git", "find", "grep"])) {
        return skip("every_source_of_names_has_figures", &why);
    }
    let _machine = lock_machine();
    build_cache();
    let dir = TempDir::new_in("/var/tmp").unwrap();
    let mut names = command(&["names", "--quick", "--number", "400", "--json", "--dir"]);
    let ran = eke_testkit::program::ran(names.arg(dir.path()));
    assert_eq!(ran.status, Some(0), "{}", ran.shown());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    let mounts = eke_linux::Root::host().read("proc/self/mounts").unwrap();
    assert!(!mounts.contains(dir.path().to_str().unwrap()), "{mounts}");
    let report = ran.json();
    let rows = report["rows"].as_array().unwrap();
    for (variant, metrics) in [("files", 9), ("files, again", 9), ("eke", 10), ("eke, --no-watch", 10)] {
        let of = rows.iter().filter(|row| row["variant"] == variant);
        let positive = of.filter(|row| row["samples"][0].as_f64().is_some_and(|value| value > 0.0));
        assert_eq!(positive.count(), metrics, "{variant}: {report}");
    }
}
