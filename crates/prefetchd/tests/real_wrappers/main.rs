//! A program that is started through a wrapper is learned as itself, read at its exec, and predicted: the built `eke-prefetch` on the running kernel.
#![expect(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods, reason = "a failing test panics")]

#[path = "../daemon/mod.rs"]
mod daemon;
#[allow(dead_code, reason = "the tests of fetching use all of it")]
#[path = "../real_fetch/slow_ext4.rs"]
mod slow_ext4;
mod wrappers;

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use eke_linux::Root;
use eke_prefetch_store::{Access, ProgramStore};
use eke_prefetchd::file::resident::missing_bytes;
use eke_slow_disk::Profile;
use eke_testkit::real::{no_program, skip};
use eke_testkit::wait::wait_for;
use serde_json::Value;

use daemon::{Running, is_of};
use slow_ext4::SlowExt4;
use wrappers::{Place, WRAPPERS, Wrapper};

const TEST: &str = "programs_behind_wrappers_are_learned_read_and_predicted";
const DATA: u64 = 2 << 20;
/// A busy machine reports late.
const PATIENCE: Duration = Duration::from_secs(20);
const PATIENCE_AHEAD: Duration = Duration::from_secs(4);
/// Busy for a moment, without any other program, until the tracer has attached; then the data.
const READS: &str = "for ((i = 0; i < 100000; i++)); do :; done; : \"$(<DATA)\"";
const STAYS: &str = "for ((i = 0; i < 900000; i++)); do :; done";

/// What a wrapper's program got.
#[derive(Debug, Default)]
struct Row {
    name: &'static str,
    /// The programs that were learned with the data.
    learned: Vec<String>,
    /// Bytes read at its exec.
    at_exec: u64,
    /// Bytes of its data read ahead.
    ahead: u64,
    /// Other programs that were read ahead.
    others: Vec<String>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, learned, at_exec, ahead, others } = self;
        write!(f, "{name:16} | {:40} | {at_exec:8} | {ahead:8} | {}", learned.join(", "), others.join(", "))
    }
}

struct Fixture {
    disk: SlowExt4,
    kept: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Option<Self> {
        if let Some(why) = no_program(&["bash", "dash", "ldd"]) {
            skip(TEST, &why);
            return None;
        }
        let slow = Profile { rate: 10_000_000, iops: Some(200), ..Profile::plain() };
        let fixture = Self { disk: SlowExt4::create(TEST, slow)?, kept: tempfile::tempdir().unwrap() };
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(fixture.top().parent().unwrap(), readable).unwrap();
        wrappers::furnish(&fixture.top());
        Some(fixture)
    }

    fn top(&self) -> PathBuf {
        self.disk.top()
    }

    fn store(&self) -> PathBuf {
        self.kept.path().join("store")
    }

    fn data(&self, name: &str) -> PathBuf {
        self.top().join(format!("jail/{name}.data"))
    }

    fn install(&self, name: &str) {
        let top = self.top();
        wrappers::install(Place { top: &top, name });
        fs::write(self.data(name), vec![7_u8; DATA as usize]).unwrap();
    }

