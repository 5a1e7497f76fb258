//! Recorded sequences of events of wrappers, and random ones against a model of processes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::file_set::{Kind, Stamp};
use crate::pages::Span;
use crate::program::{Program, ProgramId};

fn at(ms: u64) -> Now {
    Now { mono: Duration::from_millis(ms), real_ns: 0 }
}

fn program(text: &str) -> Program {
    let (exe, script) = text.split_once(' ').map_or((text, None), |(exe, script)| (exe, Some(script)));
    Program { exe: exe.into(), script: script.map(Into::into) }
}

/// A learner with a tracer that lags behind, as text: each line is an event.
struct Story {
    learner: Learner,
    /// The launch that the tracer knows each process by.
    marks: BTreeMap<u32, LaunchId>,
}

impl Story {
    fn new(settings: Settings) -> Self {
        Self { learner: Learner::new(settings), marks: BTreeMap::new() }
    }

    /// `PID exec PROGRAM`, `PID fork PID`, `PID touches FILE PAGE`, `PID exits`. An exec's mark is of the launch that the process was in, until the
    /// process's next `is marked`.
    fn run(&mut self, lines: &str) -> &mut Self {
        lines.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|line| self.line(line));
        self
    }

    fn line(&mut self, line: &str) {
        let (pid, rest) = line.split_once(' ').unwrap();
        let (verb, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let pid: u32 = pid.parse().unwrap();
        match verb {
            "exec" => _ = self.exec(pid, rest),
            "fork" => self.fork(pid, rest.parse().unwrap()),
            "touches" => {
                let (file, page) = rest.split_once(' ').unwrap();
                self.touch(pid, file, page.parse().unwrap());
            }
            "exits" => self.exit(pid),
            other => panic!("no verb {other}"),
        }
    }

    /// The tracer learns of the decision at once if a launch begins; the pages before are known by the earlier mark.
    fn exec(&mut self, pid: u32, name: &str) -> Option<LaunchId> {
        let launch = self.marks.get(&pid).copied();
        let exec = Exec {
            pid,
            parent: 1,
            uid: 1000,
            group: 1,
            session: None,
            ino: None,
            at: Duration::ZERO,
            launch,
            program: Some(program(name)),
        };
        self.learner.begin(&exec, ProgramState::default(), at(1))
    }

    fn fork(&mut self, parent: u32, pid: u32) {
        if let Some(launch) = self.marks.get(&parent).copied() {
            self.marks.insert(pid, launch);
            self.learner.add(&TraceEvent::Fork { pid, parent, launch }, at(1));
        }
    }

    fn touch(&mut self, pid: u32, file: &str, page: u64) {
        let Some(launch) = self.marks.get(&pid).copied() else { return };
        let inode = Inode { dev: 1, ino: ProgramId::of_name(file.as_bytes()).0, generation: 0 };
        let found = TracedFile { path: file.into(), kind: Kind::File, stamp: Stamp::default(), owner: 0 };
        self.learner.add(&TraceEvent::File { launch, pid, inode, found: Some(found) }, at(1));
        let span = Span { first: page, end: page + 1 };
        self.learner.add(&TraceEvent::Pages { launch, pid, inode, span, how: PageUse::Fault }, at(1));
    }

    fn exit(&mut self, pid: u32) {
        let launch = self.marks.remove(&pid);
        self.learner.add(&TraceEvent::Exit { pid, at: Duration::ZERO, launch }, at(1));
    }

    /// The launches as text: the program, its files with their pages, what it started, and whether it became that.
    fn learned(&mut self) -> Vec<String> {
        let over = self.learner.over(at(1_000_000));
        let mut shown: Vec<String> = over.iter().map(shown).collect();
        shown.sort();
        shown
    }
}

fn shown(finished: &Finished) -> String {
    let mut files: Vec<String> = finished
        .launch
        .set
        .files
        .iter()
        .map(|file| {
            let pages = file.pages.spans().iter().flat_map(|span| span.first..span.end);
            format!("{} {:?}", file.path.display(), pages.collect::<Vec<_>>())
        })
        .collect();
    files.sort();
    let how = if finished.became { " became" } else { "" };
    format!("{}: {}; starts {}{how}", finished.launch.program, files.join(", "), finished.started.len())
}

