//! Tracing without BPF on the running kernel: from the kernel's process events, from opened programs, and by polling `/proc`.
#![expect(clippy::expect_used, reason = "test code")]

mod tracing;

use std::path::PathBuf;

use eke_linux::Root;
use eke_prefetch_model::learn::Exec;
use eke_prefetchd::trace::{Observation, TraceMethod, Tracer};
use eke_testkit::real::{SameDisks, skip};
use tracing::{Disk, Session, touched};

/// The machine's disks, to compare at the end. `None`, with the reason printed, if this machine cannot run the test.
fn start(test: &str, method: TraceMethod) -> Option<SameDisks> {
    let why = tracing::lacking()
        .or_else(|| Tracer::start_by(&Root::host(), method).err().map(|why| why.to_string()));
    if let Some(why) = why {
        skip(test, &why);
        return None;
    }
    Some(SameDisks::start())
}

/// Not a test: the process that `tracing::mapper` starts.
#[test]
fn maps_on_request() {
    tracing::map_on_request();
}

/// Mapped pages of a child are found, with the pages around the touched ones, and no others.
fn finds_mapped_pages(method: TraceMethod) {
    let disk = Disk::new();
    let mut session = Session::new(method, &disk);
    let launch = session.launch(&tracing::mapper(&disk, "data", "3,200", 4000));
    let data = touched(&launch, &disk.path("data")).expect("the mapped file");
    assert!(data.pages.has(3) && data.pages.has(200) && !data.pages.has(100), "{data:?}");
    assert!(data.pages.count() <= 32, "{data:?}");
    assert_eq!(data.stamp.size, 256 * 4096);
    assert_eq!(launch.program.exe, disk.path("start"));
    assert!(touched(&launch, &disk.path("start")).is_some(), "the program itself");
}

#[test]
fn process_events_find_mapped_pages() {
    let Some(_machine) = start("process_events_find_mapped_pages", TraceMethod::Connector) else { return };
    finds_mapped_pages(TraceMethod::Connector);
}

#[test]
fn opened_programs_find_mapped_pages() {
    let Some(_machine) = start("opened_programs_find_mapped_pages", TraceMethod::ExecOpens) else { return };
    finds_mapped_pages(TraceMethod::ExecOpens);
}

#[test]
fn polls_find_mapped_pages() {
    let Some(_machine) = start("polls_find_mapped_pages", TraceMethod::Scan) else { return };
    finds_mapped_pages(TraceMethod::Scan);
}

/// A child of a wrapper is a start of its own, and the wrapper's launch has none of its pages.
fn tells_wrapper_and_program_apart(method: TraceMethod) {
    let disk = Disk::new();
    let mut session = Session::new(method, &disk);
    let script = tracing::mapper(&disk, "data", "3,200", 4000);
    let mut child = tracing::shell(&disk.place(), &format!("{script}; true"));
    let (pid, data) = (child.id(), disk.path("data"));
    let of = |session: &mut Session, what: &str, is_it: &dyn Fn(&Exec) -> bool| {
        session.until(what, |observation| match observation {
            Observation::Exec(exec, Some(id)) if is_it(exec) => Some(*id),
            _ => None,
        })
    };
    let wrapper = of(&mut session, "the wrapper's exec", &|exec| exec.pid == pid);
    std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), b"go\n").expect("it reads");
    let program = of(&mut session, "the program's exec", &|exec| exec.parent == pid);
    let program = session.launch_of("the program's launch", program);
    let wrapper = session.launch_of("the wrapper's launch", wrapper);
    assert!(child.wait().is_ok());
    assert_eq!(Some(program.program.exe.as_path()), std::env::current_exe().ok().as_deref());
    assert!(touched(&program, &data).is_some_and(|data| data.pages.has(3)), "{program:?}");
    assert!(touched(&wrapper, &data).is_none(), "{wrapper:?}");
    assert!(touched(&wrapper, &disk.path("start")).is_some(), "{wrapper:?}");
}

#[test]
fn process_events_tell_wrapper_and_program_apart() {
    let test = "process_events_tell_wrapper_and_program_apart";
    let Some(_machine) = start(test, TraceMethod::Connector) else { return };
    tells_wrapper_and_program_apart(TraceMethod::Connector);
}

#[test]
fn opened_programs_tell_wrapper_and_program_apart() {
    let test = "opened_programs_tell_wrapper_and_program_apart";
    let Some(_machine) = start(test, TraceMethod::ExecOpens) else { return };
    tells_wrapper_and_program_apart(TraceMethod::ExecOpens);
}

#[test]
fn polls_tell_wrapper_and_program_apart() {
    let Some(_machine) = start("polls_tell_wrapper_and_program_apart", TraceMethod::Scan) else { return };
    tells_wrapper_and_program_apart(TraceMethod::Scan);
}

#[test]
fn of_a_huge_file_the_beginning_is_traced() {
    let Some(_machine) = start("of_a_huge_file_the_beginning_is_traced", TraceMethod::Scan) else {
        return;
    };
    let disk = Disk::new();
    let huge = disk.huge();
    let mut session = Session::new(TraceMethod::Scan, &disk);
    let launch = session.launch(&tracing::mapper(&disk, "huge", "0,13000000", 4000));
    let found = &touched(&launch, &huge).expect("the huge file").pages;
    assert!(found.has(0) && found.count() <= 16, "{found:?}");
}

/// A start is reported with its program at once, and its end.
fn reports_a_start(test: &str, method: TraceMethod) {
    let Some(_machine) = start(test, method) else { return };
    let disk = Disk::new();
    let mut session = Session::new(method, &disk);
    let mut child = tracing::shell(&disk.place(), "exit 0");
    let pid = child.id();
    let exe = session.until("the exec", |observation| match observation {
        Observation::Exec(exec, _) if exec.pid == pid => {
            exec.program.as_ref().map(|program| program.exe.clone())
        }
        _ => None,
    });
    assert_eq!(exe, disk.path("start"));
    drop(child.stdin.take());
    assert!(child.wait().is_ok());
    session.until("the end", |observation| {
        matches!(observation, Observation::Exit { pid: ended, .. } if *ended == pid).then_some(())
    });
}

#[test]
fn process_events_report_short_programs() {
    reports_a_start("process_events_report_short_programs", TraceMethod::Connector);
}

#[test]
fn opened_programs_report_starts_and_ends() {
    reports_a_start("opened_programs_report_starts_and_ends", TraceMethod::ExecOpens);
}

#[test]
fn there_is_always_a_method_and_a_reason_for_it() {
    let nothing = tempfile::tempdir().unwrap();
    let tracer = Tracer::start(&Root::at(nothing.path()));
    let source = tracer.source();
    assert_eq!(source.method, TraceMethod::Scan);
    let tried: Vec<TraceMethod> = source.why_not_better.iter().map(|(method, _)| *method).collect();
    assert_eq!(tried, [TraceMethod::Bpf, TraceMethod::Connector, TraceMethod::ExecOpens]);
    assert!(source.why_not_better.iter().all(|(_, why)| !why.is_empty()));
    let shown = source.to_string();
    assert!(
        shown.starts_with("polls of /proc; not BPF: ") && !PathBuf::from(&shown).is_absolute(),
        "{shown}"
    );
}
