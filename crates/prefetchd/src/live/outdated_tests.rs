//! Programs that were removed or upgraded.

use super::*;

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
        process.set_changed_of([program().id()].into_iter(), &[program().exe], Still.now());
        knows(process, &program())
    };
    assert!(changed(&mut process), "it is another version");
    std::fs::remove_file(machine.root.path("usr/bin/gedit")).unwrap();
    assert!(!changed(&mut process) && predicted(&mut process).is_empty());
    assert!(reader(&machine).records(1).unwrap().is_empty());
}
