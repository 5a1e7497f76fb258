//! The built program: what it prints, its standard error, its exit status.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

#[path = "../common/mod.rs"]
mod common;
mod configuration;
mod hung_agent;
mod machine;
mod output;
mod retraining;
mod undoing;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use common::{Public, Ran, eke};
use eke_testkit::program::build_beside;
use eke_testkit::real::skip;

#[test]
fn help_reads_like_the_readme() {
    insta::assert_snapshot!(eke(&["--help"]).shown());
}

#[test]
fn every_verb_has_an_example_or_is_one_itself() {
    for verb in [
        "plan",
        "up",
        "run",
        "down",
        "enable",
        "disable",
        "status",
        "top",
        "dash",
        "metrics",
        "notify",
        "doctor",
        "report-bug",
        "advise",
        "box",
        "demo",
        "completions",
        "man",
        "schema",
    ] {
        let help = eke(&[verb, "--help"]);
        assert_eq!(help.status, Some(0), "{verb}");
        assert!(help.stdout.contains("Example:"), "{verb} has no example");
    }
    assert!(eke(&["swap", "boot-config", "--help"]).stdout.contains("Example:"));
}

#[test]
fn wrong_arguments_say_what_would_be_right() {
    insta::assert_snapshot!("unknown_verb", eke(&["upp"]).shown());
    insta::assert_snapshot!("bad_size", eke(&["box", "--memory", "lots", "--", "true"]).shown());
    insta::assert_snapshot!("no_command", eke(&["box", "--memory", "124M"]).shown());
    insta::assert_snapshot!("percent_out_of_range", eke(&["plan", "--pool-percent", "95"]).shown());
}

/// A line of `/etc/fstab` may name any bytes, and its file system reaches `eke-cache` by mount(8).
#[test]
fn no_program_panics_for_an_argument_that_is_no_text_or_a_full_output() {
    let packages = [
        "-p",
        "eke-agent",
        "-p",
        "eke-prefetchd",
        "-p",
        "eke-iod",
        "-p",
        "eke-cache-serve",
        "-p",
        "eke-cache-engine",
    ];
    build_beside(env!("CARGO_BIN_EXE_eke").as_ref(), env!("CARGO").as_ref(), &packages);
    for program in ["eke-agent", "eke-prefetch", "eke-io", "eke-cache", "eke-cache-shared"] {
        let path = PathBuf::from(env!("CARGO_BIN_EXE_eke")).with_file_name(program);
        let no_text = OsStr::from_bytes(b"/srv/\xff");
        let ran: Ran = std::process::Command::new(&path).args([no_text, no_text]).output().unwrap().into();
        assert!(matches!(ran.status, Some(1 | 2)), "{program}: {}", ran.shown());
        assert!(ran.stderr.contains("\\xFF"), "{program}: {}", ran.shown());
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut help = std::process::Command::new(&path);
        let ran: Ran = help.arg("--help").stdout(full).output().unwrap().into();
        assert!(matches!(ran.status, Some(1 | 2)), "{program}: {}", ran.shown());
    }
}

#[test]
fn a_program_that_lacks_is_named_with_its_own_status() {
    let public = Public::new();
    let ran = std::process::Command::new(public.path()).args(["cache", "mount", "/usr", "/tmp"]).output();
    let ran: Ran = ran.unwrap().into();
    if ran.stderr.contains("cannot mount") {
        return skip("a_program_that_lacks", "no FUSE here");
    }
    assert_eq!(ran.status, Some(6), "{}", ran.shown());
    assert!(ran.stderr.contains("eke-cache is not installed"), "{}", ran.stderr);
}

#[test]
fn what_is_generated_is_up_to_date() {
    let docs = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
    for (file, args) in [("knobs.md", &["doctor", "--knobs"][..]), ("metrics.md", &["metrics", "--table"])] {
        let now = eke(args).stdout;
        let kept = std::fs::read_to_string(docs.join(file)).unwrap_or_default();
        assert!(now == kept, "docs/{file} is not what `eke {}` prints: run `make docs`", args.join(" "));
    }
}

#[test]
fn completions_come_for_the_usual_shells() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(eke(&["completions", shell]).stdout.contains("boot-config"), "{shell}");
    }
}
