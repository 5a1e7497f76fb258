//! `eke prefetch ...`: the built program on a store of the test's own.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "functions of tests, which fail by it"
)]

mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use common::{Public, Ran, build_bench, eke, is_root};
use eke_prefetch_model::choose::{ChoiceOutcome, Limit, Occasion};
use eke_prefetch_model::missing::{ColdFile, ReadFor, missing};
use eke_prefetch_model::{
    Event, FileSet, Kind, Launch, LaunchEnd, Pages, Program, ProgramId, Span, Stamp, Touched, UsedBy,
    UserEvent,
};
use eke_prefetch_store::{Decision, PageUsage, ProgramStore};
use eke_testkit::real::skip;
use eke_testkit::tree::put;
use tempfile::TempDir;

const HOUR: i64 = 3600;

fn now_s() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

fn file(path: impl AsRef<OsStr>, kind: Kind, spans: &[(u64, u64)]) -> Touched {
    Touched {
        path: PathBuf::from(path.as_ref()),
        kind,
        stamp: Stamp { dev: 1, ino: 1, size: 0, mtime_ns: 0 },
        pages: spans.iter().filter_map(|(first, end)| Span::new(*first, *end)).collect::<Pages>(),
        stale: Pages::default(),
        weight: 0.75,
        used_by: UsedBy::Unknown,
    }
}

fn gedit() -> Program {
    Program::of_exe("/usr/bin/gedit")
}

fn programs() -> [Program; 4] {
    let script = |script: &[u8]| Some(PathBuf::from(OsStr::from_bytes(script)));
    [
        gedit(),
        Program { script: script(b"/usr/bin/meld"), ..Program::of_exe("/usr/bin/python3.11") },
        Program { script: script(b"/home/x/\x1b[2J\xff.py"), ..Program::of_exe("/usr/bin/python3.11") },
        Program::of_exe("/opt/old/bin/gedit"),
    ]
}

fn launch(program: Program, hours_ago: i64, number: u64) -> Launch {
    let mut files = vec![
        file("/dev/sda2", Kind::Device, &[(1056, 1057), (90_000, 90_004)]),
        file("/usr/lib", Kind::Directory, &[]),
        file(&program.exe, Kind::File, &[(0, 16)]),
        file("/usr/lib/libgtk-3.so.0", Kind::File, &[(0, 64), (100, 1200)]),
    ];
    files.extend(
        (0..40 * u64::from(number == 0))
            .map(|n| file(format!("/usr/share/icons/{n}"), Kind::File, &[(0, 1)])),
    );
    Launch {
        program,
        uid: 1000,
        began_ns: (now_s() - hours_ago * HOUR) * 1_000_000_000,
        took: Duration::from_millis(14_860 >> number),
        ended: LaunchEnd::Quiet,
        set: FileSet { files },
        cold_bytes: (211 << 20) >> number,
    }
}

fn decision(program: &Program, minutes_ago: i64, occasion: Occasion, outcome: ChoiceOutcome) -> Decision {
    Decision {
        at_s: now_s() - minutes_ago * 60,
        occasion,
        program: program.id(),
        probability: 0.42,
        outcome,
        limit: None,
        usage: None,
    }
}

/// A store of four programs: two are scripts, two have the same name.
fn store() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut keep = ProgramStore::open(dir.path(), "boot", now_s()).unwrap().store;
    for (program, number) in programs().into_iter().zip(0..) {
        for _ in number..4 {
            let launch = launch(program.clone(), 3 + 50 * number as i64, number);
            keep.add_launch(&launch, &launch.set, now_s()).unwrap();
        }
    }
    let happened =
        |minute: f64, event| UserEvent { at_s: 1_800_000_000.0 + 60.0 * minute, user: 1000, event };
    keep.add_events(&[
        happened(0.0, Event::Session),
        happened(1.0, Event::Start(gedit().id())),
        happened(2.0, Event::Stop(gedit().id())),
        happened(3.0, Event::Start(ProgramId(0xabc))),
        happened(4.0, Event::Start(gedit().id())),
    ])
    .unwrap();
    decide(&mut keep);
    read_itself(&mut keep);
    dir
}

/// What a start of meld read from the disk although eke had read for it.
fn read_itself(keep: &mut ProgramStore) {
    let cold = |path: &str, kind, first, end| ColdFile {
        path: path.into(),
        kind,
        pages: Span::new(first, end).into_iter().collect(),
    };
    let [_, meld, ..] = programs();
    let known = keep.program(meld.id(), now_s()).unwrap().unwrap().set;
    let launch = ReadFor { at_s: now_s() - 600, took_ms: 2345, read_bytes: 60 << 20 };
    let all = [
        cold("/usr/bin/meld", Kind::File, 0, 4),
        cold("/usr/lib/libgtk-3.so.0", Kind::File, 50, 300),
        cold("/dev/sda2", Kind::Device, 7, 8),
    ];
    keep.put_missing(meld.id(), missing(launch, &all, &known)).unwrap();
}

