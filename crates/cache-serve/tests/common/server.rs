//! The processes of one mount: the real `eke-cache`. Drop kills its supervisor.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use eke_cache_mounts::settings::Settings;
use eke_cache_mounts::status::{Ready, Refusal, Start};
use eke_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};

use super::LONG;

/// A running `eke-cache serve`.
pub struct Server {
    /// What it reported at the start.
    pub ready: Ready,
    child: Child,
    /// Its standard error.
    log: File,
}

impl Server {
    /// Mounts and serves. `args` are further arguments; `limits` are of prlimit(1), for the caller of the program.
    pub fn start(settings: &Settings, args: &[&str], limits: &[&str]) -> Result<Self, Refusal> {
        let program = env!("CARGO_BIN_EXE_eke-cache");
        let mut command = Command::new(if limits.is_empty() { program } else { "prlimit" });
        if !limits.is_empty() {
            command.args(limits).arg(program);
        }
        command.arg("serve").args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let log = tempfile::tempfile().unwrap();
        let mut child = command.stderr(log.try_clone().unwrap()).spawn().unwrap();
        serde_json::to_writer(child.stdin.take().unwrap(), settings).unwrap();
        let line = first_line(child.stdout.take().unwrap());
        match line.as_deref().map(serde_json::from_str) {
            Some(Ok(Start::Ready(ready))) => Ok(Self { ready, child, log }),
            Some(Ok(Start::Error(refusal))) => {
                eke_testkit::program::end_of(&mut child);
                Err(refusal)
            }
            _ => {
                eke_testkit::program::kill(&mut child);
                panic!("eke-cache did not start: {line:?}, {}", text(&log))
            }
        }
    }

    /// The supervisor's process.
    pub fn supervisor(&self) -> u32 {
        self.ready.pid
    }

    /// The worker's process. Waits for the next worker if one has died.
    pub fn worker(&self) -> u32 {
        wait_for("a worker", || self.worker_now())
    }

    /// The worker's process, if there is one now.
    pub fn worker_now(&self) -> Option<u32> {
        let parent = self.supervisor();
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
        let is_worker = |pid: &u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.contains("(eke-cache-work) ") && !stat.contains(") Z ")
        };
        children.split_whitespace().filter_map(|pid| pid.parse().ok()).find(is_worker)
    }

    /// A child of the supervisor by its name, of which the kernel has 15 letters.
    pub fn child_named(&self, name: &str) -> Option<u32> {
        let parent = self.supervisor();
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).ok()?;
        let is_named = |pid: &u32| {
            let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            comm.trim_end() == name
        };
        children.split_whitespace().filter_map(|pid| pid.parse().ok()).find(is_named)
    }

    /// The guard's process: the third one of the supervisor's session.
    pub fn guard(&self) -> u32 {
        let (supervisor, worker) = (self.supervisor(), self.worker());
        let is_guard = |pid: &u32| session(*pid) == Some(supervisor) && ![supervisor, worker].contains(pid);
        wait_for("the guard", || pids().find(is_guard))
    }

    /// The supervisor's exit status, if it has exited.
    pub fn exit_status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Its log lines so far.
    pub fn log(&self) -> String {
        text(&self.log)
    }

    /// Does the supervisor exit within so many hundredths of a second?
    pub fn exits_within(&mut self, hundredths: u32) -> bool {
        (0..hundredths).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            self.exit_status().is_some()
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        eke_testkit::program::kill(&mut self.child);
    }
}

/// From the start, whatever the programs that write to the same open file have as their position.
fn text(log: &File) -> String {
    let mut bytes = vec![0; usize::try_from(log.metadata().unwrap().len()).unwrap()];
    let len = log.read_at(&mut bytes, 0).unwrap();
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}

fn first_line(from: impl Read + Send + 'static) -> Option<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let mut from = BufReader::new(from);
        let mut line = String::new();
        let read = from.read_line(&mut line);
        let _ = sender.send(read.is_ok_and(|n| n > 0).then_some(line));
        // Further output must not block the program.
        let _ = std::io::copy(&mut from, &mut std::io::sink());
    });
    receiver.recv_timeout(LONG).ok().flatten()
}

pub fn kill(pid: u32, signal: Signal) {
    let _ = kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal);
}

/// A process that is stopped until this is dropped, also when a test fails.
pub struct Stopped(u32);

impl Stopped {
    pub fn new(pid: u32) -> Self {
        kill(pid, Signal::STOP);
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        kill(self.0, Signal::CONT);
    }
}

/// The process is gone, or a zombie.
pub fn is_gone(pid: u32) -> bool {
    stat_field(pid, 0).is_none_or(|state| state == "Z")
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok())
}

/// The session of a process. The supervisor begins one of its own.
fn session(pid: u32) -> Option<u32> {
    stat_field(pid, 3)?.parse().ok()
}

/// A field of `/proc/PID/stat`, counted from the one after the name.
fn stat_field(pid: u32, field: usize) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(field).map(str::to_owned)
}
