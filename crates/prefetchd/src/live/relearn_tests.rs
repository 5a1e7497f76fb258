//! When a program is learned again, and which starts are no habit.

use super::*;
use crate::read::FetchReport;
use eke_prefetch_model::choose::Occasion;
use eke_prefetch_model::predict::Chance;

fn touched(path: &str, ino: u64) -> Touched {
    let usual = launch(program()).set.files.remove(0);
    Touched { path: path.into(), stamp: Stamp { ino, ..Stamp::default() }, ..usual }
}

fn launch_of(exe: &str, files: Vec<Touched>) -> Launch {
    Launch { set: FileSet { files }, ..launch(Program::of_exe(exe)) }
}

fn is_changed(process: &Process<'_>) -> bool {
    process.is_changed(program().id())
}

/// A machine whose store is of this eke: an earlier one's programs are all learned again.
fn machine() -> Machine {
    let machine = Machine::new();
    reader(&machine).put_state("wrappers", 2, b"[]").unwrap();
    machine
}

#[test]
fn a_changed_program_is_due_for_learning_also_after_a_boot_until_it_is_learned() {
    let machine = machine();
    put_disk(&machine);
    let vim = Program::of_exe("/usr/bin/vim");
    machine.learn(&launch(vim.clone()));
    let mut process = machine.process();
    let request = ReadRequest {
        path: program().exe,
        kind: Kind::File,
        stamp: Stamp::default(),
        pages: Pages::from_iter(Span::new(0, 1)),
        user: USER,
        is_own: true,
    };
    let programs =
        [(&program(), "gedit"), (&vim, "vim")].map(|(of, name)| (of.id(), name.to_owned(), 4096)).to_vec();
    process.reads.ahead = process.schedule_ahead(vec![request], programs, false);
    wait_for("the end of the fetch", || {
        process.reads.ahead.as_ref().is_some_and(|going| going.fetch.is_over())
    });
    assert!(!is_changed(&process));
    // As when another choice replaces the fetch.
    process.end_ahead(Still.now());
    assert!(is_changed(&process), "its executable is gone");
    assert!(!process.is_changed(vim.id()), "which was read for the other alone");
    drop(process);
    let mut process = machine.process();
    assert!(is_changed(&process), "it starts once a boot");
    process.learned(finished(launch(program())), Still.now());
    assert!(!is_changed(&process));
    drop(process);
    assert!(!is_changed(&machine.process()));
}

#[test]
fn a_program_whose_library_another_one_has_seen_replaced_is_learned_again() {
    for (library, is_due) in [("/usr/lib/x.so", true), ("/home/u/settings", false)] {
        let machine = machine();
        let gedit =
            |ino| launch_of("/usr/bin/gedit", vec![touched("/usr/bin/gedit", 1), touched(library, ino)]);
        machine.learn(&gedit(7));
        machine.learn(&launch_of("/usr/bin/vim", vec![touched(library, 8)]));
        let mut process = machine.process();
        assert!(!is_changed(&process));
        process.library.program(program().id(), Still.now()).unwrap();
        assert_eq!(is_changed(&process), is_due, "{library}");
        process.learned(finished(gedit(8)), Still.now());
        let known = process.library.program(program().id(), Still.now()).unwrap();
        assert_eq!((known.set.files.len(), is_changed(&process)), (2, false));
    }
}

#[test]
fn a_changed_file_concerns_the_programs_that_use_it_as_a_packages_or_their_own() {
    let machine = machine();
    let sets: [(&str, &[&str]); 3] = [
        ("/usr/bin/gedit", &["/usr/lib/x.so", "/home/u/app/data"]),
        ("/usr/bin/vim", &["/usr/lib/x.so", "/home/u/.viminfo"]),
        ("/home/u/app/app", &["/home/u/app/data"]),
    ];
    for (exe, files) in sets {
        machine.learn(&launch_of(exe, files.iter().map(|path| touched(path, 1)).collect()));
    }
    let ids = sets.map(|(exe, _)| Program::of_exe(exe).id());
    for (file, expected) in [
        ("/usr/lib/x.so", [true, true, false]),
        ("/home/u/app/data", [false, false, true]),
        ("/home/u/.viminfo", [false; 3]),
        ("/usr/lib/y.so", [false; 3]),
    ] {
        let mut process = machine.process();
        process.library.put_state("changed", 1, b"[]");
        process.library = Library::open(&machine.root, &machine.options, Still.now());
        let report = FetchReport { changed: vec![file.into()], ..FetchReport::default() };
        process.set_changed_of(ids.into_iter(), &report, Still.now());
        assert_eq!(ids.map(|id| process.is_changed(id)), expected, "{file}");
    }
}

