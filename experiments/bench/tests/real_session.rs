//! `eke lab session` with real viewers on a screen of its own, and a document that is made here.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use common::pdf::two_documents;
use eke_bench_desktop::desktop::{needs, viewers};
use eke_bench_desktop::session::{Act, Ballast, End, Event, Spec};
use eke_model::units::Bytes;
use eke_testkit::program::mounts;
use eke_testkit::real;
use eke_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};

const PAGES: u32 = 6;

/// Two documents.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(two_documents(PAGES))
    }

    fn spec(&self, viewer: &str, acts: &[Act]) -> Spec {
        Spec {
            screen: (800, 600),
            viewer: viewer.into(),
            documents: ["a.pdf", "b.pdf"].map(|name| self.0.path().join(name)).into(),
            ballast: Ballast { size: Bytes::mib(2), ratio: 3.0 },
            merge_same_pages: false,
            acts: acts.into(),
            patience_s: 30.0,
            expected: Vec::new(),
        }
    }
}

/// A driver that runs.
struct Driver {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Driver {
    fn start(spec: &Spec, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_eke-bench"));
        command.args(["lab", "session"]).args(arguments).arg(serde_json::to_string(spec).unwrap());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn next(&mut self) -> Option<Event> {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    /// The processes that it started.
    fn children(&self) -> Vec<(i32, String)> {
        let pid = self.child.id();
        let children =
            std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let pids = children.split_whitespace().map(|pid| pid.parse().unwrap());
        pids.map(|pid| (pid, std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()))
            .collect()
    }

    fn viewer(&self, viewer: &str) -> Pid {
        let of = |comm: &str| comm.starts_with(viewer);
        Pid::from_raw(self.children().into_iter().find(|(_, comm)| of(comm)).unwrap().0).unwrap()
    }

    /// All events from here on, and the exit status; nothing that it started is left.
    fn end(mut self) -> (Vec<Event>, Option<i32>) {
        let children = self.children();
        let events: Vec<Event> = std::iter::from_fn(|| self.next()).collect();
        let status = eke_testkit::program::end_of(&mut self.child).code();
        for (pid, comm) in children {
            assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{comm} is left");
        }
        (events, status)
    }

    fn until_opened(&mut self) {
        loop {
            match self.next().expect("it opens") {
                Event::Opened { .. } => return,
                Event::Ended(end) => panic!("it does not open: {end:?}"),
                _ => {}
            }
        }
    }
}

fn run(spec: &Spec, arguments: &[&str]) -> (Vec<Event>, Option<i32>) {
    let mut driver = Driver::start(spec, arguments);
    let ready = driver.next();
    assert!(matches!(ready, Some(Event::Ready { .. })), "{ready:?}");
    driver.end()
}

/// The viewers that are here, `None` with a word about why if there are none.
fn here(test: &str) -> Option<Vec<&'static str>> {
    let lacks = |name: &&str| {
        let programs = needs(name).unwrap().programs;
        programs
            .into_iter()
            .find(|p| !["/usr/bin", "/bin", "/"].iter().any(|d| Path::new(d).join(p).exists()))
    };
    let names: Vec<&str> = viewers().iter().map(|v| v.name).filter(|n| *n != "zathura").collect();
    let some: Vec<&str> = names.iter().copied().filter(|n| lacks(n).is_none()).collect();
    if some.is_empty() {
        let why =
            names.iter().find_map(lacks).map_or_else(String::new, |p| format!("no {p} on this machine"));
        assert!(std::env::var("EKE_TESTS").as_deref() != Ok("require"), "a required test cannot run: {why}");
        real::skip(test, &why);
        return None;
    }
    Some(some)
}

const OPEN: Act = Act::Open { document: 0 };

fn there_and_back() -> Vec<Act> {
    let browse = |back| Act::Browse { document: 0, pages: PAGES - 1, back };
    let switch = |document| Act::Switch { document };
    vec![
        OPEN,
        browse(false),
        browse(true),
        Act::Open { document: 1 },
        switch(0),
        switch(1),
        Act::Rest { ms: 10 },
    ]
}

/// What each page showed: forth, and back.
fn contents(events: &[Event]) -> (Vec<u64>, Vec<u64>) {
    let opened = |e: &Event| match e {
        Event::Opened { document: 0, content, .. } => Some(*content),
        _ => None,
    };
    let turned = |wanted: bool| {
        events.iter().filter_map(move |e| match e {
            Event::Page { back, content, .. } if *back == wanted => Some(*content),
            _ => None,
        })
    };
    let mut forth: Vec<u64> = events.iter().filter_map(opened).collect();
    forth.extend(turned(false));
    let mut back: Vec<u64> = turned(true).collect();
    back.reverse();
    (forth, back)
}

#[test]
fn pages_show_the_same_forth_and_back_and_in_another_session() {
    let Some(names) = here("pages_show_the_same_forth_and_back_and_in_another_session") else { return };
    let place = Place::new();
    for name in names {
        let mut spec = place.spec(name, &there_and_back());
        let (events, status) = run(&spec, &[]);
        assert_eq!((events.last(), status), (Some(&Event::Ended(End::Finished)), Some(0)), "{name}");
        let (forth, back) = contents(&events);
        let different: std::collections::BTreeSet<_> = forth.iter().collect();
        assert_eq!((forth.len(), different.len()), (PAGES as usize, PAGES as usize), "{name}");
        assert_eq!(forth[..PAGES as usize - 1], back, "{name}");
        assert_eq!(events.iter().filter(|e| matches!(e, Event::Switched { .. })).count(), 2);
        let held =
            events.iter().rev().find_map(|e| if let Event::Memory(held) = e { Some(*held) } else { None });
        let held = held.unwrap();
        assert!(
            held.documents == 2 && held.anonymous > Bytes::mib(1) && held.file > Bytes::mib(1),
            "{held:?}"
        );

        spec.expected = vec![forth];
        let (events, _) = run(&spec, &[]);
        let expected = |e: &Event| match e {
            Event::Page { as_expected, .. } => Some(*as_expected),
            _ => None,
        };
        let as_expected: Vec<_> = events.iter().filter_map(expected).collect();
        assert_eq!(as_expected, vec![Some(true); 2 * (PAGES as usize - 1)], "{name}: {events:?}");
    }
}

#[test]
fn a_killed_viewer_is_told() {
    let Some(names) = here("a_killed_viewer_is_told") else { return };
    let place = Place::new();
    let mut driver = Driver::start(&place.spec(names[0], &[OPEN, Act::Rest { ms: 60_000 }]), &[]);
    driver.until_opened();
    kill_process(driver.viewer(names[0]), Signal::KILL).unwrap();
    let (events, status) = driver.end();
    let end = End::Killed { what: "viewer of document 1".into(), signal: Some(9) };
    assert_eq!((events.last(), status), (Some(&Event::Ended(end)), Some(0)));
}

#[test]
fn a_window_that_is_not_drawn_ends_the_sessions_patience() {
    let Some(names) = here("a_window_that_is_not_drawn_ends_the_sessions_patience") else { return };
    let place = Place::new();
    let browse = Act::Browse { document: 0, pages: 1, back: false };
    let mut spec = place.spec(names[0], &[OPEN, Act::Rest { ms: 1000 }, browse]);
    spec.patience_s = 3.0;
    let mut driver = Driver::start(&spec, &[]);
    driver.until_opened();
    kill_process(driver.viewer(names[0]), Signal::STOP).unwrap();
    let (events, status) = driver.end();
    let end = End::TooSlow { what: "page 1 of document 1".into() };
    assert_eq!((events.last(), status), (Some(&Event::Ended(end)), Some(0)));
}

#[test]
fn a_session_that_is_told_to_end_or_dies_leaves_nothing() {
    let Some(names) = here("a_session_that_is_told_to_end_or_dies_leaves_nothing") else { return };
    let place = Place::new();
    for signal in [Signal::TERM, Signal::KILL] {
        let mut driver = Driver::start(&place.spec(names[0], &[OPEN, Act::Rest { ms: 60_000 }]), &[]);
        driver.until_opened();
        let children = driver.children();
        assert!(children.len() >= 4, "{children:?}");
        kill_process(Pid::from_child(&driver.child), signal).unwrap();
        eke_testkit::program::end_of(&mut driver.child);
        let left = || children.iter().any(|(pid, _)| Path::new(&format!("/proc/{pid}")).exists());
        wait_for("its processes to end", || !left());
        // The next session would remove it.
        let home = format!("eke-session-{}-", driver.child.id());
        for entry in std::fs::read_dir(std::env::temp_dir()).unwrap().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&home) {
                assert_eq!(signal, Signal::KILL, "the home directory is left");
                std::fs::remove_dir_all(entry.path()).unwrap();
            }
        }
    }
}