fn decide(keep: &mut ProgramStore) {
    let [gedit, meld, hostile, old] = programs();
    let mib = |n: u64| n << 20;
    let chosen = ChoiceOutcome::Chosen { bytes: mib(89), of_bytes: mib(101), saved_s: 12.1, of_s: 14.6 };
    let short = Limit::Memory {
        available: eke_model::units::Bytes::mib(90),
        reserve: eke_model::units::Bytes::mib(100),
    };
    let no_room = ChoiceOutcome::NoRoom { of_bytes: mib(101), of_s: 14.6, budget_bytes: mib(20) };
    let ids = keep
        .add_decisions(&[
            decision(&gedit, 300, Occasion::Ahead, chosen),
            decision(
                &meld,
                200,
                Occasion::Session,
                ChoiceOutcome::SmallGain { cold_s: 0.02, took_s: Some(0.9), least_s: 0.09 },
            ),
            decision(
                &hostile,
                100,
                Occasion::Ahead,
                ChoiceOutcome::Improbable { probability: 0.011, least: 0.02 },
            ),
            decision(
                &Program::of_exe("/gone"),
                50,
                Occasion::Exec,
                ChoiceOutcome::NothingToRead { files: 7 },
            ),
            decision(&old, 40, Occasion::Ahead, no_room),
            Decision { limit: Some(short), ..decision(&old, 30, Occasion::Ahead, no_room) },
            decision(&gedit, 20, Occasion::Exec, ChoiceOutcome::AlreadyResident),
        ])
        .unwrap();
    keep.add_usage(ids[0], PageUsage { used_bytes: mib(85), wasted_bytes: mib(4) }).unwrap();
}

fn prefetch(store: &TempDir, args: &[&str]) -> Ran {
    eke(&[&["prefetch", "--store", store.path().to_str().unwrap()], args].concat())
}

/// Replaces the parts that differ from run to run.
fn shown(store: &TempDir, ran: &Ran) -> String {
    ran.shown().replace(store.path().to_str().unwrap(), "STORE")
}

#[test]
fn what_is_known_reads_well() {
    let store = store();
    insta::assert_snapshot!("list", shown(&store, &prefetch(&store, &["list"])));
    insta::assert_snapshot!("show", shown(&store, &prefetch(&store, &["show", "/usr/bin/gedit"])));
    insta::assert_snapshot!("show_script", shown(&store, &prefetch(&store, &["show", "meld", "--all"])));
    insta::assert_snapshot!("explain", shown(&store, &prefetch(&store, &["explain"])));
    insta::assert_snapshot!("explain_one", shown(&store, &prefetch(&store, &["explain", "meld"])));
    let missing = prefetch(&store, &["explain", "--missing", "meld"]);
    insta::assert_snapshot!("explain_missing", shown(&store, &missing));
    let nothing = prefetch(&store, &["explain", "--missing", "/usr/bin/gedit"]);
    insta::assert_snapshot!("explain_nothing_missing", shown(&store, &nothing));
    let trace = prefetch(&store, &["trace"]).stdout;
    let trace: Vec<&str> = trace.lines().filter(|line| !line.contains("icons")).collect();
    insta::assert_snapshot!("trace", trace.join("\n"));
    let all = prefetch(&store, &["show", "/usr/bin/gedit", "--all"]);
    assert!(all.stdout.contains("/usr/share/icons/39"), "{}", all.shown());
}

#[test]
fn a_program_that_is_not_clear_comes_with_candidates() {
    let store = store();
    insta::assert_snapshot!("ambiguous", shown(&store, &prefetch(&store, &["show", "gedit"])));
    insta::assert_snapshot!("near", shown(&store, &prefetch(&store, &["explain", "GEDI"])));
    insta::assert_snapshot!("unknown", shown(&store, &prefetch(&store, &["forget", "firefox"])));
}

#[test]
fn a_forgotten_program_is_gone_for_good() {
    let store = store();
    insta::assert_snapshot!("forget", shown(&store, &prefetch(&store, &["forget", "meld"])));
    let list = prefetch(&store, &["list", "--json"]).json();
    assert_eq!(list["programs"].as_array().unwrap().len(), 3);
    assert_eq!(prefetch(&store, &["forget", "meld"]).status, Some(1));
    let bytes = std::fs::read(store.path().join("prefetch.db")).unwrap();
    assert!(!bytes.windows(13).any(|w| w == b"/usr/bin/meld"));
}

#[test]
fn nothing_learned_yet_says_how_to_begin() {
    let dir = tempfile::tempdir().unwrap();
    insta::assert_snapshot!("nothing_list", shown(&dir, &prefetch(&dir, &["list"])));
    insta::assert_snapshot!("nothing_show", shown(&dir, &prefetch(&dir, &["show", "gedit"])));
    let list = prefetch(&dir, &["list", "--json"]).json();
    assert!(list["programs"].as_array().unwrap().is_empty() && list["bytes"].is_null());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "looking made something");
}

