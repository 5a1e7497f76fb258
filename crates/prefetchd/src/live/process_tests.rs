#![expect(clippy::disallowed_methods, reason = "test code")]

use super::*;
use eke_prefetch_model::file_set::{FileSet, Kind, Stamp, Touched};
use eke_prefetch_model::launch::{Launch, LaunchEnd};
use eke_prefetch_model::pages::{Pages, Span};
use eke_prefetch_store::ProgramStore;

const USER: u32 = 1000;

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> Now {
        Now { mono: Duration::from_secs(1000), real_ns: 1_700_000_000_000_000_000 }
    }

    fn east_of_utc_s(&self) -> i64 {
        0
    }
}

/// A machine without processes, whose store knows one program.
struct Machine {
    #[expect(dead_code, reason = "held: dropping it removes the files")]
    dir: tempfile::TempDir,
    root: Root,
    options: Options,
}

fn program() -> Program {
    Program::of_exe("/usr/bin/gedit")
}

fn launch(program: Program) -> Launch {
    let file = Touched {
        path: program.exe.clone(),
        kind: Kind::File,
        stamp: Stamp::default(),
        pages: Pages::from_iter(Span::new(0, 1)),
        stale: Pages::default(),
        weight: 1.0,
    };
    Launch {
        program,
        uid: USER,
        began_ns: 0,
        took: Duration::ZERO,
        ended: LaunchEnd::Quiet,
        cold_bytes: 4096,
        set: FileSet { files: vec![file] },
    }
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let options = Options::new(dir.path().join("store"), eke_model::config::PrefetchSettings::default());
        std::fs::create_dir_all(root.path("proc/self")).unwrap();
        let launch = launch(program());
        let machine = Self { dir, root, options };
        machine.learn(&launch);
        machine
    }

    fn learn(&self, launch: &Launch) {
        let mut store = ProgramStore::open(&self.options.store, "", 1).unwrap().store;
        store.add_launch(launch, &launch.set, 1).unwrap();
    }

    fn process(&self) -> Process<'_> {
        Process::new(&self.root, &self.options, &Still, "a test".to_owned())
    }

    fn begins(&self, pid: u32) {
        std::fs::create_dir_all(self.root.path(format!("proc/{pid}"))).unwrap();
    }

    fn ends(&self, pid: u32) {
        std::fs::remove_dir_all(self.root.path(format!("proc/{pid}"))).unwrap();
    }
}

fn exec(pid: u32) -> Observation {
    let exec = Exec { pid, parent: 1, uid: USER, at: Duration::ZERO, launch: None, program: Some(program()) };
    Observation::Exec(exec, None)
}

#[test]
fn a_program_whose_exit_was_lost_does_not_run_for_ever() {
    let machine = Machine::new();
    let mut process = machine.process();
    let now = Still.now();
    for pid in [10, 11] {
        machine.begins(pid);
        process.handle(exec(pid), now);
    }
    machine.ends(10);
    process.handle(Observation::Lost, now);
    process.end_gone_if_lost(now);
    assert!(process.running.runs(program().id()), "one of the two runs");
    machine.ends(11);
    process.end_gone_if_lost(now);
    assert!(process.running.runs(program().id()), "nothing was lost");
    process.handle(Observation::Lost, now);
    process.end_gone_if_lost(Now { mono: now.mono + PACE, ..now });
    assert!(!process.running.runs(program().id()));
    process.handle(exec(12), now);
    assert!(process.running.runs(program().id()), "it starts again");
}

#[test]
fn arguments_that_an_earlier_eke_took_for_scripts_are_forgotten() {
    let machine = Machine::new();
    let script = |path: &str| Program { script: Some(path.into()), ..Program::of_exe("/bin/bash") };
    let here = machine.root.path("home/u/x.sh");
    std::fs::create_dir_all(here.parent().unwrap()).unwrap();
    std::fs::write(here, "").unwrap();
    let (kept, argument) = (["/home/u/x.sh", "/not mounted/x.sh", "vi"], "/home/u/mail bob");
    kept.iter().chain([&argument]).for_each(|path| machine.learn(&launch(script(path))));
    let process = machine.process();
    let knows = |path: &str| process.library.state_of(script(path).id()).is_some();
    assert!(kept.iter().all(|path| knows(path)) && !knows(argument));
    assert!(
        process
            .notices
            .iter()
            .any(|notice| matches!(notice, Notice::Trouble { what } if what.contains("1 learned scripts")))
    );
}

/// A store that another process has open, which sees whether it changes.
fn reader(machine: &Machine) -> ProgramStore {
    ProgramStore::open(&machine.options.store, "", 1).unwrap().store
}

#[test]
fn an_idle_machine_writes_no_state_again() {
    let machine = Machine::new();
    let mut process = machine.process();
    let reader = reader(&machine);
    let now = Still.now();
    let mut store = |after_s: u64| {
        process.do_regular_tasks(Now { mono: now.mono + Duration::from_secs(after_s), ..now });
        reader.data_version().unwrap()
    };
    let stored = store(300);
    assert_eq!([store(600), store(900)], [stored, stored], "nothing has happened");
    process.handle(exec(10), now);
    process.store_predictor();
    assert_ne!(reader.data_version().unwrap(), stored, "a program has started");
}

#[test]
fn of_a_predictor_that_has_no_room_the_longest_unused_programs_go() {
    let machine = Machine::new();
    let mut process = machine.process();
    for n in 1..=400 {
        let (at_s, event) = (n as f64 * 100.0, Event::Start(ProgramId(n)));
        process.predictor.observe(&UserEvent { at_s, user: USER, event });
        process.predictor.observe(&UserEvent {
            at_s: at_s + 1.0,
            user: USER,
            event: Event::Stop(ProgramId(n)),
        });
    }
    let whole = process.predictor.to_state().unwrap().len();
    let others = (1 << 20) - whole / 2;
    reader(&machine).put_state("others", 1, &vec![0; others]).unwrap();
    process.store_predictor();
    assert!(process.library.take_notices().is_empty());
    let stored = reader(&machine).state(PREDICTOR.0, PREDICTOR.1).unwrap().unwrap();
    let mut kept = Eke::from_state(&stored).unwrap();
    let programs: Vec<u64> = kept.chances(50_000.0, 600.0).iter().map(|chance| chance.program.0).collect();
    assert!(stored.len() <= whole / 2 && !programs.is_empty(), "{} of {whole}", stored.len());
    assert!(programs.contains(&400) && !programs.contains(&1), "{programs:?}");
}