/// A story whose processes' marks always follow.
fn followed(lines: &str) -> Vec<String> {
    let mut story =
        Story::new(Settings { at_once: 99, burst: 99.0, burst_within: 99.0, ..Settings::default() });
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        if words[1] != "exec" {
            story.line(line);
            continue;
        }
        let pid = words[0].parse().unwrap();
        let was = story.marks.get(&pid).copied();
        match story.exec(pid, words[2]) {
            Some(begun) => _ = story.marks.insert(pid, begun),
            None if was.is_some_and(|was| {
                story.learner.lineage(&Exec {
                    pid,
                    parent: 1,
                    uid: 0,
                    group: 0,
                    session: None,
                    ino: None,
                    at: Duration::ZERO,
                    launch: Some(was),
                    program: Some(program(words[2])),
                }) == Lineage::Part(was)
            }) => {}
            None => _ = story.marks.remove(&pid),
        }
    }
    story.learned()
}

#[test]
fn a_chain_of_execs_is_one_start_of_the_last_program() {
    let lines = "
        9 exec /usr/bin/env
        9 touches /lib/libc 1
        9 touches /usr/bin/gedit 0
        9 exec /usr/bin/gedit
        9 touches /usr/bin/gedit 0
        9 touches /lib/libc 1
        9 touches /lib/gtk 5
        9 exits";
    let expected = [
        "/usr/bin/env: /lib/libc [1]; starts 1 became",
        "/usr/bin/gedit: /lib/gtk [5], /lib/libc [1], /usr/bin/gedit [0]; starts 0",
    ];
    assert_eq!(followed(lines), expected);
}

#[test]
fn a_child_is_a_start_of_its_own_and_the_wrapper_keeps_its_few_files() {
    let lines = "
        9 exec /usr/bin/dash /usr/bin/wrapper
        9 touches /usr/bin/wrapper 0
        9 fork 10
        10 touches /lib/libc 1
        10 exec /usr/lib/real
        10 touches /lib/libc 1
        10 touches /usr/lib/data 7
        10 fork 11
        11 touches /usr/lib/data 8
        11 exec /usr/lib/real
        11 touches /usr/lib/data 9
        9 touches /lib/libc 2
        9 touches /usr/lib/data 7";
    let expected = [
        "/usr/bin/dash /usr/bin/wrapper: /lib/libc [1, 2], /usr/bin/wrapper [0], /usr/lib/data [7]; starts 1",
        "/usr/lib/real: /lib/libc [1], /usr/lib/data [7, 8, 9]; starts 0",
    ];
    assert_eq!(followed(lines), expected);
}

#[test]
fn a_wrapper_in_a_wrapper_hands_over_in_turn() {
    let lines = "
        9 exec /usr/bin/sudo
        9 touches /lib/pam 1
        9 fork 10
        10 exec /usr/bin/timeout
        10 touches /bin/timeout 1
        10 fork 11
        11 exec /usr/bin/nice
        11 exec /opt/program
        11 touches /opt/program 3
        11 exits
        10 exits
        9 exits";
    let expected = [
        "/opt/program: /opt/program [3]; starts 0",
        "/usr/bin/nice: ; starts 1 became",
        "/usr/bin/sudo: /lib/pam [1]; starts 1",
        "/usr/bin/timeout: /bin/timeout [1]; starts 1",
    ];
    assert_eq!(followed(lines), expected);
}

#[test]
fn what_is_not_recorded_is_nobodys() {
    let one = Settings { burst: 1.0, burst_within: 0.0, begins_within_per_s: 0.0, ..Settings::default() };
    let mut story = Story::new(one);
    let shell = story.exec(9, "/usr/bin/sh").unwrap();
    story.marks.insert(9, shell);
    // The tracer still knows it by the launch of the shell, and so its child.
    story.run(
        "9 fork 10
        10 exec /usr/bin/make
        10 touches /usr/bin/make 1
        10 fork 11
        11 touches /usr/bin/make 2
        11 exec /usr/bin/cc
        11 touches /usr/bin/cc 3
        9 touches /usr/bin/sh 1",
    );
    assert_eq!(story.learned(), ["/usr/bin/sh: /usr/bin/sh [1]; starts 1"]);
}

#[test]
fn a_thousand_children_cost_the_launch_nothing() {
    let mut story = Story::new(Settings::default());
    let make = story.exec(9, "/usr/bin/make").unwrap();
    story.marks.insert(9, make);
    for pid in 10..1010 {
        story.fork(9, pid);
        story.exec(pid, "/usr/bin/cc");
        story.touch(pid, "/usr/bin/cc", u64::from(pid));
        story.exit(pid);
    }
    story.touch(9, "/usr/bin/make", 1);
    assert!(story.learned().contains(&"/usr/bin/make: /usr/bin/make [1]; starts 1".to_owned()));
}