#[test]
fn a_broken_store_is_said_and_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "prefetch.db", "hello");
    insta::assert_snapshot!("broken", shown(&dir, &prefetch(&dir, &["list"])));
    assert_eq!(std::fs::read(dir.path().join("prefetch.db")).unwrap(), b"hello");
}

#[test]
fn it_is_for_root_alone() {
    if !is_root() {
        return skip("for_root_alone", "only root can become nobody");
    }
    let store = store();
    let public = Public::with_others();
    let at = store.path().to_str().unwrap();
    for verb in [&["list"][..], &["show", "gedit"], &["explain"], &["trace"], &["forget", "gedit"]] {
        let ran = public.as_nobody(&[&["prefetch", "--store", at], verb].concat());
        assert_eq!(ran.status, Some(4), "{}", ran.shown());
        assert!(ran.stdout.is_empty() && !ran.stderr.contains("/usr/bin/gedit"), "{}", ran.shown());
        assert!(ran.stderr.contains("only root may use") && ran.stderr.contains("sudo"), "{}", ran.shown());
    }
    // the store is not readable even if its directory is
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(store.path(), open).unwrap();
    assert_eq!(public.as_nobody(&["prefetch", "--store", at, "list"]).status, Some(4));
}

#[test]
fn json_has_the_documented_shape() {
    let store = store();
    let out = store.path().join("out.csv");
    for (name, args) in [
        ("prefetch-list", &["list"][..]),
        ("prefetch-show", &["show", "meld"]),
        ("prefetch-explain", &["explain"]),
        ("prefetch-boot", &["boot"]),
        ("prefetch-missing", &["explain", "--missing", "meld"]),
        ("prefetch-trace", &["trace", "--output", out.to_str().unwrap()]),
        ("prefetch-forget", &["forget", "meld"]),
    ] {
        let ran = prefetch(&store, &[args, &["--json"]].concat());
        assert_eq!(ran.status, Some(0), "{}", ran.shown());
        let schema = eke(&["schema", name]).json();
        for key in schema["required"].as_array().unwrap() {
            assert!(ran.json().get(key.as_str().unwrap()).is_some(), "{name} lacks {key}");
        }
    }
    let hostile = &prefetch(&store, &["list", "--json"]).json()["programs"][1]["script"];
    assert_eq!(hostile[8], 0x1b, "not UTF-8, so bytes: {hostile}");
}

#[test]
fn a_trace_is_replayed_also_with_hashed_names() {
    let store = store();
    let dir = tempfile::tempdir().unwrap();
    let trace = dir.path().join("mine.csv");
    let path = trace.to_str().unwrap();
    let written = prefetch(&store, &["trace", "--hash", "--output", path]);
    assert_eq!(written.status, Some(0), "{}", written.shown());
    let text = std::fs::read_to_string(&trace).unwrap();
    assert!(!text.contains("gedit") && !text.contains("/usr") && text.contains("start,"), "{text}");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&trace).unwrap()) & 0o777;
    assert_eq!(mode, 0o600);
    let again = prefetch(&store, &["trace", "--output", path]);
    assert!(again.status == Some(1) && again.stderr.contains("no file is replaced"), "{}", again.shown());
    build_bench();
    let replayed = eke(&["prefetch", "replay", path, "--budget", "1M"]);
    assert_eq!(replayed.status, Some(0), "{}", replayed.shown());
    assert!(replayed.stdout.contains("A budget of 1.0 MiB"), "{}", replayed.shown());
    let starts = eke(&["prefetch", "replay", path, "--json"]).json();
    let row = starts["rows"].as_array().unwrap().iter().find(|row| row["metric"] == "starts").cloned();
    assert_eq!(row.unwrap()["value"], 3.0);
}

#[test]
fn wrong_arguments_say_what_would_be_right() {
    let fails = |args: &[&str], status: i32, part: &str| {
        let ran = eke(&[&["prefetch"], args].concat());
        assert!(ran.status == Some(status) && ran.stderr.contains(part), "{part}: {}", ran.shown());
    };
    fails(&["trace", "--json"], 2, "--json needs --output");
    fails(&["explain", "--most", "0"], 2, "--most");
    fails(&["show"], 2, "PROGRAM");
    fails(&["explain", "--missing"], 2, "PROGRAM");
}

#[test]
fn every_verb_has_an_example() {
    build_bench();
    for verb in ["list", "show", "forget", "explain", "boot", "replay", "trace"] {
        let help = eke(&["prefetch", verb, "--help"]);
        assert!(help.status == Some(0) && help.stdout.contains("Example:"), "{}", help.shown());
        assert!(!help.stdout.contains("--store"), "{}", help.shown());
    }
}
