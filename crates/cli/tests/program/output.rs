//! What programs read: JSON, metrics, and an output that fails.

use eke_apply::session::Session;
use eke_apply::state;
use eke_model::applied::Applied;
use eke_model::step::{Plan, Reason, Step};
use eke_testkit::fake_kernel::FakeKernel;

use crate::common::{Ran, command, eke, ran};

#[test]
fn what_cannot_be_printed_is_a_failure_and_a_gone_reader_is_none() {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/meminfo", "MemTotal: 1024000 kB\n"),
        ("proc/vmstat", "pswpin 0\n"),
        ("proc/stat", "cpu 1 2 3 4\n"),
        ("proc/swaps", "Filename\n"),
    ] {
        eke_testkit::tree::put(root.path(), path, text);
    }
    // Without an agent `status` ends with 3, also if its output is lost.
    for (args, status) in [
        (&["schema"][..], 1),
        (&["--help"], 1),
        (&["up", "--help"], 1),
        (&["--root", root.path().to_str().unwrap(), "status"], 3),
    ] {
        let mut full = command(args);
        full.stdout(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
        let full: Ran = full.output().unwrap().into();
        assert_eq!(full.status, Some(status), "{}", full.shown());
        assert!(full.stderr.contains("standard output cannot be written: No space"), "{}", full.stderr);
    }
    let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
    drop(reader);
    let mut closed = command(&["schema"]);
    closed.stdout(std::os::fd::OwnedFd::from(writer));
    let closed: Ran = closed.output().unwrap().into();
    assert_eq!((closed.status, closed.stderr.as_str()), (Some(0), ""));
}

#[test]
fn json_has_the_documented_shape() {
    let status = eke(&["status", "--json"]).json();
    let schema = eke(&["schema", "status"]).json();
    for key in schema["required"].as_array().unwrap() {
        assert!(
            !status[key.as_str().unwrap()].is_null() || status.get(key.as_str().unwrap()).is_some(),
            "status lacks {key}"
        );
    }
    assert!(eke(&["doctor", "--json"]).json()["lines"].as_array().unwrap().len() > 5);
    assert!(eke(&["advise", "--json"]).json()["programs"].is_array());
    assert_eq!(eke(&["schema", "nonsense"]).status, Some(2));
}

#[test]
fn the_help_of_schema_names_all_schemas() {
    let help = eke(&["schema", "--help"]).stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, names) = help.split_once("all of them: ").unwrap();
    let names = names.split_whitespace().map(|name| name.trim_end_matches(','));
    let schemas = eke(&["schema"]).json();
    let schemas: std::collections::BTreeSet<&str> =
        schemas.as_object().unwrap().keys().map(String::as_str).collect();
    let named = names.take(schemas.len()).collect();
    assert_eq!(schemas, named);
}

#[test]
fn metrics_replace_a_file_as_a_whole() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("eke.prom");
    eke_testkit::tree::put(place.path(), "eke.prom", "old");
    let write = |file: &str| {
        // As root's shells have it that follow a hardening guide
        let hidden = ["-c", "umask 077; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_eke")];
        let arguments = ["metrics", "--format", "prometheus", "--output", file];
        ran(std::process::Command::new("sh").args(hidden).args(arguments))
    };
    let ran = write(file.to_str().unwrap());
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(0), ""), "{}", ran.shown());
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\neke_ram_bytes ") && text.ends_with('\n'), "{text}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o644);
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1, "nothing is left beside it");
    let ran = write(place.path().join("no/eke.prom").to_str().unwrap());
    assert!(ran.status == Some(1) && ran.stderr.contains("cannot write"), "{}", ran.shown());
}

#[test]
fn up_prints_one_document_whatever_it_finds() {
    let machine = FakeKernel::new();
    let root = machine.dir().display().to_string();
    let up = |words: &[&str]| {
        let ran = eke(&[&["--root", &root, "--json", "up"], words].concat());
        assert!(ran.status == Some(0) && ran.stderr.is_empty(), "{}", ran.shown());
        ran.json()
    };
    machine.put("run/eke/down", "");
    let was_down = up(&["--boot"]);
    assert!(was_down["outcome"] == "was_down" && was_down["plan"].is_null(), "{was_down}");
    let mut plan = Plan { remedy: "swap".into(), ..Plan::default() };
    plan.push(Step::set("vm.swappiness", 180), Reason::new("a test"));
    Session::open(&machine.root(), "swap").unwrap().apply_plan(&plan).unwrap();
    let applied = Applied { unix_s: 1, plans: vec![plan], ..Applied::default() };
    state::save(&machine.root(), state::APPLIED, &applied).unwrap();
    let was_up = up(&["--size", "64M", "--govern-io"]);
    assert!(was_up["outcome"] == "was_up" && was_up["plan"].is_null(), "{was_up}");
    assert!(was_up["notes"][0].as_str().unwrap().starts_with("--size has no effect"), "{was_up}");
}

/// A program that reads JSON must not get anything else.
#[test]
fn what_has_no_json_is_refused() {
    let verbs: [&[&str]; 8] = [
        &["run"],
        &["doctor", "--knobs"],
        &["cache", "enable", "/srv"],
        &["cache", "disable", "/srv"],
        &["record", "mark", "a"],
        &["top"],
        &["enable"],
        &["down", "--print"],
    ];
    for verb in verbs {
        let ran = eke(&[&["--json"], verb].concat());
        assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""), "{}", ran.shown());
        assert!(ran.stderr.contains("has no JSON"), "{}", ran.shown());
    }
}
