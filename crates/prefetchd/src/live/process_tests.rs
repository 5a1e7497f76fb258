#![expect(clippy::disallowed_methods, reason = "test code")]

use std::collections::BTreeSet;
use std::path::Path;

use eke_model::units::Bytes;
use eke_testkit::wait::wait_for;

use super::*;
use crate::live::ahead::ReadAhead;
use crate::live::launches::ColdLaunch;
use crate::live::private::storable;
use crate::request::ReadRequest;
use crate::trace::Observation;
use crate::trace::watch::TraceListener;
use eke_prefetch_model::file_set::{FileSet, Kind, Stamp, Touched, UsedBy};
use eke_prefetch_model::launch::{Launch, LaunchEnd};
use eke_prefetch_model::learn::{Exec, Finished, LaunchId, ProgramState};
use eke_prefetch_model::missing::ColdFile;
use eke_prefetch_model::pages::{Pages, Span};
use eke_prefetch_model::program::{Program, ProgramId};
use eke_prefetch_model::user_event::UserEvent;
use eke_prefetch_store::ProgramStore;

#[path = "relearn_tests.rs"]
mod relearn;

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
        used_by: UsedBy::Unknown,
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
        Self::of(&[launch(program())])
    }

    fn of(launches: &[Launch]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::at(dir.path());
        let options = Options::new(dir.path().join("store"), eke_model::config::PrefetchSettings::default());
        std::fs::create_dir_all(root.path("proc/self")).unwrap();
        let machine = Self { dir, root, options };
        launches.iter().for_each(|launch| machine.learn(launch));
        machine
    }

    fn learn(&self, launch: &Launch) {
        let mut store = ProgramStore::open(&self.options.store, "", 1).unwrap().store;
        store.add_launch(launch, &launch.set, 1).unwrap();
    }

    fn process(&self) -> Process<'_> {
        self.process_that(true)
    }

    fn process_that(&self, sees_uses: bool) -> Process<'_> {
        Process::new(&self.root, &self.options, &Still, "a test".to_owned(), sees_uses)
    }

    fn begins(&self, pid: u32) {
        std::fs::create_dir_all(self.root.path(format!("proc/{pid}"))).unwrap();
    }

    fn ends(&self, pid: u32) {
        std::fs::remove_dir_all(self.root.path(format!("proc/{pid}"))).unwrap();
    }
}

fn exec(pid: u32) -> Observation {
    exec_by(USER, pid)
}

fn exec_by(uid: u32, pid: u32) -> Observation {
    Observation::Exec(exec_of(uid, pid), None)
}

fn exec_of(uid: u32, pid: u32) -> Exec {
    let (session, ino, launch, program) = (None, None, None, Some(program()));
    Exec { pid, parent: 1, uid, group: 1, session, ino, at: Duration::ZERO, launch, program }
}

fn state_of(process: &mut Process<'_>, uid: u32) -> ProgramState {
    process.state_of(&program(), &exec_of(uid, 9_999))
}

/// eke has read ahead for the next start.
fn has_read_ahead(process: &mut Process<'_>) {
    process
        .pending
        .read(ReadAhead { program: program().id(), bytes: 4096, was_fetched: true, decision: None }, 0);
}

fn exit(process: &mut Process<'_>, pid: u32) {
    process.handle(Observation::Exit { pid, at: Duration::ZERO }, Still.now());
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
    assert!(process.running.runs(USER, program().id()), "one of the two runs");
    machine.ends(11);
    process.end_gone_if_lost(now);
    assert!(process.running.runs(USER, program().id()), "nothing was lost");
    process.handle(Observation::Lost, now);
    process.end_gone_if_lost(Now { mono: now.mono + PACE, ..now });
    assert!(!process.running.runs(USER, program().id()));
    process.handle(exec(12), now);
    assert!(process.running.runs(USER, program().id()), "it starts again");
}

