//! Headless Chromium with pages of the local server: tabs are opened and visited, kills are reported, nothing is left over.

#![expect(clippy::unwrap_used, reason = "test code")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use eke_bench_desktop::session::{End, Event};
use eke_bench_desktop::tabs::{self, Server, Spec, documents, memory};
use eke_linux::Root;
use eke_testkit::real;
use rustix::process::{Pid, Signal, kill_process};

const BROWSERS: [&str; 2] = ["/usr/lib/chromium/chromium", "/usr/bin/chromium"];

/// The browser. Without one, reports why the test is skipped. One test at a time: each ends all descendants of this process.
fn browser(test: &str) -> Option<(PathBuf, real::MachineLock)> {
    let installed = BROWSERS.iter().find(|b| Path::new(b).exists());
    if let Some(why) = real::lacking(&[installed.unwrap_or(&BROWSERS[0])]) {
        real::skip(test, &why);
        return None;
    }
    Some((PathBuf::from(installed?), real::lock_machine()))
}

struct Outcome {
    events: Vec<Event>,
    end: End,
    leftovers: Vec<PathBuf>,
}

/// Runs three tabs. Calls `act` with each event; it may kill processes.
fn run(program: &Path, stop: &AtomicBool, act: &mut dyn FnMut(&Event)) -> Outcome {
    let root = Root::host();
    let parent = tempfile::tempdir().unwrap();
    let pages = documents::gather(&[], 3, 40_000).pages;
    let server = Server::start(pages, Arc::default()).unwrap();
    let spec = Spec { tabs: 3, screens: 2, patience_s: 15.0, ..Spec::new(program.to_owned(), server.port()) };
    let mut events = Vec::new();
    let end = tabs::run(&root, &spec, parent.path(), stop, &mut |event| {
        act(&event);
        events.push(event);
    });
    assert_eq!(memory::descendants(&root, std::process::id()), Vec::<u32>::new(), "processes stayed");
    let leftovers = std::fs::read_dir(parent.path()).unwrap().map(|e| e.unwrap().path()).collect();
    Outcome { events, end, leftovers }
}

fn renderers() -> Vec<u32> {
    let descendants = memory::descendants(&Root::host(), std::process::id());
    let is_renderer = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|text| String::from_utf8_lossy(&text).contains("--type=renderer"))
    };
    descendants.into_iter().filter(is_renderer).collect()
}

fn kill(pids: &[u32]) {
    for pid in pids {
        let _ = kill_process(Pid::from_raw(*pid as i32).unwrap(), Signal::KILL);
    }
}

#[test]
fn three_tabs_are_usable_and_drawn_each_in_its_own_process() {
    let Some((program, _lock)) = browser("three_tabs_are_usable_and_drawn_each_in_its_own_process") else {
        return;
    };
    let mut processes = Vec::new();
    let outcome = run(&program, &AtomicBool::new(false), &mut |event| {
        if matches!(event, Event::Memory(_)) {
            processes.push(renderers().len());
        }
    });
    assert_eq!((&outcome.end, tabs::usable(&outcome.events)), (&End::Finished, 3), "{:?}", outcome.events);
    assert!(processes.windows(2).all(|w| w[1] > w[0]), "{processes:?}");
    assert_eq!(outcome.leftovers, Vec::<PathBuf>::new());
    let drawn =
        outcome.events.iter().filter(|e| matches!(e, Event::Page { as_expected: Some(true), .. })).count();
    let visits = outcome.events.iter().filter(|e| matches!(e, Event::Switched { .. })).count();
    assert_eq!((drawn, visits), (3 * 2, 1 + 2));
    let memory: Vec<_> =
        outcome.events.iter().filter_map(|e| if let Event::Memory(m) = e { Some(m) } else { None }).collect();
    let used = |n: usize| memory[n].anonymous + memory[n].swapped;
    assert!(used(2) > used(0), "{memory:?}");
}

#[test]
fn killed_renderers_are_reported_and_their_tab_does_not_count() {
    let Some((program, _lock)) = browser("killed_renderers_are_reported_and_their_tab_does_not_count") else {
        return;
    };
    let outcome = run(&program, &AtomicBool::new(false), &mut |event| {
        if matches!(event, Event::Opened { document: 1, .. }) {
            kill(&renderers());
        }
    });
    let End::Killed { what, signal } = &outcome.end else { panic!("{:?}", outcome.end) };
    assert!(what.starts_with("tab "), "{what}");
    assert_eq!((*signal, tabs::usable(&outcome.events)), (Some(9), 1));
    assert_eq!(outcome.leftovers, Vec::<PathBuf>::new());
}

#[test]
fn a_killed_browser_is_reported() {
    let Some((program, _lock)) = browser("a_killed_browser_is_reported") else { return };
    let outcome = run(&program, &AtomicBool::new(false), &mut |event| {
        if matches!(event, Event::Opened { document: 0, .. }) {
            kill(&memory::descendants(&Root::host(), std::process::id()));
        }
    });
    assert!(
        matches!(&outcome.end, End::Killed { what, signal: Some(9) } if what.starts_with("browser")),
        "{:?}",
        outcome.end
    );
    assert_eq!(outcome.leftovers, Vec::<PathBuf>::new());
}

#[test]
fn when_stopped_it_ends_and_nothing_is_left_over() {
    let Some((program, _lock)) = browser("when_stopped_it_ends_and_nothing_is_left_over") else { return };
    let stop = AtomicBool::new(false);
    let outcome = run(&program, &stop, &mut |event| {
        if matches!(event, Event::Opened { document: 0, .. }) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    assert_eq!(outcome.end, End::Failed { why: "interrupted".into() });
    assert_eq!((outcome.leftovers, tabs::usable(&outcome.events)), (Vec::new(), 0));
}

#[test]
fn a_missing_page_and_a_missing_browser_are_reported() {
    let root = Root::host();
    let parent = tempfile::tempdir().unwrap();
    let spec = Spec::new("/nonexistent/browser".into(), 1);
    let end = tabs::run(&root, &spec, parent.path(), &AtomicBool::new(false), &mut |_| {});
    assert!(matches!(&end, End::Failed { why } if why.contains("/nonexistent/browser")), "{end:?}");
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    let Some((program, _lock)) = browser("a_missing_page_and_a_missing_browser_are_reported") else { return };
    // Port 1 has no server.
    let end = tabs::run(&root, &Spec::new(program, 1), parent.path(), &AtomicBool::new(false), &mut |_| {});
    assert!(matches!(&end, End::Failed { why } if why.contains("page of tab 0")), "{end:?}");
}