#[test]
fn a_start_that_notices_itself_that_files_changed_is_in_no_arm() {
    let mut machine = machine();
    machine.options.settings.at_exec = true;
    put_disk(&machine);
    let mut process = machine.process();
    process.disks = Disks::new(&machine.root, Some(DISK.as_bytes()));
    has_read_ahead(&mut process);
    process.handle(exec(10), Still.now());
    // Its executable is not there. The probe notices that, or the fetch, if the probe gets no answer in time.
    wait_for("the change", || {
        process.take_reports(Still.now());
        is_changed(&process)
    });
    process.learned(finished(launch(program())), Still.now());
    assert_eq!(process.effect.so_far().others, 0);
}

#[test]
fn a_start_whose_files_another_program_has_seen_replaced_is_in_no_arm() {
    let mut machine = machine();
    machine.options.settings.at_exec = true;
    machine.learn(&launch_of("/usr/bin/gedit", vec![touched("/usr/lib/x.so", 7)]));
    machine.learn(&launch_of("/usr/bin/vim", vec![touched("/usr/lib/x.so", 8)]));
    let mut process = machine.process();
    has_read_ahead(&mut process);
    process.handle(exec(10), Still.now());
    assert!(is_changed(&process));
    process.learned(finished(launch(program())), Still.now());
    assert_eq!(process.effect.so_far().others, 0);
}

#[test]
fn where_no_uses_are_reported_no_start_is_left_alone_or_counted() {
    let mut machine = machine();
    (machine.options.publishes_state, machine.options.settings.control_percent) = (true, 100);
    let starts = |sees_uses| {
        let mut process = machine.process_that(sees_uses);
        let is_left_alone = state_of(&mut process, USER).is_control;
        has_read_ahead(&mut process);
        process.handle(exec(10), Still.now());
        process.learned(finished(launch(program())), Still.now());
        (is_left_alone, process.effect.so_far().left_alone + process.effect.so_far().others)
    };
    assert_eq!(starts(false), (false, 0));
    assert_eq!(starts(true), (true, 1));
}

#[test]
fn no_start_of_a_program_that_nobody_waits_for_is_left_alone() {
    for (took_ms, is_control) in [(5_000, true), (50, false)] {
        let mut machine = Machine::of(&[]);
        reader(&machine).put_state("wrappers", 2, b"[]").unwrap();
        machine.learn(&Launch { took: Duration::from_millis(took_ms), ..launch(program()) });
        (machine.options.publishes_state, machine.options.settings.control_percent) = (true, 100);
        let mut process = machine.process();
        process.library.is_brief(program().id(), Still.now());
        assert_eq!(state_of(&mut process, USER).is_control, is_control, "{took_ms} ms");
    }
}

#[test]
fn starts_that_are_recorded_because_files_changed_are_in_no_arm() {
    let machine = machine();
    let mut process = machine.process();
    let now = Still.now();
    let start = |process: &mut Process<'_>, pid| {
        has_read_ahead(process);
        process.handle(exec(pid), now);
        process.handle(Observation::Exit { pid, at: Duration::ZERO }, now);
        process.learned(finished(launch(program())), now);
        process.effect.so_far().others
    };
    assert_eq!(start(&mut process, 10), 1);
    process.library.set_changed([program().id()]);
    assert_eq!(start(&mut process, 11), 1);
    assert_eq!(start(&mut process, 12), 2, "it was learned again");
}

fn executed(pid: u32) -> Executed {
    Executed { pid, uid: USER, program: Some(program().id()), is_event: true, log_in: None }
}

