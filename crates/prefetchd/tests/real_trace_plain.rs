//! Tracing without BPF on the running kernel: by the kernel's process events, and by looks at `/proc`.
#![expect(clippy::expect_used, reason = "test code")]

mod tracing;

use std::path::PathBuf;

use eke_linux::Root;
use eke_prefetchd::trace::{News, Tracer, Way};
use eke_testkit::real::{SameDisks, skip};
use tracing::{Disk, Session, touched};

/// What the machine must look like again at the end, and why the test cannot run.
fn start(test: &str, way: Way) -> Option<SameDisks> {
    let why =
        tracing::lacking().or_else(|| Tracer::start_by(&Root::host(), way).err().map(|why| why.to_string()));
    if let Some(why) = why {
        skip(test, &why);
        return None;
    }
    Some(SameDisks::start())
}

/// Not a test: the process that `tracing::mapper` starts.
#[test]
fn maps_when_told_to() {
    tracing::map_when_told_to();
}

/// What is mapped is found in a child, with the pages around those that were touched, and nothing of the rest.
fn finds_what_is_mapped(way: Way) {
    let disk = Disk::new();
    let mut session = Session::new(way, &disk);
    let launch = session.launch(&tracing::mapper(&disk, "data", "3,200", 4000));
    let data = touched(&launch, &disk.path("data")).expect("the mapped file");
    assert!(data.pages.has(3) && data.pages.has(200) && !data.pages.has(100), "{data:?}");
    assert!(data.pages.count() <= 32, "{data:?}");
    assert_eq!(data.stamp.size, 256 * 4096);
    assert_eq!(launch.program.exe, disk.path("start"));
    assert!(touched(&launch, &disk.path("start")).is_some(), "the program itself");
}

#[test]
fn process_events_find_what_is_mapped() {
    let Some(_machine) = start("process_events_find_what_is_mapped", Way::Connector) else { return };
    finds_what_is_mapped(Way::Connector);
}

#[test]
fn looks_find_what_is_mapped() {
    let Some(_machine) = start("looks_find_what_is_mapped", Way::Scan) else { return };
    finds_what_is_mapped(Way::Scan);
}

#[test]
fn of_a_huge_file_the_beginning_is_looked_at() {
    let Some(_machine) = start("of_a_huge_file_the_beginning_is_looked_at", Way::Scan) else { return };
    let disk = Disk::new();
    let huge = disk.huge();
    let mut session = Session::new(Way::Scan, &disk);
    let launch = session.launch(&tracing::mapper(&disk, "huge", "0,13000000", 4000));
    let found = &touched(&launch, &huge).expect("the huge file").pages;
    assert!(found.has(0) && found.count() <= 16, "{found:?}");
}

#[test]
fn process_events_tell_of_short_programs() {
    let Some(_machine) = start("process_events_tell_of_short_programs", Way::Connector) else { return };
    let disk = Disk::new();
    let mut session = Session::new(Way::Connector, &disk);
    let mut child = tracing::shell(&disk.place(), "exit 0");
    let pid = child.id();
    let exe = session.until("the exec", |news| match news {
        News::Exec(exec, _) if exec.pid == pid => exec.program.as_ref().map(|program| program.exe.clone()),
        _ => None,
    });
    assert_eq!(exe, disk.path("start"));
    drop(child.stdin.take());
    assert!(child.wait().is_ok());
    session.until("the end", |news| {
        matches!(news, News::Exit { pid: ended, .. } if *ended == pid).then_some(())
    });
}

#[test]
fn there_is_always_a_way_and_a_reason_for_it() {
    let nothing = tempfile::tempdir().unwrap();
    let tracer = Tracer::start(&Root::at(nothing.path()));
    let source = tracer.source();
    assert_eq!(source.way, Way::Scan);
    let tried: Vec<Way> = source.why_not_better.iter().map(|(way, _)| *way).collect();
    assert_eq!(tried, [Way::Bpf, Way::Connector]);
    assert!(source.why_not_better.iter().all(|(_, why)| !why.is_empty()));
    let shown = source.to_string();
    assert!(
        shown.starts_with("looks at /proc; not BPF: ") && !PathBuf::from(&shown).is_absolute(),
        "{shown}"
    );
}