    /// Nothing of the disk is in memory, and no program of it runs.
    fn cool(&self) {
        let top = self.top();
        let runs =
            |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.starts_with(&top));
        wait_for("the programs to end", || !eke_linux::read::pids(&Root::host()).into_iter().any(runs));
        self.disk.cool();
    }

    fn start(&self, wrapper: &Wrapper, name: &str, script: &str) {
        let (top, data) = (self.top(), self.data(name));
        // Within a chroot or another mount the data is at another place: beside the program.
        let script =
            script.replace("DATA", &format!("${{BASH%/*}}/{}", data.file_name().unwrap().to_str().unwrap()));
        wrapper.start(Place { top: &top, name }, &script);
    }

    fn program(&self, name: &str) -> PathBuf {
        Place { top: &self.top(), name }.program()
    }

    fn missing(&self, name: &str) -> u64 {
        missing_bytes(Root::host().page_size(), File::open(self.data(name)).unwrap(), 0, DATA, DATA).unwrap()
    }

    /// The programs of the disk that an event read ahead and that were not started through a wrapper.
    fn others_ahead(&self, event: &Value) -> Vec<String> {
        let top = self.top().display().to_string();
        let programs = if event["event"] == "ahead" { event["programs"].as_array() } else { None };
        let names = programs.into_iter().flatten().map(|program| program.as_str().unwrap().to_owned());
        let is_other = |name: &String| {
            name.starts_with(&top) && !name.contains("/jail/prog-") && !name.contains("/jail/first-")
        };
        names.filter(is_other).collect()
    }

    /// The stored programs whose sets have the wrapper's data, as names relative to the disk.
    fn learned_as(&self, name: &str) -> Vec<String> {
        let store = ProgramStore::existing(&self.store(), Access::Read).unwrap();
        let records = store.records(0).unwrap();
        let has = |path: &Path, id| {
            let known = store.program(id, 0).unwrap().unwrap();
            known.set.files.iter().any(|file| file.path == path && file.pages.bytes() >= DATA / 2)
        };
        let top = format!("{}/", self.top().display());
        let with = records.iter().filter(|record| has(&self.data(name), record.id()));
        with.map(|record| record.program.to_string().replace(&top, "")).collect()
    }
}

/// Each wrapper takes ten seconds and more, so `make test` tries one of each kind.
const KINDS: [&str; 6] = ["timeout", "chain", "sh-script", "sudo", "chroot", "bwrap"];

fn is_tried(wrapper: &Wrapper) -> bool {
    KINDS.contains(&wrapper.name) || std::env::var_os("EKE_WRAPPERS").is_some_and(|which| which == "all")
}

fn name_of(wrapper: &Wrapper) -> String {
    format!("prog-{}", wrapper.name)
}

/// The program that is started before: one for each, so that what it announces is certain.
fn first_of(wrapper: &Wrapper) -> String {
    format!("first-{}", wrapper.name)
}

/// Some at a time, because only so many launches are recorded at once; those that the daemon left out are started again.
fn learn_firsts(fixture: &Fixture, running: &Running, tried: &[&Wrapper]) {
    for some in tried.chunks(4) {
        let mut left: Vec<String> = some.iter().map(|wrapper| first_of(wrapper)).collect();
        for _ in 0..3 {
            fixture.cool();
            left.iter().for_each(|first| fixture.start(&WRAPPERS[0], first, READS));
            while !left.is_empty() {
                let is_it = |event: &Value, first: &String| is_of(event, "learned", &fixture.program(first));
                let learned =
                    running.reported(|event| left.iter().any(|first| is_it(event, first)), PATIENCE);
                let Ok(event) = learned else { break };
                left.retain(|first| !is_it(&event, first));
            }
        }
    }
}

/// The first time, cold: on a busy machine the program may read nothing for so long that its launch ends; then it is launched again.
fn learn(fixture: &Fixture, running: &Running, wrapper: &Wrapper) {
    let name = name_of(wrapper);
    for _ in 0..3 {
        fixture.cool();
        fixture.start(wrapper, &name, READS);
        let is_it = |event: &Value| is_of(event, "learned", &fixture.program(&name));
        let learned = running.reported(is_it, PATIENCE);
        if learned.is_ok_and(|event| event["cold_bytes"].as_u64().unwrap() >= DATA) {
            return;
        }
    }
}

/// The program does not read its data this time. A machine on which all tests run may be too busy once.
fn at_exec(fixture: &Fixture, running: &Running, wrapper: &Wrapper) -> u64 {
    let name = name_of(wrapper);
    let once = || {
        fixture.cool();
        fixture.start(wrapper, &name, STAYS);
        let read = running.reported(|event| is_of(event, "at_exec", &fixture.program(&name)), PATIENCE);
        read.map_or(0, |event| event["bytes"].as_u64().unwrap())
    };
    (0..3).map(|_| once()).find(|bytes| *bytes > 0).unwrap_or(0)
}