#[test]
fn a_start_for_which_nothing_is_missing_is_in_no_arm() {
    let mut machine = machine();
    machine.options.publishes_state = true;
    for (percent, is_alone) in [(0, false), (100, true)] {
        machine.options.settings.control_percent = percent;
        let mut process = machine.process();
        let start = |process: &mut Process<'_>, pid| {
            assert_eq!(state_of(process, USER).is_control, is_alone);
            process.handle(exec(pid), Still.now());
            exit(process, pid);
            process.learned(finished(launch(program())), Still.now());
            let effect = process.effect.so_far();
            (effect.left_alone, effect.others)
        };
        let before = (process.effect.so_far().left_alone, process.effect.so_far().others);
        assert_eq!(start(&mut process, 10), before);
        let resident = ReadAhead { program: program().id(), bytes: 4096, was_fetched: false, decision: None };
        process.pending.read(resident, Still.now().mono);
        assert_eq!(start(&mut process, 12), before, "all that was to be read ahead was in memory");
        has_read_ahead(&mut process);
        let counted = (before.0 + u64::from(is_alone), before.1 + u64::from(!is_alone));
        assert_eq!(start(&mut process, 11), counted);
    }
}

#[test]
fn the_first_start_after_an_upgrade_is_recorded() {
    let machine = machine();
    machine.learn(&launch_of("/usr/bin/gedit", vec![touched("/usr/bin/gedit", 7)]));
    let state = |process: &mut Process<'_>, ino| {
        process.state_of(&program(), &Exec { ino, ..exec_of(USER, 10) }).changed
    };
    let mut process = machine.process();
    assert!(!state(&mut process, None) && !state(&mut process, Some(7)));
    assert!(state(&mut process, Some(8)));
    process.learned(finished(launch_of("/usr/bin/gedit", vec![touched("/usr/bin/gedit", 8)])), Still.now());
    assert!(!state(&mut process, Some(8)) && state(&mut process, Some(9)));
}

#[test]
fn the_first_launch_of_another_user_is_recorded() {
    let machine = machine();
    let mut process = machine.process();
    let is_first = |process: &mut Process<'_>, uid| state_of(process, uid).is_first_of_user;
    assert!(!is_first(&mut process, USER) && is_first(&mut process, 1001));
    process.learned(finished(Launch { uid: 1001, ..launch(program()) }), Still.now());
    assert!(!is_first(&mut process, 1001) && !is_first(&mut process, USER));
    drop(process);
    let mut process = machine.process();
    assert!(!is_first(&mut process, 1001) && is_first(&mut process, 1002));
    let unknown = process.state_of(&Program::of_exe("/usr/bin/vim"), &exec_of(USER, 10));
    assert!(!unknown.is_first_of_user);
}

#[test]
fn a_start_within_ten_minutes_of_the_last_is_no_habit() {
    let machine = Machine::of(&[]);
    reader(&machine).put_state("wrappers", 2, b"[]").unwrap();
    let took = Duration::from_secs(2);
    machine.learn(&Launch { took, ..launch(program()) });
    let vim = Program::of_exe("/usr/bin/vim");
    machine.learn(&Launch { took, ..launch(vim.clone()) });
    let share_of_gedit = |repeated_within: u64| {
        let mut options = machine.options.clone();
        options.repeated_within = Duration::from_secs(repeated_within);
        let mut process = Process::new(&machine.root, &options, &Still, "a test".to_owned(), true);
        process.running.found(Executed { program: None, ..executed(1) });
        let start = |process: &mut Process<'_>, program: &Program, mono_s: u64| {
            let exec = Exec { program: Some(program.clone()), ..exec_of(USER, 10) };
            let now = Now { mono: Duration::from_secs(mono_s), ..Still.now() };
            process.handle(Observation::Exec(exec, None), now);
            let runs = process.predictor.chances(process.local_s(now), 600.0);
            assert!(runs.iter().all(|chance| chance.program != program.id()), "it runs");
            process.handle(Observation::Exit { pid: 10, at: Duration::ZERO }, now);
        };
        (0..9).for_each(|n| start(&mut process, &vim, 1000 + 700 * n));
        (0..90).for_each(|n| start(&mut process, &program(), 9000 + n));
        let chances = process.predictor.chances(process.local_s(at(9100)), 600.0);
        let of = |id| chances.iter().find(|chance| chance.program == id).map_or(0.0, |of| of.probability);
        (of(program().id()), of(vim.id()))
    };
    let (gedit, vim_beside) = share_of_gedit(600);
    assert!(vim_beside > gedit, "one start beside nine: {gedit} {vim_beside}");
    let (gedit, vim_beside) = share_of_gedit(0);
    assert!(gedit > vim_beside, "{gedit} {vim_beside}");
}

