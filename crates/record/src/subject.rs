//! What is recorded, and when it ends.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use eke_linux::Root;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process, pidfd_open, waitid};

use crate::error::{Error, Result};
use crate::marks;

/// Waits after Ctrl-C, which the terminal also sends to the command: then SIGTERM is sent, then the command is left running.
const OWN_END: Duration = Duration::from_secs(1);
const ASKED_END: Duration = Duration::from_secs(4);

/// What to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A command and its children, from start to end.
    Command {
        /// The program and its arguments.
        argv: Vec<OsString>,
        /// Its standard output goes to standard error, since JSON goes to standard output.
        to_stderr: bool,
    },
    /// A process and its descendants until it ends.
    Process(u32),
    /// The machine alone.
    System,
}

impl Subject {
    /// Its name in one line.
    pub fn name(&self, root: &Root) -> String {
        match self {
            Self::Command { argv, .. } => {
                let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
                words.join(" ")
            }
            Self::Process(pid) => {
                let name = root.read(format!("proc/{pid}/comm")).unwrap_or_default();
                format!("process {pid} ({})", name.trim())
            }
            Self::System => "the whole machine".into(),
        }
    }

    /// `command`, `process` or `system`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Command { .. } => "command",
            Self::Process(_) => "process",
            Self::System => "system",
        }
    }

    /// A file name for its recording, without a number and an ending.
    pub fn file_stem(&self) -> String {
        match self {
            Self::Command { argv, .. } => {
                let program = argv.first().and_then(|p| Path::new(p).file_name());
                program.map_or_else(|| "command".into(), |name| name.to_string_lossy().into_owned())
            }
            Self::Process(pid) => format!("pid-{pid}"),
            Self::System => "system".into(),
        }
    }

    /// Fails if the command does not exist, before any file is made.
    ///
    /// # Errors
    /// [`Error::NoCommand`] (an empty one too).
    pub fn check(&self) -> Result<()> {
        let Self::Command { argv, .. } = self else { return Ok(()) };
        let program = argv.first().cloned().unwrap_or_default();
        if exists(&program) { Ok(()) } else { Err(Error::NoCommand(program.to_string_lossy().into_owned())) }
    }
}

/// Searches PATH as execvp(3) does.
fn exists(program: &OsStr) -> bool {
    if program.is_empty() {
        return false;
    }
    if program.as_bytes().contains(&b'/') {
        return Path::new(program).exists();
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    std::env::split_paths(&path).map(|dir| dir.join(program)).any(|file: PathBuf| file.is_file())
}

/// A running command.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    stopping: Option<Instant>,
    asked: bool,
}

impl Running {
    /// Without a socket it marks nothing, also no recording around this one.
    pub(crate) fn start(argv: &[OsString], to_stderr: bool, socket: Option<&Path>) -> Result<Self> {
        let (program, arguments) = argv.split_first().ok_or_else(|| Error::NoCommand(String::new()))?;
        let mut command = Command::new(program);
        command.args(arguments).env_remove(marks::VARIABLE);
        command.envs(socket.map(|socket| (marks::VARIABLE, socket)));
        if to_stderr {
            command.stdout(Stdio::from(std::io::stderr()));
        }
        let child = command
            .spawn()
            .map_err(|source| Error::Start { program: program.to_string_lossy().into_owned(), source })?;
        Ok(Self { child, stopping: None, asked: false })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// True if it has ended, or was left running after `stop`. It is not reaped yet, so that its counters can still be read.
    pub(crate) fn is_over(&mut self, stop: bool) -> bool {
        let Some(pid) = pid(self.child.id()) else { return true };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        if !matches!(waitid(WaitId::Pid(pid), options), Ok(None)) {
            return true;
        }
        if !stop {
            return false;
        }
        let since = self.stopping.get_or_insert_with(Instant::now).elapsed();
        if since >= OWN_END && !self.asked {
            self.asked = true;
            let _ = kill_process(pid, Signal::TERM);
        }
        since >= ASKED_END
    }

    /// How it ended, as text and as exit status (128 plus the signal's number, as in sh). A command that is left running
    /// has no status.
    pub(crate) fn end(&mut self) -> (String, Option<u8>) {
        match self.child.try_wait() {
            Ok(Some(status)) => match (status.code(), status.signal()) {
                (Some(code), _) => (format!("ended with {code}"), u8::try_from(code).ok()),
                (_, Some(signal)) => (format!("ended by signal {signal}"), u8::try_from(128 + signal).ok()),
                _ => ("ended".into(), None),
            },
            _ => ("left running".into(), None),
        }
    }

    /// Waits for the command if the recording fails.
    pub(crate) fn wait(&mut self) {
        let _ = self.child.wait();
    }
}

/// Becomes readable when the process ends (Linux 5.3).
pub(crate) fn end_of(process: u32) -> Option<OwnedFd> {
    pidfd_open(pid(process)?, PidfdFlags::empty()).ok()
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(words: &[&str]) -> Subject {
        Subject::Command { argv: words.iter().map(OsString::from).collect(), to_stderr: false }
    }

    #[test]
    fn what_does_not_exist_is_refused_before_anything_is_made() {
        assert!(command(&["sh", "-c", "true"]).check().is_ok());
        assert!(command(&["/bin/sh"]).check().is_ok());
        for program in ["no-such-command-here", "/no/such/command", ""] {
            let error = command(&[program]).check().unwrap_err();
            assert_eq!(error.start_status(), Some(127), "{program}");
        }
    }

    #[test]
    fn names_are_of_the_thing() {
        let root = Root::at("/nonexistent");
        let subject = command(&["/usr/bin/evince", "a b.pdf"]);
        assert_eq!(
            (subject.name(&root), subject.file_stem()),
            ("/usr/bin/evince a b.pdf".into(), "evince".into())
        );
        assert_eq!(Subject::Process(7).file_stem(), "pid-7");
    }
}
