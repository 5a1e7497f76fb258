//! Verbs that execute another program of eke, or name its package.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

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
    script.iter().for_each(|script| put_program(&public, "eke-bench", script));
    public
}

fn put_program(place: &Public, name: &str, script: &str) {
    let dir = place.path().parent().unwrap().to_owned();
    tree::put(&dir, name, &format!("#!/bin/sh\n{script}\n"));
    set_mode(&dir.join(name), 0o755);
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
fn a_verb_without_its_program_names_it_and_where_it_comes_from() {
    let place = place(None);
    for (args, program) in [
        (&["dash"][..], "eke-dash"),
        (&["metrics", "--listen", "127.0.0.1:0"], "eke-dash"),
        (&["record", "--", "true"], "eke-record"),
        (&["report", "a.sqlite"], "eke-record"),
        (&["prefetch", "list"], "eke-prefetch"),
        (&["ltsp", "plan"], "eke-ltsp"),
    ] {
        let ran = eke(&place, "/nonexistent", args);
        assert_eq!(ran.status, Some(6), "{}", ran.shown());
        let is_named = ran.stderr.contains(&format!("{program} is not installed"));
        assert!(is_named && ran.stderr.contains("in the same package"), "{}", ran.shown());
    }
}

#[test]
fn options_reach_the_program_in_one_form() {
    let place = place(None);
    for program in ["eke-dash", "eke-record", "eke-prefetch", "eke-ltsp"] {
        put_program(&place, program, "printf '%s|' \"$@\"; exit 42");
    }
    for (args, words) in [
        (&["dash"][..], "page|--listen|127.0.0.1:7117|"),
        (&["dash", "--history=-h", "--listen=[::1]:80"], "page|--listen|[::1]:80|--history|-h|"),
        (&["--root", "/srv", "metrics", "--listen", "0.0.0.0:1"], "--root|/srv/|metrics|--listen|0.0.0.0:1|"),
        (&["record", "--", "ls", "--json"], "record|--|ls|--json|"),
        (
            &["record", "--json", "--pid", "7", "--for=2m", "--every", "1s", "-oa b", "--force"],
            "--json|record|--every|1000ms|--output|a b|--force|--pid|7|--for|120000ms|--|",
        ),
        (&["record", "--system"], "record|--system|--|"),
        (&["record", "mark", "a b"], "mark|--|a b|"),
        (&["report", "a", "--svg", "b", "--csv=-", "--html", "c"], "report|--html|c|--svg|b|--csv|-|--|a|"),
        (&["--root", "/srv", "ltsp", "install"], "--root|/srv/|install|"),
        (&["ltsp", "status", "--json", "pc1"], "--json|status|--|pc1|"),
        (&["ltsp", "targets", "-oa b"], "targets|--output|a b|--|"),
        (&["prefetch", "list", "--json"], "--json|--store|/var/lib/eke|list|"),
        (&["prefetch", "--store", "a", "show", "b", "--all"], "--store|a|--all|show|--|b|"),
        (&["--root", "/srv", "prefetch", "forget", "b"], "--store|/srv/var/lib/eke|forget|--|b|"),
        (&["prefetch", "explain"], "--store|/var/lib/eke|explain|--most|20|--|"),
        (&["prefetch", "explain", "b", "--most=3"], "--store|/var/lib/eke|explain|--most|3|--|b|"),
        (&["prefetch", "trace", "--hash", "-o", "a"], "--store|/var/lib/eke|trace|--hash|--output|a|"),
    ] {
        let ran = eke(&place, "/usr/bin:/bin", args);
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(42), words), "{}", ran.shown());
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
