//! The built `eke-prefetch`, as a running process.
#![allow(dead_code, reason = "no test uses all of it")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use eke_testkit::program::{end_of, kill};
use serde_json::Value;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_eke-prefetch");
/// Longer than anything takes.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A verb of the program with this store.
pub fn command(store: &Path, verb: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args([verb, "--store"]).arg(store);
    command
}

/// cp(1) writes the file: if this process wrote it, a child of another test could inherit the descriptor, and the file could not be executed.
pub fn copy_program(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg(from).arg(to).status().unwrap().success());
}

/// `eke-prefetch run` and its output lines.
pub struct Running {
    pub child: Child,
    lines: Receiver<Value>,
}

impl Running {
    pub fn start(store: &Path, more: &[&str]) -> Self {
        let mut command = command(store, "run");
        let mut child = command.arg("--now-only").args(more).stdout(Stdio::piped()).spawn().unwrap();
        let (to, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line:?}: {e}"));
                if to.send(event).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    pub fn wait(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        self.reported(is_it, PATIENCE)
            .unwrap_or_else(|before| panic!("{what} was not reported, only {before:?}"))
    }

    /// The first such event within a time, or all others until then.
    pub fn reported(&self, is_it: impl Fn(&Value) -> bool, within: Duration) -> Result<Value, Vec<Value>> {
        let until = Instant::now() + within;
        let mut before = Vec::new();
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(event) if is_it(&event) => return Ok(event),
                Ok(event) => before.push(event),
                Err(_) => return Err(before),
            }
        }
    }

    pub fn ready(store: &Path, more: &[&str]) -> (Self, Value) {
        let running = Self::start(store, more);
        let ready = running.wait("ready", |event| event["event"] == "ready");
        (running, ready)
    }

    pub fn end(mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert!(end_of(&mut self.child).success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}

pub fn is_of(event: &Value, kind: &str, program: &Path) -> bool {
    event["event"] == kind && event["program"] == program.display().to_string()
}