/// As many are needed on a machine that starts other programs all the time.
const TRIES: u32 = 12;

/// After its first program the wrapper starts its own: so that is read when the first one starts again. Returns the bytes of its data, and what else was read of the
/// disk: nothing but programs behind wrappers. Other users' programs start meanwhile, and predictions are for the last user, so there are several tries.
fn ahead(fixture: &Fixture, running: &Running, wrapper: &Wrapper) -> (u64, Vec<String>) {
    let (name, first) = (name_of(wrapper), first_of(wrapper));
    let is_ahead = |event: &Value| event["event"] == "ahead";
    let mut others = Vec::new();
    for tried in 0..TRIES {
        if tried % 3 == 0 {
            fixture.start(&WRAPPERS[0], &first, ":");
            fixture.start(wrapper, &name, ":");
            fixture.cool();
        }
        fixture.start(&WRAPPERS[0], &first, ":");
        let read = running.reported(is_ahead, PATIENCE_AHEAD);
        others.extend(read.iter().flat_map(|event| fixture.others_ahead(event)));
        if fixture.missing(&name) == 0 {
            break;
        }
    }
    (DATA - fixture.missing(&name), others)
}

#[test]
fn programs_behind_wrappers_are_learned_read_and_predicted() {
    let Some(fixture) = Fixture::new() else { return };
    let mut tried = Vec::new();
    for wrapper in WRAPPERS.iter().filter(|wrapper| is_tried(wrapper)) {
        match wrapper.lacking() {
            Some(why) => skip(&format!("{TEST}: {}", wrapper.name), &why),
            None => tried.push(wrapper),
        }
    }
    let (running, ready) = Running::ready(&fixture.store(), &["--no-ahead"]);
    if !ready["source"].as_str().unwrap().starts_with("BPF") {
        return skip(TEST, "without BPF read(2) is not seen");
    }
    for wrapper in &tried {
        fixture.install(&first_of(wrapper));
        fixture.install(&name_of(wrapper));
    }
    learn_firsts(&fixture, &running, &tried);
    tried.iter().for_each(|wrapper| learn(&fixture, &running, wrapper));
    running.end();

    let (running, _) = Running::ready(&fixture.store(), &["--no-ahead"]);
    let mut rows: Vec<Row> =
        tried.iter().map(|wrapper| Row { name: wrapper.name, ..Row::default() }).collect();
    for (row, wrapper) in rows.iter_mut().zip(&tried) {
        row.learned = fixture.learned_as(&name_of(wrapper));
        row.at_exec = at_exec(&fixture, &running, wrapper);
    }
    running.end();

    let (running, _) = Running::ready(&fixture.store(), &["--no-exec"]);
    for (row, wrapper) in rows.iter_mut().zip(&tried) {
        (row.ahead, row.others) = ahead(&fixture, &running, wrapper);
    }
    running.end();
    println!("{:16} | {:40} | {:8} | {:8} | others ahead", "wrapper", "learned as", "at exec", "ahead");
    rows.iter().for_each(|row| println!("{row}"));
    for row in &rows {
        assert_eq!(row.learned, [format!("jail/prog-{}", row.name)], "{row}");
        assert!(row.at_exec >= DATA, "{row}");
        assert!(row.others.is_empty(), "wrappers are not predicted: {row}");
        if row.ahead < DATA {
            skip(&format!("{TEST}: {} ahead", row.name), &format!("not read within {TRIES} tries"));
        }
    }
    let predicted = rows.iter().filter(|row| row.ahead == DATA).count();
    assert!(predicted * 2 > rows.len(), "{predicted} of {} were predicted", rows.len());
}