#[test]
fn what_runs_for_the_greeter_starts_for_the_person() {
    const GREETER: u32 = 120;
    let (machine, now) = (Machine::new(), Still.now());
    let mut process = machine.process();
    process.handle(exec_by(GREETER, 10), now);
    assert!(state_of(&mut process, GREETER).runs && !state_of(&mut process, USER).runs);
    process.handle(exec_by(USER, 11), now);
    assert_eq!(process.state.launches, 2);
    assert!(state_of(&mut process, USER).runs);
    process.handle(exec_by(USER, 12), now);
    assert_eq!(process.state.launches, 2, "it runs for the person");
}

#[test]
fn a_program_that_is_learned_while_it_runs_does_not_start_again() {
    let (machine, now) = (Machine::of(&[]), Still.now());
    let mut process = machine.process();
    process.handle(exec(10), now);
    process.handle(Observation::Launch(finished(launch(program()))), now);
    process.handle(exec(11), now);
    assert_eq!(process.state.launches, 0, "it hands over to the first process, or is a part of it");
    assert!(state_of(&mut process, USER).runs, "so it is not recorded");
    [10, 11].iter().for_each(|pid| exit(&mut process, *pid));
    assert!(!state_of(&mut process, USER).runs);
    process.handle(exec(12), now);
    assert_eq!(process.state.launches, 1);
}

#[test]
fn a_log_in_after_a_restart_within_a_session_is_one() {
    let machine = Machine::new();
    let put = |file: &str, text: &str| eke_testkit::tree::put(&machine.root.path(""), file, text);
    for pid in [10, 11] {
        let status = "Name:\tx\nPPid:\t1\nUid:\t1000\t1000\t1000\t1000\n";
        put(&format!("proc/{pid}/status"), status);
    }
    let mut process = machine.process();
    process.find_running();
    assert!(!state_of(&mut process, USER).in_session);
    [10, 11].iter().for_each(|pid| exit(&mut process, *pid));
    process.handle(exec(12), Still.now());
    assert!(state_of(&mut process, USER).in_session);
}

#[test]
fn an_audit_session_shows_a_log_in_beside_lingering_processes_and_a_job_of_cron() {
    let machine = Machine::new();
    let put = |file: &str, text: &str| eke_testkit::tree::put(&machine.root.path(""), file, text);
    let begins = |uid: u32, lingers: bool, class: &str| {
        put("proc/10/status", &format!("Name:\tx\nPPid:\t1\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n"));
        put("run/systemd/sessions/5", &format!("UID=1000\nCLASS={class}\nTYPE=x11\nREMOTE=0\n"));
        let mut process = machine.process();
        if lingers {
            process.find_running();
        }
        let exec = Exec { session: Some(5), ..exec_of(USER, 11) };
        process.handle(Observation::Exec(exec, None), Still.now());
        state_of(&mut process, USER).in_session
    };
    assert!(begins(USER, true, "user") && !begins(USER, true, "background"));
    assert!(begins(0, false, "user") && !begins(0, false, "background"), "its first process");
    std::fs::remove_dir_all(machine.root.path("run/systemd/sessions")).unwrap();
    let mut process = machine.process();
    process.handle(Observation::Exec(Exec { session: Some(5), ..exec_of(USER, 11) }, None), Still.now());
    assert!(state_of(&mut process, USER).in_session, "without logind processes show it");
}

#[test]
fn the_session_of_the_users_systemd_comes_before_the_shells_and_a_job_has_none() {
    let machine = Machine::new();
    for (session, class, kind) in [(4, "manager", "unspecified"), (3, "user", "wayland")] {
        let text = format!("UID=1000\nCLASS={class}\nTYPE={kind}\nREMOTE=0\n");
        eke_testkit::tree::put(&machine.root.path(""), &format!("run/systemd/sessions/{session}"), &text);
    }
    let mut process = machine.process();
    let mut begins = |pid: u32, session: u32| {
        let exec = Exec { session: Some(session), ..exec_of(USER, pid) };
        process.handle(Observation::Exec(exec, None), Still.now());
        state_of(&mut process, USER).in_session
    };
    assert!(!begins(10, 5), "logind does not list a job of cron, although it is the first process");
    assert!(!begins(11, 4));
    assert!(begins(12, 3));
}

