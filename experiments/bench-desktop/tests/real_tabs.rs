//! Headless Chromium with pages of the local server: tabs are opened and visited, what is killed is reported, nothing stays.

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

/// The browser, or says why the test is skipped. One test at a time: each ends all processes below this one.
fn browser(test: &str) -> Option<(PathBuf, real::MachineLock)> {
    let there = BROWSERS.iter().find(|b| Path::new(b).exists());
    if let Some(why) = real::lacking(&[there.unwrap_or(&BROWSERS[0])]) {
        real::skip(test, &why);
        return None;
    }
    Some((PathBuf::from(there?), real::lock_machine()))
}

struct Seen {
    events: Vec<Event>,
    end: End,
    left: Vec<PathBuf>,
}

/// Holds the experiment with three tabs; `act` is called with each event and may kill.
fn hold(program: &Path, stop: &AtomicBool, act: &mut dyn FnMut(&Event)) -> Seen {
    let root = Root::host();
    let above = tempfile::tempdir().unwrap();
    let pages = documents::gather(&[], 3, 40_000).pages;
    let server = Server::start(pages, Arc::default()).unwrap();
    let spec = Spec { tabs: 3, screens: 2, patience_s: 15.0, ..Spec::new(program.to_owned(), server.port()) };
    let mut events = Vec::new();
    let end = tabs::run(&root, &spec, above.path(), stop, &mut |event| {
        act(&event);
        events.push(event);
    });
    assert_eq!(memory::below(&root, std::process::id()), Vec::<u32>::new(), "processes stayed");
    let left = std::fs::read_dir(above.path()).unwrap().map(|e| e.unwrap().path()).collect();
    Seen { events, end, left }
}

fn renderers() -> Vec<u32> {
    let below = memory::below(&Root::host(), std::process::id());
    let is_renderer = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|text| String::from_utf8_lossy(&text).contains("--type=renderer"))
    };
    below.into_iter().filter(is_renderer).collect()
}

fn kill(pids: &[u32]) {
    for pid in pids {
        let _ = kill_process(Pid::from_raw(*pid as i32).unwrap(), Signal::KILL);
    }
}

#[test]
fn three_tabs_are_held_each_in_its_own_process_and_drawn() {
    let Some((program, _lock)) = browser("three_tabs_are_held_each_in_its_own_process_and_drawn") else {
        return;
    };
    let mut processes = Vec::new();
    let seen = hold(&program, &AtomicBool::new(false), &mut |event| {
        if matches!(event, Event::Held(_)) {
            processes.push(renderers().len());
        }
    });
    assert_eq!((&seen.end, tabs::held(&seen.events)), (&End::Finished, 3), "{:?}", seen.events);
    assert!(processes.windows(2).all(|w| w[1] > w[0]), "{processes:?}");
    assert_eq!(seen.left, Vec::<PathBuf>::new());
    let drawn =
        seen.events.iter().filter(|e| matches!(e, Event::Page { as_expected: Some(true), .. })).count();
    let visits = seen.events.iter().filter(|e| matches!(e, Event::Switched { .. })).count();
    assert_eq!((drawn, visits), (3 * 2, 1 + 2));
    let held: Vec<_> =
        seen.events.iter().filter_map(|e| if let Event::Held(h) = e { Some(h) } else { None }).collect();
    assert!(held[2].anonymous + held[2].swapped > held[0].anonymous + held[0].swapped, "{held:?}");
}

#[test]
fn killed_renderers_are_reported_and_their_tab_does_not_count() {
    let Some((program, _lock)) = browser("killed_renderers_are_reported_and_their_tab_does_not_count") else {
        return;
    };
    let seen = hold(&program, &AtomicBool::new(false), &mut |event| {
        if matches!(event, Event::Opened { document: 1, .. }) {
            kill(&renderers());
        }
    });
    let End::Killed { what, signal } = &seen.end else { panic!("{:?}", seen.end) };
    assert!(what.starts_with("tab "), "{what}");
    assert_eq!((*signal, tabs::held(&seen.events)), (Some(9), 1));
    assert_eq!(seen.left, Vec::<PathBuf>::new());
}

#[test]
fn a_killed_browser_is_reported() {
    let Some((program, _lock)) = browser("a_killed_browser_is_reported") else { return };
    let seen = hold(&program, &AtomicBool::new(false), &mut |event| {
        if matches!(event, Event::Opened { document: 0, .. }) {
            kill(&memory::below(&Root::host(), std::process::id()));
        }
    });
    assert!(
        matches!(&seen.end, End::Killed { what, signal: Some(9) } if what.starts_with("browser")),
        "{:?}",
        seen.end
    );
    assert_eq!(seen.left, Vec::<PathBuf>::new());
}

#[test]
fn told_to_stop_it_stops_and_nothing_stays() {
    let Some((program, _lock)) = browser("told_to_stop_it_stops_and_nothing_stays") else { return };
    let stop = AtomicBool::new(false);
    let seen = hold(&program, &stop, &mut |event| {
        if matches!(event, Event::Opened { document: 0, .. }) {
            stop.store(true, Ordering::Relaxed);
        }
    });
    assert_eq!(seen.end, End::Failed { why: "interrupted".into() });
    assert_eq!((seen.left, tabs::held(&seen.events)), (Vec::new(), 0));
}

#[test]
fn a_page_that_is_not_there_and_a_browser_that_is_not_there_say_so() {
    let root = Root::host();
    let above = tempfile::tempdir().unwrap();
    let spec = Spec::new("/nonexistent/browser".into(), 1);
    let end = tabs::run(&root, &spec, above.path(), &AtomicBool::new(false), &mut |_| {});
    assert!(matches!(&end, End::Failed { why } if why.contains("/nonexistent/browser")), "{end:?}");
    assert_eq!(std::fs::read_dir(above.path()).unwrap().count(), 0);
    let Some((program, _lock)) = browser("a_page_that_is_not_there") else { return };
    // Port 1 has no server.
    let end = tabs::run(&root, &Spec::new(program, 1), above.path(), &AtomicBool::new(false), &mut |_| {});
    assert!(matches!(&end, End::Failed { why } if why.contains("page of tab 0")), "{end:?}");
}