#[test]
fn a_start_that_nobody_notices_is_no_habit() {
    let now = Still.now();
    let predicts = |took_ms, cold_bytes| {
        let machine = Machine::of(&[]);
        reader(&machine).put_state("wrappers", 2, b"[]").unwrap();
        machine.learn(&Launch { took: Duration::from_millis(took_ms), cold_bytes, ..launch(program()) });
        let mut process = machine.process();
        // No session begins.
        process.running.found(Executed { program: None, ..executed(1) });
        process.handle(exec(10), now);
        process.handle(Observation::Exit { pid: 10, at: Duration::ZERO }, now);
        let chances = process.predictor.chances(process.local_s(now), 600.0);
        (chances.len(), process.reads.due.is_due(at(1003).mono), process.state.launches)
    };
    assert_eq!(predicts(149, 4096), (0, false, 1));
    assert_eq!(predicts(150, 4096), (1, true, 1));
    assert_eq!(predicts(149, 2048), (0, false, 1));
    assert_eq!(predicts(149, 2047), (1, true, 1), "it was half warm: a cold one may take longer");
}

/// A clock that goes on by a tenth of a second at each look.
struct Slow(std::cell::Cell<u64>);

impl Clock for Slow {
    fn now(&self) -> Now {
        self.0.set(self.0.get() + 100);
        Now { mono: Duration::from_millis(self.0.get()), ..Still.now() }
    }

    fn suspended(&self) -> Duration {
        Duration::ZERO
    }

    fn east_of_utc_s(&self) -> i64 {
        0
    }
}

#[test]
fn a_choice_for_which_the_store_is_too_slow_goes_on() {
    let machine = machine();
    machine.learn(&launch(Program::of_exe("/usr/bin/vim")));
    let clock = Slow(std::cell::Cell::new(0));
    let mut process = Process::new(&machine.root, &machine.options, &clock, "a test".to_owned(), true);
    let chance = |exe: &str| Chance { program: Program::of_exe(exe).id(), probability: 0.5 };
    let both = [chance("/usr/bin/gedit"), chance("/usr/bin/vim")];
    assert_eq!(process.candidates(&both[..1], Occasion::Session, Still.now()).sets().count(), 1);
    assert_eq!(process.reads.due.take(), None, "it has all");
    assert_eq!(process.candidates(&both, Occasion::Session, Still.now()).sets().count(), 1);
    assert_eq!(process.reads.due.take(), Some(Occasion::Session));
}

#[test]
fn files_that_the_store_does_not_take_are_reported() {
    let machine = machine();
    let mut process = machine.process();
    let long = |n: u64| touched(&format!("/{}/{n}", "d".repeat(4000)), n);
    let mut told = |exe: &str| {
        process.learned(finished(launch_of(exe, (0..100).map(long).collect())), Still.now());
        troubles(&mut process)
    };
    let first = told("/home/anna/diary");
    assert!(first.contains("uses more files than the store takes"), "{first}");
    assert!(!first.contains("anna") && !first.contains("diary"), "others read the journal: {first}");
    assert_eq!(told("/home/anna/diary"), "", "once is enough");
    assert!(told("/usr/bin/vim").contains("uses more files"));
}

#[test]
fn what_an_earlier_eke_measured_of_the_cpu_does_not_count() {
    for (version, expected) in [(1, 0.0), (2, 0.5)] {
        let machine = machine();
        reader(&machine).put_state("cpu", version, b"[0.5,0.5,0.5]").unwrap();
        assert_eq!(machine.process().cpu.threads.page_s(), expected, "{version}");
    }
}

#[test]
fn where_uses_are_not_reported_a_launch_that_eke_read_for_removes_nothing() {
    let files = |was_read: bool| {
        let machine = machine();
        let known: Vec<Touched> =
            ["/usr/lib/a", "/usr/lib/b", "/usr/lib/c"].map(|path| touched(path, 1)).into();
        machine.learn(&launch_of("/usr/bin/gedit", known.clone()));
        let mut process = machine.process();
        for _ in 0..20 {
            if was_read {
                process.add_read_for(program().id(), 4096);
            }
            let launch = launch_of("/usr/bin/gedit", known[..2].to_vec());
            process.learned(finished(Launch { ended: LaunchEnd::WithoutUses, ..launch }), Still.now());
        }
        process.library.program(program().id(), Still.now()).unwrap().set.files.len()
    };
    assert_eq!((files(false), files(true)), (2, 3));
}