#[test]
fn a_log_in_is_known_from_its_begin_and_from_young_processes_at_the_start() {
    let machine = Machine::new();
    let status = |uid: u32| format!("Name:\tx\nPPid:\t1\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n");
    let put = |file: &str, text: &str| eke_testkit::tree::put(&machine.root.path(""), file, text);
    let ticks = rustix::time::clock_gettime(rustix::time::ClockId::Boottime).tv_sec * 100;
    let stat = format!("10 (x) S 1 10 {} {ticks} 0 0", "0 ".repeat(16).trim_end());
    put("proc/10/stat", &stat);
    put("proc/10/status", &status(USER));
    put("proc/11/status", &status(1001));
    let mut process = machine.process();
    process.find_running();
    let in_session = |process: &mut Process<'_>, user| state_of(process, user).in_session;
    assert!(in_session(&mut process, USER), "all its processes are young");
    assert!(!in_session(&mut process, 1001) && !in_session(&mut process, 0));
    process.handle(exec_by(1002, 20), Still.now());
    assert!(in_session(&mut process, 1002));
}

#[test]
fn what_the_store_has_pruned_is_forgotten_everywhere() {
    let of = |n: usize| launch(Program::of_exe(format!("/usr/bin/x{n}")));
    let all: Vec<Launch> = (0..eke_prefetch_store::MOST_PROGRAMS).map(of).collect();
    let machine = Machine::of(&[]);
    let mut store = ProgramStore::open(&machine.options.store, "", 1).unwrap().store;
    all.iter().for_each(|launch| _ = store.add_launch(launch, &launch.set, 1).unwrap());
    drop(store);
    let (mut process, now) = (machine.process(), Still.now());
    process.learned(finished(launch(program())), now);
    let knows =
        |process: &Process<'_>, launch: &Launch| process.library.state_of(launch.program.id()).is_some();
    assert_eq!(process.library.len(), all.len() + 1);
    process.flush(now);
    assert_eq!(process.library.len(), all.len());
    assert!(knows(&process, &launch(program())), "it was just learned");
    assert_eq!(all.iter().filter(|launch| !knows(&process, launch)).count(), 1);
}

#[test]
fn the_predicted_user_is_a_person() {
    let machine = Machine::new();
    let put = |file: &str, text: &str| eke_testkit::tree::put(&machine.root.path(""), file, text);
    put("etc/subuid", "anna:100000:65536\n");
    put("etc/passwd", "anna:x:1000:1000::/home/anna:/bin/sh\n");
    let (mut process, now) = (machine.process(), Still.now());
    let mut predicted = |uid: u32| {
        process.handle(exec_by(uid, uid + 1), now);
        process.handle(Observation::Exit { pid: uid + 1, at: Duration::ZERO }, now);
        process.predictor.user()
    };
    assert_eq!([0, 33].map(&mut predicted), [0, 0], "no person was seen");
    assert_eq!([100_033, 0, 33, 65_534].map(&mut predicted), [USER; 4]);
    assert_eq!([1001, 0].map(&mut predicted), [1001; 2]);
}