#[test]
fn a_session_in_a_tree_of_its_own_mounts_nothing_outside() {
    let test = "a_session_in_a_tree_of_its_own_mounts_nothing_outside";
    let Some(names) = here(test) else { return };
    if let Some(why) = real::lacking(&[]) {
        return real::skip(test, &why);
    }
    let _machine = real::lock_machine();
    let (place, before) = (Place::new(), mounts());
    let (events, status) = run(&place.spec(names[0], &[OPEN]), &["--chroot", "/"]);
    assert_eq!((events.last(), status), (Some(&Event::Ended(End::Finished)), Some(0)));
    assert_eq!(mounts(), before);
}

#[test]
fn what_cannot_be_held_is_said() {
    let Some(names) = here("what_cannot_be_held_is_said") else { return };
    let place = Place::new();
    let message = |spec: &Spec, arguments: &[&str]| {
        let (events, status) = Driver::start(spec, arguments).end();
        assert_eq!(status, Some(1));
        match events.last() {
            Some(Event::Ended(End::Failed { why })) => why.clone(),
            other => format!("{other:?}"),
        }
    };
    assert_eq!(
        message(&place.spec("kpdf", &[]), &[]),
        "no viewer is called kpdf; there are xpdf, mupdf, zathura"
    );
    let mut missing = place.spec(names[0], &[OPEN]);
    missing.documents = vec!["/nowhere/a.pdf".into()];
    assert_eq!(message(&missing, &[]), "there is no document /nowhere/a.pdf");
    let before = place.spec(names[0], &[OPEN, Act::Browse { document: 0, pages: 1, back: true }]);
    assert_eq!(message(&before, &[]), "document 1 has no page before its first");
    let elsewhere = Driver::start(&before, &["--chroot", "/nowhere"]).end();
    assert_eq!(elsewhere, (vec![], Some(1)));
}
