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

#[path = "outdated_tests.rs"]
mod outdated;
#[path = "process_reading_tests.rs"]
mod reading;
#[path = "relearn_tests.rs"]
mod relearn;
#[path = "process_running_tests.rs"]
mod running;
#[path = "process_store_tests.rs"]
mod store;

const USER: u32 = 1000;

/// A clock that stands still.
struct Still;

impl Clock for Still {
    fn now(&self) -> Now {
        Now { mono: Duration::from_secs(1000), real_ns: 1_700_000_000_000_000_000 }
    }

    fn suspended(&self) -> Duration {
        Duration::ZERO
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

/// Ten minutes after its start, until it has looked up all programs.
fn look_up_all(process: &mut Process<'_>) {
    let now = Now { mono: Still.now().mono + Duration::from_secs(600), ..Still.now() };
    wait_for("the last program is looked up", || {
        process.forget_removed(now);
        process.removed.under_way.is_none() && process.removed.left == Some(Vec::new())
    });
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
    process.pending.read(
        ReadAhead { program: program().id(), bytes: 4096, was_fetched: true, decision: None },
        Still.now().mono,
    );
}

fn exit(process: &mut Process<'_>, pid: u32) {
    process.handle(Observation::Exit { pid, at: Duration::ZERO }, Still.now());
}

/// A store that another process has open, which sees whether it changes.
fn reader(machine: &Machine) -> ProgramStore {
    ProgramStore::open(&machine.options.store, "", 1).unwrap().store
}

const ALL: Bytes = Bytes(u64::MAX);

/// A disk on which everything may be read, and the state of its measurement.
const DISK: &str = r#"[{"disk":{"disks":["sda"],"rotational":false,"size_bytes":1048576},"measured":{"request_s":1.0,"near_request_s":1.0,
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

fn at(mono_s: u64) -> Now {
    Now { mono: Duration::from_secs(mono_s), ..Still.now() }
}

fn troubles(process: &mut Process<'_>) -> String {
    process.notices.extend(process.library.take_notices());
    let what = process.notices.drain(..).filter_map(|notice| match notice {
        Notice::Trouble { what } => Some(what + "\n"),
        _ => None,
    });
    what.collect()
}
