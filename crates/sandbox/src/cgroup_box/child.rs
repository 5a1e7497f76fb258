//! The command as a child, which enters its group before exec.

use std::io::{Read, Seek};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use eke_apply::cgroup::Group;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, set_parent_process_death_signal};

use super::{BoxSpec, Error, Output};

/// A started command.
#[derive(Debug)]
pub(super) struct Running {
    pub child: Child,
    /// Becomes readable when the command ends (Linux 5.3); `None` on older kernels.
    end: Option<OwnedFd>,
    captured: Option<std::fs::File>,
}

/// Starts the command in `group`.
pub(super) fn start(spec: &BoxSpec, group: &Group) -> Result<Running, Error> {
    let Some((program, arguments)) = spec.command.split_first() else {
        return Err(Error::Spec("a box needs a command".to_owned()));
    };
    let failed = |source| Error::Start { command: program.to_string_lossy().into_owned(), source };
    let mut command = Command::new(program);
    command.args(arguments);
    let captured = direct(&mut command, &spec.output).map_err(failed)?;
    enter_before_exec(&mut command, group)?;
    let child = command.spawn().map_err(failed)?;
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let end = pid.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    Ok(Running { child, end, captured })
}

/// Redirects standard output. Captures into a file, not a pipe: a full pipe would stop the command.
fn direct(command: &mut Command, output: &Output) -> std::io::Result<Option<std::fs::File>> {
    match output {
        Output::Inherit => Ok(None),
        Output::ToStderr => {
            command.stdout(std::io::stderr());
            Ok(None)
        }
        Output::Into(sink) => {
            command.stdout(Stdio::from(sink.0.try_clone()?));
            Ok(None)
        }
        Output::Capture => {
            let file = tempfile::tempfile()?;
            command.stdout(Stdio::from(file.try_clone()?));
            Ok(Some(file))
        }
    }
}

#[expect(
    unsafe_code,
    reason = "only between fork and exec can a child enter its group before it uses memory"
)]
fn enter_before_exec(command: &mut Command, group: &Group) -> Result<(), Error> {
    let entry = group.entry()?;
    // SAFETY: the closure calls only write(2) on open descriptors and prctl(2), both async-signal-safe; it neither
    // allocates nor takes a lock.
    unsafe {
        command.pre_exec(move || {
            entry.enter()?;
            Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
        });
    }
    Ok(())
}

impl Running {
    /// Returns when the command has ended, a signal came, or `time` has passed.
    pub fn wait_at_most(&self, time: Duration) {
        let Some(end) = &self.end else {
            return std::thread::sleep(time);
        };
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) };
        let _ = poll(&mut [PollFd::new(end, PollFlags::IN)], Some(&timeout));
    }

    /// Its standard output, if captured.
    pub fn output(&mut self) -> std::io::Result<Option<String>> {
        let Some(file) = &mut self.captured else { return Ok(None) };
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
    }
}
