//! A mount whose processes are killed.

pub mod load;

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use eke_cache_mounts::settings::{Compress, Memory, PassthroughMode, Settings};
use eke_cache_mounts::status::{Ready, Start};
use eke_model::units::Bytes;
use eke_testkit::wait::wait_for;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A directory tree that is served by the real program.
pub struct Mount {
    pub backing: PathBuf,
    pub place: PathBuf,
    pub ready: Ready,
    server: Child,
    scratch: TempDir,
}

impl Mount {
    /// A directory `below` with what `fill` puts there, served at a place beside it.
    pub fn new(fill: impl FnOnce(&Path)) -> Self {
        Self::with("place", &[], fill)
    }

    /// The same at the place of this name (`below`: over itself), with more words for the program.
    pub fn with(place: &str, words: &[&str], fill: impl FnOnce(&Path)) -> Self {
        let scratch = tempfile::Builder::new().prefix("eke-takeover-").tempdir().unwrap();
        let (backing, place) = (scratch.path().join("below"), scratch.path().join(place));
        std::fs::create_dir_all(&backing).unwrap();
        std::fs::create_dir_all(&place).unwrap();
        fill(&backing);
        let (server, ready) = serve(scratch.path(), &settings(&backing, &place), words);
        Self { backing, place, ready, server, scratch }
    }

    pub fn worker(&self) -> u32 {
        wait_for("a worker", || child_of(self.ready.pid))
    }

    pub fn supervisor(&self) -> u32 {
        self.ready.pid
    }

    /// The process that is there for when the others are not.
    pub fn guard(&self) -> u32 {
        let (supervisor, worker) = (self.supervisor(), self.worker());
        let others = |pid: &u32| session(*pid) == Some(supervisor) && ![supervisor, worker].contains(pid);
        wait_for("the guard", || pids().find(others))
    }

    pub fn is_mounted(&self) -> bool {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        mounts.lines().any(|line| line.split(' ').nth(1) == self.place.to_str())
    }

    /// Waits for the supervisor's end.
    pub fn ended(&mut self) -> ExitStatus {
        wait_for("the supervisor's end", || self.server.try_wait().unwrap())
    }

    pub fn umount(&self) {
        unmount(&self.place, UnmountFlags::empty()).unwrap();
    }

    pub fn said(&self) -> String {
        std::fs::read_to_string(self.scratch.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        while self.is_mounted() && unmount(&self.place, UnmountFlags::DETACH).is_ok() {}
        if std::thread::panicking() {
            eprintln!("eke-cache said:\n{}", self.said());
        }
        let _ = self.server.kill();
        let _ = self.server.wait();
        if let Some(left) = child_of(self.ready.pid) {
            kill(left, Signal::KILL);
        }
    }
}

fn serve(dir: &Path, settings: &Settings, words: &[&str]) -> (Child, Ready) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_eke-cache"))
        .arg("serve")
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(File::create_new(dir.join("log")).unwrap())
        .spawn()
        .unwrap();
    serde_json::to_writer(server.stdin.take().unwrap(), settings).unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let said = || std::fs::read_to_string(dir.join("log")).unwrap_or_default();
    match serde_json::from_str(&line) {
        Ok(Start::Ready(ready)) => (server, ready),
        other => panic!("eke-cache did not start: {other:?}, {}", said()),
    }
}

fn settings(backing: &Path, place: &Path) -> Settings {
    Settings {
        dir: backing.to_owned(),
        place: place.to_owned(),
        memory: Memory::Bytes(Bytes::mib(32)),
        compress: Compress::Async,
        others: false,
        passthrough: PassthroughMode::Never,
        watch: true,
    }
}

pub fn kill(pid: u32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal);
}

/// The process is gone, or a zombie.
pub fn is_gone(pid: u32) -> bool {
    state(pid).is_none_or(|(state, _)| state == 'Z')
}

fn child_of(parent: u32) -> Option<u32> {
    pids().find(|pid| state(*pid).is_some_and(|(state, ppid)| ppid == parent && state != 'Z'))
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok())
}

/// The supervisor begins a session of its own.
fn session(pid: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(3)?.parse().ok()
}

/// State and parent from `/proc/PID/stat`.
fn state(pid: u32) -> Option<(char, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}
