//! What one machine learned, on the next one: `eke prefetch import`, and the program's first start there, with real `eke-prefetch` on the running kernel.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "functions of tests, which fail by it"
)]

mod common;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use common::{build_others, eke};
use eke_prefetch_model::{FileSet, Kind, Launch, LaunchEnd, Program, Span, Stamp, Touched, UsedBy};
use eke_prefetch_store::ProgramStore;
use eke_testkit::program::{kill, output};
use eke_testkit::real::{lacking, lock_machine, no_program, skip};
use serde_json::Value;

/// Of a package, rarely started by others, and it stays until its input ends.
const PROGRAM: &str = "/usr/bin/tac";
/// A user id that nothing else on this machine uses.
const SOMEBODY: u32 = 54_321;
/// Longer than a report takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A large file of a package that no program has in memory, as this program's data.
fn data() -> Option<PathBuf> {
    let mut find = Command::new("find");
    find.args(["/usr/lib", "/usr/share", "-xdev", "-type", "f", "-size", "+4M", "-size", "-40M"]);
    let found = String::from_utf8(output(&mut find).stdout).unwrap();
    found.lines().map(PathBuf::from).take(40).find(|path| {
        cool(path);
        resident(path) == 0
    })
}

/// Has the kernel drop what no program has mapped.
fn cool(path: &Path) {
    let file = File::open(path).unwrap();
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

/// The bytes of the file that are in memory.
fn resident(path: &Path) -> u64 {
    let told = output(Command::new("fincore").args(["--bytes", "--noheadings", "--output", "RES"]).arg(path));
    String::from_utf8(told.stdout).unwrap().trim().parse().unwrap()
}

fn touched(path: &Path) -> Touched {
    let of = path.metadata().unwrap();
    let mtime_ns = of.mtime() * 1_000_000_000 + of.mtime_nsec();
    Touched {
        path: path.to_owned(),
        kind: Kind::File,
        stamp: Stamp { dev: of.dev(), ino: of.ino(), size: of.size(), mtime_ns },
        pages: Span::new(0, of.size().div_ceil(4096)).into_iter().collect(),
        stale: eke_prefetch_model::Pages::default(),
        weight: 1.0,
        used_by: UsedBy::Unknown,
    }
}

/// The first machine started the program and saw it read these files.
fn learn(store: &Path, files: &[&Path]) {
    let set = FileSet { files: files.iter().map(|path| touched(path)).collect() };
    let launch = Launch {
        program: Program::of_exe(PROGRAM),
        uid: 1000,
        began_ns: 0,
        took: Duration::from_secs(2),
        ended: LaunchEnd::Quiet,
        cold_bytes: set.bytes(),
        set: set.clone(),
    };
    let now_s = 1;
    let mut keep = ProgramStore::open(store, "boot", now_s).unwrap().store;
    keep.add_launch(&launch, &set, now_s).unwrap();
}

/// The disks as slow ones that were measured, so that reading ahead pays on a fast one, too.
fn store_measured(store: &Path) {
    let measured = r#"{"request_s":0.01,"near_request_s":0.005,"depth_gain":4.0,"byte_s":1e-7,"reads":60,"bytes":6000000,"took_s":0.1}"#;
    let text = |path: PathBuf| std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let disks: Vec<String> = std::fs::read_dir("/sys/class/block")
        .unwrap()
        .filter_map(|entry| {
            let device = entry.unwrap().path().canonicalize().ok()?;
            let is_part = device.join("partition").exists();
            let disk = if is_part { device.parent()?.to_owned() } else { device.clone() };
            let names = ["wwid", "device/wwid", "serial", "device/serial", "device/cid"];
            let mut names = names.iter().filter_map(|name| text(disk.join(name)));
            let kernels = disk.file_name()?.to_str()?.to_owned();
            let name = names.find(|name| !name.is_empty()).unwrap_or(kernels);
            let rotational = text(disk.join("queue/rotational")).as_deref() == Some("1");
            let bytes = text(device.join("size"))?.parse::<u64>().ok()? * 512;
            let disk = format!(r#"{{"disks":["{name}"],"rotational":{rotational},"size_bytes":{bytes}}}"#);
            Some(format!(r#"{{"disk":{disk},"measured":{measured}}}"#))
        })
        .collect();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let mut keep = ProgramStore::open(store, boot.trim(), 1).unwrap().store;
    keep.put_state("disks", 2, format!("[{}]", disks.join(",")).as_bytes()).unwrap();
}

/// `eke-prefetch run` and what it reports.
struct Running {
    child: Child,
    events: Receiver<Value>,
}

impl Running {
    fn start(store: &Path) -> Self {
        let program = Path::new(env!("CARGO_BIN_EXE_eke")).with_file_name("eke-prefetch");
        let mut command = Command::new(program);
        command.args(["run", "--now-only", "--no-ahead", "--store"]).arg(store).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, events) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            let lines = out.lines().map_while(Result::ok);
            lines.filter_map(|line| serde_json::from_str(&line).ok()).try_for_each(|event| to.send(event))
        });
        Self { child, events }
    }

    /// The next event of one of these kinds, of the program if it has one.
    fn next(&self, kinds: &[&str]) -> Value {
        let is_it = |event: &Value| {
            kinds.iter().any(|kind| event["event"] == *kind)
                && event.get("program").is_none_or(|program| program == PROGRAM)
        };
        loop {
            let event = self.events.recv_timeout(PATIENCE);
            let event = event.unwrap_or_else(|e| panic!("none of {kinds:?} was reported: {e}"));
            if is_it(&event) {
                return event;
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}

/// Starts the cold program with this store. Returns the first event of one of these kinds, and how much of the data is in memory after it; nothing without
/// BPF, which alone reports an exec in time.
fn first_start(store: &Path, data: &Path, kinds: &[&str]) -> Option<(Value, u64)> {
    store_measured(store);
    let running = Running::start(store);
    let ready = running.next(&["ready"]);
    if !ready["source"].as_str().is_some_and(|source| source.starts_with("BPF")) {
        return None;
    }
    [data, Path::new(PROGRAM)].into_iter().for_each(cool);
    let mut command = Command::new(PROGRAM);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).uid(SOMEBODY).gid(SOMEBODY);
    let mut started = command.spawn().unwrap();
    let event = running.next(kinds);
    let read = resident(data);
    kill(&mut started);
    Some((event, read))
}

#[test]
fn the_first_start_on_the_next_machine_is_read_at_its_exec() {
    let test = "the_first_start_on_the_next_machine_is_read_at_its_exec";
    if let Some(why) = lacking(&[]).or_else(|| no_program(&["fincore", "find", "tac"])) {
        return skip(test, &why);
    }
    let _machine = lock_machine();
    build_others();
    let Some(data) = data() else { return skip(test, "no large file of a package that can leave memory") };
    let dir = tempfile::tempdir().unwrap();
    let [first, second, unknown, file] =
        ["first", "second", "unknown", "file"].map(|name| dir.path().join(name));
    // Where it is not known, it reads nothing of the data itself.
    let Some((_, read)) = first_start(&unknown, &data, &["learned", "not_kept"]) else {
        return skip(test, "without BPF the exec may be seen too late");
    };
    assert_eq!(read, 0, "the program reads {} itself: this shows nothing", data.display());
    learn(&first, &[Path::new(PROGRAM), &data]);
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let exported = eke(&["prefetch", "--store", &text(&first), "export", "--output", &text(&file)]);
    assert_eq!(exported.status, Some(0), "{exported:?}");
    let imported = eke(&["prefetch", "--store", &text(&second), "import", "--unsigned", &text(&file)]);
    assert!(
        imported.status == Some(0) && imported.stdout.starts_with("1 programs are known now"),
        "{imported:?}"
    );
    let (event, read) = first_start(&second, &data, &["at_exec", "learned", "not_kept"]).unwrap();
    let size = data.metadata().unwrap().len();
    assert!(event["event"] == "at_exec" && event["bytes"].as_u64() >= Some(size), "{event}");
    assert!(read >= size, "{read} of {size} bytes of {} are in memory", data.display());
}
