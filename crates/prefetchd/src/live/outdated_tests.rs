//! Programs and files that were removed, and programs that were upgraded.

use super::*;
use crate::read::FetchReport;

fn firefox(revision: u32) -> Program {
    Program::of_exe(format!("/snap/firefox/{revision}/firefox"))
}

fn start(process: &mut Process<'_>, program: &Program, pid: u32) {
    let exec = Exec { program: Some(program.clone()), ..exec_of(USER, pid) };
    process.handle(Observation::Exec(exec, None), Still.now());
}

fn predicted(process: &mut Process<'_>) -> BTreeSet<ProgramId> {
    let now_s = process.local_s(Still.now());
    process.predictor.chances(now_s, 600.0).into_iter().map(|chance| chance.program).collect()
}

fn knows(process: &Process<'_>, program: &Program) -> bool {
    process.library.state_of(program.id()).is_some()
}

/// A machine whose person has started revision 1 of Firefox, and ended it.
fn machine() -> Machine {
    let machine = Machine::of(&[launch(firefox(1))]);
    reader(&machine).put_state("wrappers", 2, b"[]").unwrap();
    machine
}

#[test]
fn an_upgraded_program_inherits_the_habits_of_its_last_version_and_takes_its_place() {
    let machine = machine();
    let mut process = machine.process();
    start(&mut process, &firefox(1), 10);
    exit(&mut process, 10);
    assert_eq!(predicted(&mut process), BTreeSet::from([firefox(1).id()]));
    process.learned(finished(launch(firefox(2))), Still.now());
    assert_eq!(predicted(&mut process), BTreeSet::from([firefox(2).id()]));
    assert!(knows(&process, &firefox(2)) && !knows(&process, &firefox(1)));
    let stored = reader(&machine).records(1).unwrap();
    assert_eq!(stored.iter().map(|record| record.id()).collect::<Vec<_>>(), [firefox(2).id()]);
}

#[test]
fn of_two_versions_that_are_both_in_use_none_goes() {
    let machine = machine();
    let mut process = machine.process();
    let learn = |process: &mut Process<'_>, of| process.learned(finished(launch(of)), Still.now());
    let both = |process: &Process<'_>| [1, 2].map(|revision| knows(process, &firefox(revision)));
    start(&mut process, &firefox(1), 10);
    learn(&mut process, firefox(2));
    assert_eq!(both(&process), [true, true], "the earlier one runs");
    exit(&mut process, 10);
    learn(&mut process, firefox(2));
    assert_eq!(both(&process), [false, true]);
    learn(&mut process, firefox(1));
    learn(&mut process, firefox(2));
    assert_eq!(both(&process), [true, true], "it came back");
}

#[test]
fn a_program_that_was_removed_is_forgotten_some_time_after_the_start_and_not_predicted() {
    let machine = machine();
    let firefox_here = machine.root.path("snap/firefox/1");
    std::fs::create_dir_all(&firefox_here).unwrap();
    let mut process = machine.process();
    start(&mut process, &firefox(1), 10);
    exit(&mut process, 10);
    process.end();
    drop(process);
    let mut process = machine.process();
    look_up_all(&mut process);
    assert!(knows(&process, &firefox(1)), "its mount may come");
    assert_eq!(predicted(&mut process), BTreeSet::from([firefox(1).id()]));
    drop(process);
    std::fs::remove_dir(firefox_here).unwrap();
    let mut process = machine.process();
    process.forget_removed(Now { mono: Still.now().mono + Duration::from_secs(599), ..Still.now() });
    assert!(process.removed.left.is_none(), "the boot and the log-in have the disk to themselves");
    look_up_all(&mut process);
    assert!(!knows(&process, &firefox(1)) && predicted(&mut process).is_empty());
}

#[test]
fn a_program_that_is_gone_when_it_is_read_ahead_is_forgotten() {
    let machine = Machine::new();
    reader(&machine).put_state("wrappers", 2, b"[]").unwrap();
    eke_testkit::tree::put(&machine.root.path(""), "usr/bin/gedit", "");
    let mut process = machine.process();
    start(&mut process, &program(), 10);
    exit(&mut process, 10);
    let changed = |process: &mut Process<'_>| {
        let report = FetchReport { changed: vec![program().exe], ..FetchReport::default() };
        process.set_changed_of([program().id()].into_iter(), &report, Still.now());
        knows(process, &program())
    };
    assert!(changed(&mut process), "it is another version");
    std::fs::remove_file(machine.root.path("usr/bin/gedit")).unwrap();
    assert!(!changed(&mut process) && predicted(&mut process).is_empty());
    assert!(reader(&machine).records(1).unwrap().is_empty());
}

