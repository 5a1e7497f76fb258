//! The other end of [`super::launch`]: starts that process before the launch, so that reads are counted for the launch alone.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::child_process::{ChildProcess, Line};
use super::error::{Error, Result};
use super::launch::{Event, Spec, Started};
use super::reader;

/// The launcher may take this long to be ready.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Added to the program's own limit.
const SPARE: Duration = Duration::from_secs(30);

/// The task of a process of `eke-bench lab startup`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// One launch.
    Launch(Spec),
    /// The second reader on the disk.
    Read(reader::Spec),
}

impl Task {
    /// Its command.
    pub fn command(&self, eke: &Path) -> Command {
        let mut command = Command::new(eke);
        command.args(["lab", "startup"]).arg(serde_json::to_string(self).unwrap_or_default());
        command.stderr(Stdio::inherit());
        command
    }
}

/// A prepared launch.
pub struct Ready<'a> {
    program: String,
    process: ChildProcess,
    patience: Duration,
    shutdown: &'a AtomicBool,
}

/// A running program. Drop ends it and its children.
#[derive(Debug)]
pub struct Running {
    /// The measurements of its start.
    pub started: Started,
    process: ChildProcess,
}

/// Starts the process of a launch and waits until it is in the tree. `traced` is the output file of strace.
///
/// # Errors
/// The tree cannot be entered, or a signal came.
pub fn prepare<'a>(
    eke: &Path,
    name: &str,
    spec: &Spec,
    key: &Path,
    traced: Option<&Path>,
    shutdown: &'a AtomicBool,
) -> Result<Ready<'a>> {
    let mut command = Task::Launch(spec.clone()).command(eke);
    if let Some(file) = traced {
        command = under_strace(&command, file);
    }
    command.env("XAUTHORITY", key);
    let process = ChildProcess::start(name, &mut command, None)?;
    let patience = Duration::from_secs(spec.patience_s);
    let mut ready = Ready { program: name.to_owned(), process, patience, shutdown };
    match ready.event(READY_WITHIN)? {
        Event::Ready {} => Ok(ready),
        Event::Failed { why } => Err(ready.failed(why)),
        Event::Started(_) => Err(ready.failed("it started before it was asked to".to_owned())),
    }
}

fn under_strace(command: &Command, file: &Path) -> Command {
    let mut traced = Command::new("strace");
    traced.args(["-f", "-T", "-y", "-s", "0", "-e"]).arg(format!("trace={}", super::calls::TRACED));
    traced.arg("-o").arg(file).arg("--").arg(command.get_program()).args(command.get_args());
    traced
}

impl Ready<'_> {
    /// Starts the program, and waits until its launch is over.
    ///
    /// # Errors
    /// The launch failed.
    pub fn go(mut self) -> Result<Running> {
        self.process.send("go");
        match self.event(self.patience + SPARE)? {
            Event::Started(started) => Ok(Running { started, process: self.process }),
            Event::Failed { why } => Err(self.failed(why)),
            Event::Ready {} => Err(self.failed("its launcher is ready twice".to_owned())),
        }
    }

    fn event(&mut self, within: Duration) -> Result<Event> {
        match self.process.line(Instant::now() + within, self.shutdown)? {
            Line::Text(line) => serde_json::from_str(&line)
                .map_err(|e| self.failed(format!("its launcher printed an unknown event ({e}): {line}"))),
            Line::Nothing => {
                Err(self.failed(format!("its launcher printed nothing for {} s", within.as_secs())))
            }
            Line::Closed => Err(self.failed("its launcher ended".to_owned())),
        }
    }

    fn failed(&self, why: String) -> Error {
        Error::Launch { program: self.program.clone(), why }
    }
}

impl Running {
    /// Ends the program and its children, and waits for them.
    ///
    /// # Errors
    /// A process could not be ended.
    pub fn end(self) -> Result<()> {
        self.process.end()
    }
}

/// The path of a document in the tree.
pub fn document_path(name: &str) -> PathBuf {
    Path::new(eke_bench_core::test_image::DOCUMENTS).join(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_one_word_of_json() {
        let task =
            Task::Read(reader::Spec { device: "/dev/loop0".into(), bytes: 4096, every_ms: 50, seed: 1 });
        let command = task.command(Path::new("/usr/bin/eke"));
        let words: Vec<_> = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
        assert_eq!(words[..2], ["lab", "startup"]);
        assert_eq!(serde_json::from_str::<Task>(&words[2]).unwrap(), task);
    }
}
