//! The built `eke-prefetch` on the running kernel: what it sees it keeps, what it keeps it reads, and whatever ends it leaves both usable.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "functions of tests, which fail by it"
)]

#[allow(dead_code, reason = "the tests of fetching use all of it")]
#[path = "real_fetch/stage.rs"]
mod stage;

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use eke_linux::Root;
use eke_prefetchd::file::resident::missing_bytes;
use eke_slow_disk::Profile;
use eke_testkit::real::{lacking, no_program, skip};
use serde_json::Value;
use stage::Stage;

const PROGRAM: &str = env!("CARGO_BIN_EXE_eke-prefetch");
/// Far more than anything here takes; a test that waits for it fails.
const PATIENCE: Duration = Duration::from_secs(60);
const DATA: u64 = 3 << 20;
/// Nobody else on this machine.
const SOMEBODY: u32 = 54_321;
/// Reads when it is surely seen, and stays for a moment: looks at `/proc` see only what stays.
const READS: &str = "sleep 0.5; cat data > /dev/null; sleep 3";

/// A program of our own and what it reads, on a disk slow enough that it is worth it.
struct Place {
    stage: Stage,
    kept: tempfile::TempDir,
}

impl Place {
    /// `None`, with the reason said, where there can be none.
    fn new(test: &str) -> Option<Self> {
        if let Some(why) = no_program(&["bash"]) {
            skip(test, &why);
            return None;
        }
        let slow = Profile { rate: 10_000_000, iops: Some(200), ..Profile::plain() };
        let place = Self { stage: Stage::set(test, slow)?, kept: tempfile::tempdir().unwrap() };
        let readable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(place.stage.top().parent().unwrap(), readable).unwrap();
        copy_program(Path::new("/bin/bash"), &place.program());
        std::fs::write(place.data(), vec![7_u8; DATA as usize]).unwrap();
        Some(place)
    }

    fn program(&self) -> PathBuf {
        self.stage.top().join("shell with a name")
    }

    fn data(&self) -> PathBuf {
        self.stage.top().join("data")
    }

    fn store(&self) -> PathBuf {
        self.kept.path().join("store")
    }

    /// Runs the program with a script, as a user of its own: each user has a number of launches that are learned, and whatever else this
    /// machine runs as root uses up root's.
    fn launch(&self, script: &str) {
        let top = self.stage.top();
        let mut command = Command::new(self.program());
        command.args(["-c", script]).current_dir(&top).stdin(Stdio::null()).uid(SOMEBODY).gid(SOMEBODY);
        assert!(command.status().unwrap().success());
    }

    fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args([verb, "--store"]).arg(self.store());
        command
    }

    /// `eke-prefetch ahead` of the program.
    fn ahead(&self) -> (Output, Option<Value>) {
        let output = self.command("ahead").arg(self.program()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut said = text.lines().rev().filter_map(|line| serde_json::from_str(line).ok());
        let said = said.find(|said: &Value| said["event"] == "ahead");
        (output, said)
    }
}

/// By a process of its own: what this one has open for writing a child of another test may have, too, and is not executed then.
fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}

/// `eke-prefetch run`, and its lines.
struct Running {
    child: Child,
    lines: Receiver<Value>,
}

impl Running {
    fn start(place: &Place, more: &[&str]) -> Self {
        let mut command = place.command("run");
        let mut child = command.arg("--now-only").args(more).stdout(Stdio::piped()).spawn().unwrap();
        let (to, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let said = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line:?}: {e}"));
                if to.send(said).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    fn wait(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        let mut before = Vec::new();
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(said) if is_it(&said) => return said,
                Ok(said) => before.push(said),
                Err(_) => panic!("{what} was not said; {before:?} was"),
            }
        }
    }

    fn ready(place: &Place, more: &[&str]) -> (Self, Value) {
        let running = Self::start(place, more);
        let ready = running.wait("ready", |said| said["event"] == "ready");
        (running, ready)
    }

    fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_of(said: &Value, event: &str, program: &Path) -> bool {
    said["event"] == event && said["program"] == program.display().to_string()
}

fn cannot_run(test: &str) -> bool {
    let why = lacking(&[]).or_else(|| no_program(&["bash"]));
    why.iter().for_each(|why| skip(test, why));
    why.is_some()
}

fn missing_of(path: &Path) -> u64 {
    missing_bytes(Root::host().page_size(), std::fs::File::open(path).unwrap(), 0, DATA, DATA).unwrap()
}