#[derive(Debug, Clone)]
enum Act {
    Fork(usize),
    Exec { who: usize, program: u8, lags: bool },
    Follow(usize),
    Touch { who: usize, page: u64 },
    Exit(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let who = || 0..64usize;
    let act = prop_oneof![
        2 => who().prop_map(Act::Fork),
        3 => (who(), 0u8..5, any::<bool>()).prop_map(|(who, program, lags)| Act::Exec { who, program, lags }),
        1 => who().prop_map(Act::Follow),
        6 => (who(), 0u64..40).prop_map(|(who, page)| Act::Touch { who, page }),
        1 => who().prop_map(Act::Exit),
    ];
    proptest::collection::vec(act, 1..120)
}

/// What the rules say, without events: the program and the launch of each process, and the pages of each launch.
#[derive(Default)]
struct Machine {
    processes: BTreeMap<u32, Option<(u8, LaunchId)>>,
    pages: BTreeMap<LaunchId, BTreeSet<u64>>,
    next: u32,
}

impl Machine {
    fn pid(&self, who: usize) -> Option<u32> {
        let count = self.processes.len();
        (count > 0).then(|| self.processes.keys().nth(who % count).copied()).flatten()
    }
}

fn act(machine: &mut Machine, story: &mut Story, act: &Act) {
    let pid = |machine: &Machine, who: usize| machine.pid(who);
    match *act {
        Act::Fork(who) => {
            let Some(parent) = pid(machine, who).filter(|_| machine.processes.len() < 40) else { return };
            machine.next += 1;
            let of = machine.processes[&parent];
            machine.processes.insert(machine.next, of);
            story.fork(parent, machine.next);
        }
        Act::Exec { who, program, lags } => {
            let Some(pid) = pid(machine, who) else { return };
            let begun = story.exec(pid, &format!("/p{program}"));
            match machine.processes[&pid] {
                Some((of, _)) if of == program => return assert_eq!(begun, None, "a part of its launch"),
                _ => machine.processes.insert(pid, begun.map(|launch| (program, launch))),
            };
            if !(lags && story.marks.contains_key(&pid)) {
                follow(machine, story, pid);
            }
        }
        Act::Follow(who) => {
            pid(machine, who).into_iter().for_each(|pid| follow(machine, story, pid));
        }
        Act::Touch { who, page } => {
            let Some(pid) = pid(machine, who).filter(|pid| story.marks.contains_key(pid)) else { return };
            if let Some((_, launch)) = machine.processes[&pid] {
                machine.pages.entry(launch).or_default().insert(page);
            }
            story.touch(pid, "/data", page);
        }
        Act::Exit(who) => {
            let Some(pid) = pid(machine, who) else { return };
            machine.processes.remove(&pid);
            story.exit(pid);
        }
    }
}

/// The tracer learns where a process belongs.
fn follow(machine: &Machine, story: &mut Story, pid: u32) {
    match machine.processes[&pid] {
        Some((_, launch)) => _ = story.marks.insert(pid, launch),
        None => _ = story.marks.remove(&pid),
    }
}

proptest! {
    /// Each page counts for the program that its process runs, whatever the tracer knows the process by; and nothing else counts.
    #[test]
    fn pages_count_for_the_program_that_touches_them(acts in acts()) {
        let settings = Settings { at_once: 1000, burst: 1e6, burst_within: 1e6, ..Settings::default() };
        let (mut machine, mut story) = (Machine { next: 5, ..Machine::default() }, Story::new(settings));
        machine.processes.insert(5, None);
        act(&mut machine, &mut story, &Act::Exec { who: 0, program: 9, lags: false });
        for each in &acts {
            act(&mut machine, &mut story, each);
        }
        let learned: BTreeMap<LaunchId, BTreeSet<u64>> = story
            .learner
            .over(at(1_000_000))
            .into_iter()
            .map(|finished| {
                let spans = finished.launch.set.files.iter().flat_map(|file| file.pages.spans().to_vec());
                (finished.id, spans.flat_map(|span| span.first..span.end).collect())
            })
            .filter(|(_, pages): &(_, BTreeSet<u64>)| !pages.is_empty())
            .collect();
        prop_assert_eq!(learned, machine.pages);
    }
}