#[test]
fn a_running_script_is_found_under_its_own_name() {
    let machine = Machine::new();
    let put = |file: &str, text: &str| eke_testkit::tree::put(&machine.root.path(""), file, text);
    put("usr/bin/meld", "");
    put("proc/10/status", "Name:\tpython3\nPPid:\t1\nUid:\t1000\t1000\t1000\t1000\n");
    put("proc/10/cmdline", "python3\0/usr/bin/meld\0");
    std::os::unix::fs::symlink("/usr/bin/python3", machine.root.path("proc/10/exe")).unwrap();
    let python = Program::of_exe("/usr/bin/python3");
    let meld = Program { script: Some("/usr/bin/meld".into()), ..python.clone() };
    [&python, &meld].into_iter().for_each(|program| machine.learn(&launch(program.clone())));
    let mut process = machine.process();
    process.find_running();
    assert!(process.running.runs(USER, meld.id()) && !process.running.runs(USER, python.id()));
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
fn what_was_chosen_and_not_read_is_not_used() {
    let machine = Machine::new();
    let mut process = machine.process();
    let (id, now) = (program().id(), Still.now());
    let request = ReadRequest {
        path: program().exe,
        kind: Kind::File,
        stamp: Stamp::default(),
        pages: Pages::from_iter(Span::new(0, 1)),
        user: USER,
        is_own: true,
    };
    // It has no mounts, so nothing is read.
    process.reads.ahead = process.schedule_ahead(vec![request], vec![(id, "gedit".to_owned(), 4096)], false);
    wait_for("the end of the fetch", || {
        process.reads.ahead.as_ref().is_some_and(|going| going.fetch.is_over())
    });
    process.take_reports(now);
    process.handle(exec(10), now);
    assert_eq!((process.state.predicted, process.state.used), (0, Bytes(0)));
    assert_eq!(process.reads.for_start.get(&id), None);
    process.handle(Observation::Exit { pid: 10, at: Duration::ZERO }, now);
    process.pending.read(ReadAhead { program: id, bytes: 4096, was_fetched: true, decision: None }, 0);
    process.handle(exec(11), now);
    assert_eq!((process.state.predicted, process.state.used), (1, Bytes(4096)));
}

const ALL: Bytes = Bytes(u64::MAX);

/// A disk on which everything may be read, and the state of its measurement.
const DISK: &str = r#"[{"name":"sda","size_bytes":1048576,"measured":{"request_s":1.0,"near_request_s":1.0,
    "depth_gain":1.0,"byte_s":2e-9,"reads":60,"bytes":6000000,"took_s":0.1}}]"#;

fn put_disk(machine: &Machine) {
    for (file, text) in [
        ("proc/self/mountinfo", "22 1 8:0 / / rw - ext4 /dev/sda rw\n"),
        ("sys/dev/block/8:0/uevent", "DEVNAME=sda\n"),
        ("sys/dev/block/8:0/size", "2048\n"),
        ("proc/meminfo", "MemTotal: 1000000 kB\nMemAvailable: 900000 kB\n"),
    ] {
        eke_testkit::tree::put(&machine.root.path(""), file, text);
    }
}

#[test]
fn one_start_in_sixteen_measures_again_what_reading_at_exec_costs() {
    let machine = Machine::new();
    put_disk(&machine);
    let mut process = machine.process();
    process.disks = Disks::new(&machine.root, Some(DISK.as_bytes()));
    let (id, now) = (program().id(), Still.now());
    let dear = Duration::from_secs(100_000);
    for _ in 0..2 {
        process.cpu.at_exec.push(dear, 2000, 0);
        assert!(process.choose_launch(id, USER, ALL, now).is_some(), "too few measurements");
    }
    process.cpu.at_exec.push(dear, 2000, 0);
    let read: Vec<bool> = (0..16).map(|_| process.choose_launch(id, USER, ALL, now).is_some()).collect();
    assert_eq!(read.iter().position(|read| *read), Some(15), "{read:?}");
    process.schedule_launch(cold(), Vec::new());
    assert!(process.choose_launch(id, USER, ALL, now).is_none(), "it is being measured");
}

fn cold() -> ColdLaunch {
    ColdLaunch {
        program: program().id(),
        name: String::new(),
        pid: 10,
        exe: program().exe,
        user: USER,
        executed: Duration::ZERO,
        cpu: Duration::ZERO,
    }
}

#[test]
fn starts_of_brief_programs_are_written_once_an_hour_or_with_others() {
    let mut machine = Machine::of(&[]);
    machine.options.settings.at_exec = true;
    reader(&machine).put_state("wrappers", 2, b"[]").unwrap();
    let vim = Program::of_exe("/usr/bin/vim");
    machine.learn(&launch(vim.clone()));
    machine.learn(&Launch { took: Duration::from_millis(50), ..launch(program()) });
    let mut process = machine.process();
    process.running.found(Executed { pid: 1, uid: USER, program: None, is_event: false, log_in: None });
    let reader = reader(&machine);
    let mut start = |pid: u32, program: &Program, after_s: u64| {
        let exec = Exec { program: Some(program.clone()), ..exec_of(USER, pid) };
        process.handle(Observation::Exec(exec, None), Still.now());
        exit(&mut process, pid);
        process.flush(Now { mono: Still.now().mono + Duration::from_secs(after_s), ..Still.now() });
        (reader.data_version().unwrap(), reader.events().unwrap().len())
    };
    // The first choice for it is a decision, which is written.
    let first = start(10, &program(), 10);
    assert_eq!(start(11, &program(), 20), first);
    assert_eq!(start(12, &vim, 30).1, first.1 + 4);
    let written = start(13, &program(), 3_000);
    assert_eq!(written.1, first.1 + 4);
    assert_eq!(start(14, &program(), 3_640).1, first.1 + 8);
}

