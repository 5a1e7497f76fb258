//! A shell on one of the ends that answers requests: `ends.sh`, through ssh or on this machine.
//!
//! - this module: its start and end; `requests`: requests and answers; `wire`: bytes through its pipes

mod requests;
mod wire;

use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use super::collect::{Collected, LONGEST_TEXT};
use crate::error::{Error, Result};
use crate::parse::refusal::refusal;

const SCRIPT: &str = include_str!("ends.sh");
const HELLO: &str = "eke-link-1";
/// The longest time to connect without typing.
const CONNECTS_WITHIN: Duration = Duration::from_secs(30);
/// The same if a person types a password.
const TYPES_WITHIN: Duration = Duration::from_secs(180);
/// The longest time from closing its input to its end.
const ENDS_WITHIN: Duration = Duration::from_secs(3);

/// See the module. Dropping it ends what runs on both ends.
#[derive(Debug)]
pub struct Channel<'a> {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    errors: Collected,
    ahead: Vec<u8>,
    /// The end of the host's time.
    most_time: Option<Instant>,
    shutdown: &'a AtomicBool,
}

/// How to open a channel.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'n, 'a> {
    /// The host, for messages.
    pub name: &'n str,
    /// May ssh ask for a password?
    pub may_ask: bool,
    /// A signal sets it.
    pub shutdown: &'a AtomicBool,
}

