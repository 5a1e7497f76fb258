//! `eke bench`: executes the laboratory's program, or names its package.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "functions of tests, which fail by it"
)]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use common::{Public, Ran, is_root};
use eke_testkit::real::skip;
use eke_testkit::tree;

/// A copy of `eke`, with this script as `eke-bench` beside it if there is one.
fn place(script: Option<&str>) -> Public {
    let public = Public::new();
    if let Some(script) = script {
        let dir = public.path().parent().unwrap().to_owned();
        tree::put(&dir, "eke-bench", &format!("#!/bin/sh\n{script}\n"));
        set_mode(&dir.join("eke-bench"), 0o755);
    }
    public
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn eke(place: &Public, path: &str, args: &[&str]) -> Ran {
    Command::new(place.path()).args(args).env("PATH", path).output().unwrap().into()
}

#[test]
fn without_its_program_it_names_the_package() {
    let place = place(None);
    for args in
        [&["bench", "paging", "--quick"][..], &["bench"], &["bench", "--help"], &["prefetch", "replay", "a"]]
    {
        let ran = eke(&place, "/nonexistent", args);
        assert_eq!(ran.status, Some(6), "{}", ran.shown());
        assert!(
            ran.stderr.contains("eke-bench is not installed") && ran.stderr.contains("package"),
            "{}",
            ran.shown()
        );
    }
}

#[test]
fn words_and_exit_status_pass_through() {
    let place = place(Some("echo \"$@\"; exit 42"));
    for (args, words) in [
        (&["bench", "store", "--quick", "--json"][..], "store --quick --json\n"),
        (&["--json", "bench", "show", "a b"], "--json show a b\n"),
        (&["bench", "--help"], "--help\n"),
        (&["prefetch", "replay", "--days", "3"], "replay --days 3\n"),
        (&["lab", "slow-disk", "--profile", "sd"], "lab slow-disk --profile sd\n"),
    ] {
        let ran = eke(&place, "/usr/bin:/bin", args);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(42), words), "{}", ran.shown());
    }
}

#[test]
fn it_is_also_found_in_the_path_but_not_in_the_working_directory() {
    let (alone, other) = (place(None), place(Some("echo found")));
    let dir = other.path().parent().unwrap().to_owned();
    assert_eq!(eke(&alone, &format!("{}:/bin", dir.display()), &["bench"]).stdout, "found\n");
    let mut here = Command::new(alone.path());
    let ran: Ran = here.arg("bench").current_dir(&dir).env("PATH", ".:").output().unwrap().into();
    assert_eq!(ran.status, Some(6), "{}", ran.shown());
}

#[test]
fn root_executes_nothing_that_others_can_write() {
    if !is_root() {
        return skip("root_executes_nothing_that_others_can_write", "only root is careful");
    }
    let place = place(Some("echo ran"));
    let dir = place.path().parent().unwrap().to_owned();
    for (path, mode, before) in [(dir.join("eke-bench"), 0o777, 0o755), (dir.clone(), 0o1777, 0o755)] {
        set_mode(&path, mode);
        let ran = eke(&place, "/bin", &["bench"]);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(4), ""), "{}", ran.shown());
        assert!(ran.stderr.contains("is writable for other users"), "{}", ran.shown());
        set_mode(&path, before);
    }
    assert_eq!(eke(&place, "/bin", &["bench"]).stdout, "ran\n");
}