#[test]
fn what_waits_of_a_forgotten_program_is_not_written() {
    let machine = Machine::of(&[]);
    reader(&machine).put_state("wrappers", 2, b"[]").unwrap();
    let vim = Program::of_exe("/usr/bin/vim");
    machine.learn(&launch(vim.clone()));
    let brief = Launch { took: Duration::from_millis(50), ..launch(program()) };
    machine.learn(&brief);
    let (mut process, now) = (machine.process(), Still.now());
    process.running.found(Executed { pid: 1, uid: USER, program: None, is_event: false, log_in: None });
    process.handle(exec(10), now);
    exit(&mut process, 10);
    process.handle(exec(11), now);
    process.handle(Observation::Exec(Exec { program: Some(vim.clone()), ..exec_of(USER, 12) }, None), now);
    let mut reader = reader(&machine);
    assert!(reader.forget_program(program().id()).unwrap());
    process.library.write_soon();
    process.flush(now);
    exit(&mut process, 11);
    process.library.write_soon();
    process.flush(now);
    let events: Vec<Event> = reader.events().unwrap().iter().map(|event| event.event).collect();
    assert_eq!(events, [Event::Start(vim.id())]);
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

fn finished(launch: Launch) -> Finished {
    let cold = launch.set.files.iter().map(|file| ColdFile {
        path: file.path.clone(),
        kind: file.kind,
        pages: file.pages.clone(),
    });
    let cold = cold.collect();
    let (should_store, started, became, has_ended, bytes_after_start) = (true, Vec::new(), false, false, 0);
    Finished { id: LaunchId(1), launch, should_store, started, became, has_ended, bytes_after_start, cold }
}

#[test]
fn names_from_an_encrypted_disk_are_stored_on_an_encrypted_one_only() {
    let machine = Machine::new();
    let put = |file: &str, text: &str| eke_testkit::tree::put(&machine.root.path(""), file, text);
    put("sys/dev/block/8:1/uevent", "DEVNAME=sda1\n");
    put("sys/dev/block/253:0/uevent", "DEVNAME=dm-0\n");
    put("sys/class/block/dm-0/dm/uuid", "CRYPT-LUKS2-1-home\n");
    let mounts = |root: &str| {
        format!("22 1 {root} / / rw - xfs /dev/root rw\n30 22 253:0 / /home rw - xfs /dev/mapper/home rw\n")
    };
    let of = |exe: &str| {
        let mut launch = launch(Program::of_exe(exe));
        let usual = launch.set.files[0].clone();
        launch.set.files.push(Touched { path: "/home/u/letter to bob".into(), ..usual.clone() });
        launch.set.files.push(Touched { path: "/usr/lib/x".into(), ..usual });
        finished(launch)
    };
    let files = |finished: &Finished| finished.launch.set.files.len();
    put("proc/self/mountinfo", &mounts("8:1"));
    let learned = |exe: &str| storable(of(exe), &Mounts::read(&machine.root), Path::new("/var/lib/eke"));
    let kept = learned("/usr/bin/gedit").unwrap();
    assert_eq!((files(&kept), kept.cold.len()), (2, 2));
    assert!(kept.launch.set.files.iter().all(|file| !file.path.starts_with("/home")));
    assert_eq!(learned("/home/u/bin/tool"), None, "nor is a program's own name");
    put("proc/self/mountinfo", &mounts("253:0"));
    assert_eq!(files(&learned("/home/u/bin/tool").unwrap()), 3, "the store is encrypted, too");
    put("proc/self/mountinfo", &mounts("8:1"));
    let mut process = machine.process();
    process.learned(of("/home/u/bin/tool"), Still.now());
    assert!(process.library.state_of(Program::of_exe("/home/u/bin/tool").id()).is_none());
    process.learned(of("/usr/bin/okular"), Still.now());
    let okular = process.library.program(Program::of_exe("/usr/bin/okular").id(), Still.now()).unwrap();
    assert!(okular.set.files.iter().all(|file| !file.path.starts_with("/home")), "{okular:?}");
}

fn at(mono_s: u64) -> Now {
    Now { mono: Duration::from_secs(mono_s), ..Still.now() }
}

/// SQLite can open no store beside this: its log's index is a directory.
fn hinder(machine: &Machine) -> std::path::PathBuf {
    let index = machine.options.store.join("prefetch.db-shm");
    std::fs::create_dir(&index).unwrap();
    index
}

fn troubles(process: &mut Process<'_>) -> String {
    process.notices.extend(process.library.take_notices());
    let what = process.notices.drain(..).filter_map(|notice| match notice {
        Notice::Trouble { what } => Some(what + "\n"),
        _ => None,
    });
    what.collect()
}

#[test]
fn a_store_that_cannot_be_written_is_used_as_a_copy_until_it_can() {
    let machine = Machine::new();
    let index = hinder(&machine);
    let mut process = machine.process();
    assert_eq!(process.library.len(), 1);
    let copy = process.library.path().unwrap().to_owned();
    assert!(copy.starts_with(machine.root.path("run/eke/prefetch")), "{}", copy.display());
    let told = troubles(&mut process);
    assert!(told.contains("goes on with a copy") && told.contains("every 3 minutes"), "{told}");
    let finished = finished(launch(Program::of_exe("/usr/bin/vim")));
    process.library.add_launch(&finished, 0, false, at(1001)).unwrap();
    process.flush(at(2000));
    assert_eq!(process.library.path(), Some(copy.as_path()), "it cannot be written yet");
    std::fs::remove_dir(index).unwrap();
    process.flush(at(2001));
    assert_eq!(process.library.path(), Some(copy.as_path()), "it was tried a second ago");
    process.flush(at(2200));
    assert_eq!(process.library.path(), Some(machine.options.store.join("prefetch.db").as_path()));
    assert!(troubles(&mut process).contains("eke has moved back"));
    assert!(process.lock.is_some() && !copy.exists());
    drop(process);
    assert_eq!(reader(&machine).records(1).unwrap().len(), 2);
}

#[test]
fn a_store_into_which_another_process_learns_by_now_stays_its() {
    let machine = Machine::new();
    let index = hinder(&machine);
    let mut process = machine.process();
    std::fs::remove_dir(index).unwrap();
    let other = lock(&machine.root, &machine.options, &mut None).unwrap();
    process.flush(at(2000));
    assert!(process.library.path().unwrap().starts_with(machine.root.path("run/eke/prefetch")));
    drop(other);
}

#[test]
fn of_a_process_within_exec_only_the_status_is_read_at_the_start() {
    let machine = Machine::new();
    let runs = |code_pages: u32| {
        let status =
            format!("Name:\tgedit\nState:\tS (sleeping)\nPPid:\t1\nUid:\t{USER}\t{USER}\t{USER}\t{USER}\n");
        eke_testkit::tree::put(&machine.root.path(""), "proc/7/status", &status);
        let statm = format!("9 9 9 {code_pages} 0 1 0\n");
        eke_testkit::tree::put(&machine.root.path(""), "proc/7/statm", &statm);
        let mut process = machine.process();
        process.find_running();
        (process.running.runs(USER, program().id()), process.running.without(&BTreeSet::new()))
    };
    std::fs::create_dir_all(machine.root.path("proc/7")).unwrap();
    std::os::unix::fs::symlink("/usr/bin/gedit", machine.root.path("proc/7/exe")).unwrap();
    assert_eq!(runs(6), (true, vec![7]));
    assert_eq!(runs(0), (false, vec![7]));
}