#[test]
fn what_is_learned_is_read_again_also_after_a_kill() {
    let Some(place) = Place::new("what_is_learned_is_read_again_also_after_a_kill") else { return };
    let (running, ready) = Running::ready(&place, &[]);
    let sees_reads = ready["source"].as_str().unwrap().starts_with("BPF");
    let least = if sees_reads { DATA } else { 64 << 10 };
    // On a busy machine the program may read nothing for so long that its launch ends: then it is launched again, and both are united.
    let learn = || {
        place.stage.cool();
        place.launch(READS);
        running.wait("learned", |said| is_of(said, "learned", &place.program()))
    };
    let learned = (0..5).map(|_| learn()).find(|learned| learned["cold_bytes"].as_u64().unwrap() >= least);
    let learned = learned.unwrap_or_else(|| panic!("five launches, and it read less in each"));
    // kill -9: what was said is kept.
    drop(running);

    place.stage.cool();
    let (output, said) = place.ahead();
    let said = said.unwrap_or_else(|| panic!("{output:?}"));
    let at_least = if sees_reads { DATA } else { 256 << 10 };
    assert!(said["bytes"].as_u64().unwrap() >= at_least, "{said} of {learned}");
    assert!(!sees_reads || missing_of(&place.data()) == 0, "{said}");
    // Of the system's own files on other disks it may choose some a turn later: what those disks do is measured each time.
    let again = || place.ahead().1.unwrap()["bytes"].as_u64().unwrap();
    assert!(again() < at_least, "after {said}");
    assert!((0..8).any(|_| again() == 0), "all is there");

    let (running, ready) = Running::ready(&place, &[]);
    assert!(ready["programs"].as_u64().unwrap() >= 1, "{ready}");
    running.end();
}

#[test]
fn what_is_missing_at_an_exec_is_read() {
    let Some(place) = Place::new("what_is_missing_at_an_exec_is_read") else { return };
    let (running, ready) = Running::ready(&place, &["--no-ahead"]);
    if !ready["source"].as_str().unwrap().starts_with("BPF") {
        skip("what_is_missing_at_an_exec_is_read", "without BPF an exec is seen too late to be sure");
        return;
    }
    place.stage.cool();
    place.launch(READS);
    running.wait("learned", |said| is_of(said, "learned", &place.program()));
    // It does not read its data this time, and has to be another start for the process.
    place.stage.cool();
    std::thread::sleep(Duration::from_secs(1));
    place.launch("sleep 3");
    let read = running.wait("at_exec", |said| is_of(said, "at_exec", &place.program()));
    assert!(read["bytes"].as_u64().unwrap() >= DATA, "{read}");
    running.end();
}

#[test]
fn a_broken_store_is_set_aside_and_said() {
    let Some(place) = Place::new("a_broken_store_is_set_aside_and_said") else { return };
    std::fs::create_dir(place.store()).unwrap();
    std::fs::write(place.store().join("prefetch.db"), b"SQLite format 3\0 and then nothing").unwrap();
    let running = Running::start(&place, &[]);
    let trouble = running.wait("trouble", |said| said["event"] == "trouble");
    assert!(trouble["what"].as_str().unwrap().contains("was broken"), "{trouble}");
    running.end();
    let left: Vec<_> = std::fs::read_dir(place.store()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().any(|name| name.to_string_lossy().contains("broken")), "{left:?}");
}

#[test]
fn a_store_has_one_process_and_that_ends_with_its_parent() {
    let Some(place) = Place::new("a_store_has_one_process_and_that_ends_with_its_parent") else { return };
    let (running, _) = Running::ready(&place, &["--end-with", &std::process::id().to_string()]);
    let second = place.command("run").arg("--now-only").output().unwrap();
    let text = String::from_utf8_lossy(&second.stderr);
    let holder = format!("process {} learns into", running.child.id());
    assert!(second.status.code() == Some(1) && text.contains(&holder), "{text}");
    let orphan = place.command("run").args(["--now-only", "--end-with", "1"]).output().unwrap();
    let text = String::from_utf8_lossy(&orphan.stderr);
    assert!(orphan.status.code() == Some(1) && text.contains("process 1 is not the parent"), "{text}");
    running.end();
}

#[test]
fn who_may_not_and_what_is_wrong_is_said() {
    let said = |command: &mut Command| {
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = said(Command::new(PROGRAM).arg("fly"));
    assert!(
        code == Some(2) && text.starts_with("eke-prefetch: \"fly\" is not a verb: run, ahead or source"),
        "{text}"
    );
    let (code, text) = said(Command::new(PROGRAM).arg("ahead"));
    assert!(code == Some(2) && text.contains("ahead needs a program"), "{text}");
    if cannot_run("who_may_not_and_what_is_wrong_is_said") {
        return;
    }
    let kept = tempfile::tempdir().unwrap();
    let (code, text) =
        said(Command::new(PROGRAM).args(["ahead", "--store"]).arg(kept.path()).arg("/nowhere"));
    assert!(code == Some(1) && text.contains("nothing was learned yet"), "{text}");
    let own = tempfile::tempdir().unwrap();
    let program = own.path().join("eke-prefetch");
    copy_program(Path::new(PROGRAM), &program);
    std::fs::set_permissions(own.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (code, text) = said(Command::new(program).arg("run").uid(65534).gid(65534));
    assert!(code == Some(4) && text.contains("only root may see what programs read"), "{text}");
}