impl<'a> Channel<'a> {
    /// Starts `command`, which executes a shell, and waits until the shell answers.
    ///
    /// # Errors
    /// ssh's reason, a stalled link, or a far end without a shell.
    pub fn open(mut command: Command, opening: Opening<'_, 'a>) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child =
            command.spawn().map_err(|source| Error::Start { program: program.clone(), source })?;
        let errors = Collected::of(child.stderr.take());
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Error::Start { program, source: std::io::Error::other("it has no pipes") });
        };
        let name = opening.name.to_owned();
        let mut channel = Self {
            name,
            child,
            input: Some(input),
            output,
            errors,
            ahead: Vec::new(),
            most_time: None,
            shutdown: opening.shutdown,
        };
        channel.unblock()?;
        channel.greet(opening.may_ask)?;
        Ok(channel)
    }

    fn unblock(&self) -> Result<()> {
        let unblock = |fd: std::os::fd::BorrowedFd<'_>| fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK);
        let pipes = [Some(self.output.as_fd()), self.input.as_ref().map(AsFd::as_fd)];
        pipes
            .into_iter()
            .flatten()
            .try_for_each(unblock)
            .map_err(|e| Error::Pipe { what: "set up a pipe to", source: e.into() })
    }

    /// Sends the script and waits for its first line. Shell profiles may print anything before it.
    fn greet(&mut self, may_ask: bool) -> Result<()> {
        // ssh reads nothing until it is connected; the script fits into the pipe, so this does not block
        let sent = self.write(SCRIPT.as_bytes(), "it began");
        let patience = if may_ask { TYPES_WITHIN } else { CONNECTS_WITHIN };
        let greeted = sent.and_then(|()| self.hello(Instant::now() + patience));
        match greeted {
            Err(Error::Ended { .. }) => Err(self.why_not(may_ask)),
            other => other,
        }
    }

    fn hello(&mut self, until: Instant) -> Result<()> {
        let mut noise = 0;
        loop {
            let line = self.line_until(until, "the connection came about")?;
            if line.trim() == HELLO {
                return Ok(());
            }
            noise += line.len();
            if noise > LONGEST_TEXT {
                return Err(Error::NoShell {
                    host: self.name.clone(),
                    output: "it prints without end".to_owned(),
                });
            }
        }
    }

    /// ssh exits with 255 if it could not connect, otherwise with the status of the remote command (ssh(1)).
    fn why_not(&mut self, may_ask: bool) -> Error {
        if self.shutdown.load(Ordering::Relaxed) {
            return Error::Interrupted;
        }
        let output = self.finish();
        // it closed its output, so its end is not waited for
        let _ = self.child.kill();
        let status = self.child.wait().ok().and_then(|s| s.code());
        match status {
            Some(status) if status != 255 => {
                let last = output.lines().rev().find(|l| !l.starts_with("debug")).unwrap_or_default();
                Error::NoShell { host: self.name.clone(), output: format!("it ended with {status}: {last}") }
            }
            _ => Error::Refused { host: self.name.clone(), refusal: refusal(&output), may_ask },
        }
    }

    /// Closes its input and returns all that it wrote to standard error.
    pub fn finish(&mut self) -> String {
        self.input = None;
        self.errors.rest(ENDS_WITHIN)
    }

    /// From now on all requests together may take so long.
    pub fn end_by(&mut self, end: Instant) {
        self.most_time = Some(end);
    }

    /// The process on this machine: ssh.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Channel<'_> {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static ON: AtomicBool = AtomicBool::new(false);

    fn here() -> Channel<'static> {
        let opening = Opening { name: "here", may_ask: false, shutdown: &ON };
        Channel::open(Command::new("sh"), opening).unwrap()
    }

    #[test]
    fn a_shell_sends_takes_and_echoes() {
        let mut here = here();
        here.get(1_000_000).unwrap();
        here.put(1_000_000).unwrap();
        here.get(0).unwrap();
        here.put(0).unwrap();
        let echoes = here.echoes(8, Duration::from_secs(60)).unwrap();
        assert_eq!(echoes.len(), 8);
        // it still answers after all this
        assert!(here.facts().unwrap().system.starts_with("Linux"));
    }

    #[test]
    fn a_sample_is_of_the_requested_process() {
        let mut here = here();
        let own = here.sample(Some(std::process::id())).unwrap();
        assert!(own.cpu_ns.is_some() && own.machine_ticks.is_some());
        assert_eq!(here.sample(Some(u32::MAX)).unwrap().cpu_ns, None);
    }

    #[test]
    fn output_before_the_first_answer_is_skipped_and_an_early_end_is_an_error() {
        let opening = Opening { name: "far", may_ask: false, shutdown: &ON };
        let mut noisy = Command::new("sh");
        noisy.args(["-c", "echo Welcome; printf 'no end of line'; echo; exec sh"]);
        Channel::open(noisy, opening).unwrap().get(10).unwrap();
        let mut ends = Command::new("sh");
        ends.args(["-c", "echo 'This account is not available.' >&2; exit 1"]);
        let error = Channel::open(ends, opening).unwrap_err().to_string();
        assert!(error.contains("no POSIX shell") && error.contains("not available"), "{error}");
        let mut refused = Command::new("sh");
        refused.args(["-c", "echo 'a@far: Permission denied (publickey).' >&2; exit 255"]);
        assert!(matches!(Channel::open(refused, opening), Err(Error::Refused { .. })));
    }

    /// A far end that sends without end, or a byte now and then, resets no deadline.
    #[test]
    fn a_far_end_that_always_sends_something_comes_to_an_end() {
        let opening = Opening { name: "far", may_ask: false, shutdown: &ON };
        let far = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("echo eke-link-1; {script}")]);
            let mut far = Channel::open(command, opening).unwrap();
            far.end_by(Instant::now());
            far
        };
        let mut endless = far("exec yes | tr -d '\\n'");
        assert!(matches!(endless.facts(), Err(Error::Stalled { .. })));
        let mut slow = far("while printf x; do sleep 0.1; done");
        assert!(matches!(slow.get(1 << 30), Err(Error::Stalled { .. })));
        assert!(matches!(here_until_now().put(1 << 30), Err(Error::Stalled { .. })));
    }

    fn here_until_now() -> Channel<'static> {
        let mut here = here();
        here.end_by(Instant::now());
        here
    }

    #[test]
    fn a_signal_and_an_end_in_the_middle_are_errors() {
        let stop = AtomicBool::new(false);
        let opening = Opening { name: "far", may_ask: false, shutdown: &stop };
        let mut dies = Command::new("sh");
        dies.args(["-c", "echo eke-link-1; head -c 100 >/dev/null; echo gone >&2"]);
        let mut dies = Channel::open(dies, opening).unwrap();
        assert!(matches!(dies.get(1000), Err(Error::Ended { output, .. }) if output == "gone"));
        let mut silent = Command::new("sh");
        silent.args(["-c", "echo eke-link-1; exec sleep 100"]);
        let mut silent = Channel::open(silent, opening).unwrap();
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(silent.get(1000), Err(Error::Interrupted)));
    }
}