/// Reads these files ahead for a program, to the end.
fn read_ahead(process: &mut Process<'_>, of: &Program, files: &[&str]) {
    let request = |path: &&str| ReadRequest {
        path: path.into(),
        kind: Kind::File,
        stamp: Stamp::default(),
        pages: Pages::from_iter(Span::new(0, 1)),
        user: USER,
        is_own: **path == of.exe,
    };
    let requests = files.iter().map(request).collect();
    process.reads.ahead = process.schedule_ahead(requests, vec![(of.id(), of.to_string(), 4096)], false);
    wait_for("the end of the fetch", || {
        process.reads.ahead.as_ref().is_some_and(|going| going.fetch.is_over())
    });
    process.end_ahead(Still.now());
}

#[test]
fn a_program_of_no_package_that_is_gone_when_it_is_read_ahead_is_forgotten() {
    let tool = Program::of_exe("/home/u/bin/tool");
    let machine = Machine::of(&[launch(tool.clone())]);
    put_disk(&machine);
    let put = |path: &str| eke_testkit::tree::put(&machine.root.path(""), path, "");
    put("home/u/bin/tool");
    let mut process = machine.process();
    read_ahead(&mut process, &tool, &["/home/u/bin/tool"]);
    assert!(knows(&process, &tool), "it is another version");
    std::fs::remove_file(machine.root.path("home/u/bin/tool")).unwrap();
    read_ahead(&mut process, &tool, &["/home/u/bin/tool"]);
    assert!(knows(&process, &tool), "its disk may not be mounted");
    put("home/u/bin/other");
    read_ahead(&mut process, &tool, &["/home/u/bin/tool"]);
    assert!(!knows(&process, &tool));
}

#[test]
fn a_program_that_was_removed_with_its_directory_is_forgotten_if_it_was_seen_since_the_boot() {
    let game = Program::of_exe("/home/u/game/game");
    let other = Program { script: Some("/home/u/x".into()), ..game.clone() };
    for (dev, is_known) in [(rustix::fs::makedev(8, 0), false), (rustix::fs::makedev(8, 1), true)] {
        let of = |program: &Program| {
            let mut launch = launch(program.clone());
            launch.set.files[0].stamp.dev = dev;
            launch
        };
        let machine = Machine::of(&[of(&game), of(&other)]);
        put_disk(&machine);
        let mut process = machine.process();
        let report = FetchReport { gone: vec![game.exe.clone()], ..FetchReport::default() };
        process.set_changed_of([game.id(), other.id()].into_iter(), &report, Still.now());
        assert_eq!([&game, &other].map(|of| knows(&process, of)), [is_known; 2]);
    }
}

#[test]
fn a_users_file_that_is_gone_when_it_is_read_ahead_leaves_the_set() {
    let gedit = launch(program());
    let files = ["/home/u/mail/1", "/home/u/mail/2", "/media/disk/3"];
    let documents = files.map(|path| Touched { path: path.into(), ..gedit.set.files[0].clone() });
    let set = FileSet { files: gedit.set.files.iter().cloned().chain(documents).collect() };
    let machine = Machine::of(&[Launch { set, ..gedit }]);
    reader(&machine).put_state("wrappers", 2, b"[]").unwrap();
    put_disk(&machine);
    eke_testkit::tree::put(&machine.root.path(""), "usr/bin/gedit", "");
    eke_testkit::tree::put(&machine.root.path(""), "home/u/mail/2", "");
    let mut process = machine.process();
    let left = |process: &mut Process<'_>| {
        let known = process.library.program(program().id(), Still.now()).unwrap();
        known.set.files.iter().map(|file| file.path.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    read_ahead(&mut process, &program(), &files);
    assert_eq!(left(&mut process), ["/usr/bin/gedit", "/home/u/mail/2", "/media/disk/3"]);
    assert!(!process.is_changed(program().id()), "it is as it was learned");
}
