//! A shell on one of the ends that answers lines: `ends.sh`, through ssh or on this machine.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::error::{Error, Result};
use crate::parse::facts::{Facts, facts};
use crate::parse::refusal::refusal;
use crate::parse::sample::{Sample, sample};

const SCRIPT: &str = include_str!("ends.sh");
const HELLO: &str = "eke-link-1";
/// Nothing for so long, and the link is taken to be broken.
const STALLED_AFTER: Duration = Duration::from_secs(8);
/// How long a connection may take to come about, without somebody who types.
const CONNECTS_WITHIN: Duration = Duration::from_secs(30);
/// Somebody looks for a password.
const TYPES_WITHIN: Duration = Duration::from_secs(180);
/// One whose input is closed ends soon.
const ENDS_WITHIN: Duration = Duration::from_secs(3);
/// A signal is seen so late at most.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// What shells print at their start, and facts; more is a flood.
const LONGEST_TEXT: usize = 4 << 20;
const LINE_BYTES: usize = 64;

/// See the module. Dropping it ends what runs on both ends.
#[derive(Debug)]
pub struct Channel<'a> {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    said: Arc<Mutex<Vec<u8>>>,
    listener: JoinHandle<()>,
    ahead: Vec<u8>,
    shutdown: &'a AtomicBool,
}

/// How one comes about.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'n, 'a> {
    /// The host, for messages.
    pub name: &'n str,
    /// May ssh ask somebody?
    pub may_ask: bool,
    /// Set by a signal.
    pub shutdown: &'a AtomicBool,
}

impl<'a> Channel<'a> {
    /// Starts `command`, which ends in a shell, and waits until that answers.
    ///
    /// # Errors
    /// ssh's reason, a stalled link, or a far end without a shell.
    pub fn open(mut command: Command, opening: Opening<'_, 'a>) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = command.get_program().to_string_lossy().into_owned();
        let mut child =
            command.spawn().map_err(|source| Error::Start { program: program.clone(), source })?;
        let parts = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(output), Some(error)) = parts else {
            return Err(Error::Start { program, source: std::io::Error::other("it has no pipes") });
        };
        let said = Arc::new(Mutex::new(Vec::new()));
        let listener = listen(error, Arc::clone(&said));
        let name = opening.name.to_owned();
        let mut channel = Self {
            name,
            child,
            input: Some(input),
            output,
            said,
            listener,
            ahead: Vec::new(),
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

    /// Sends the script. Profiles may print what they like before it answers.
    fn greet(&mut self, may_ask: bool) -> Result<()> {
        // Until ssh is through it reads nothing; the script fits into the pipe, so that this waits for nobody.
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
                    said: "it prints without end".to_owned(),
                });
            }
        }
    }

    /// ssh ends with 255 if it did not come through, otherwise with the status of what ran there (ssh(1)).
    fn why_not(&mut self, may_ask: bool) -> Error {
        if self.shutdown.load(Ordering::Relaxed) {
            return Error::Interrupted;
        }
        let said = self.last_words();
        // It closed its output; whatever keeps it now is not waited for.
        let _ = self.child.kill();
        let status = self.child.wait().ok().and_then(|s| s.code());
        match status {
            Some(status) if status != 255 => {
                let last = said.lines().rev().find(|l| !l.starts_with("debug")).unwrap_or_default();
                Error::NoShell { host: self.name.clone(), said: format!("it ended with {status}: {last}") }
            }
            _ => Error::Refused { host: self.name.clone(), refusal: refusal(&said), may_ask },
        }
    }

    /// Lets it end, and gives all that it wrote to standard error.
    pub fn last_words(&mut self) -> String {
        self.input = None;
        let until = Instant::now() + ENDS_WITHIN;
        while !self.listener.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
        String::from_utf8_lossy(&self.said.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// The process that this machine sees: ssh.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What this end is.
    ///
    /// # Errors
    /// As [`Channel::open`].
    pub fn facts(&mut self) -> Result<Facts> {
        Ok(facts(&self.text("facts\n")?))
    }

    /// What a process of this end has used; without one, the ssh server.
    ///
    /// # Errors
    /// As [`Channel::open`].
    pub fn sample(&mut self, pid: Option<u32>) -> Result<Sample> {
        let request = pid.map_or("sample\n".to_owned(), |pid| format!("sample {pid}\n"));
        Ok(sample(&self.text(&request)?))
    }

    /// Gets so many bytes from there; how long that took.
    ///
    /// # Errors
    /// As [`Channel::open`].
    pub fn get(&mut self, bytes: u64) -> Result<Duration> {
        let start = Instant::now();
        self.write(format!("send {bytes}\n").as_bytes(), DOWN)?;
        self.discard(bytes)?;
        Ok(start.elapsed())
    }

    /// Puts so many bytes there; how long that took, until they were taken.
    ///
    /// # Errors
    /// As [`Channel::open`].
    pub fn put(&mut self, bytes: u64) -> Result<Duration> {
        let block = vec![0u8; 256 << 10];
        let start = Instant::now();
        self.write(format!("take {bytes}\n").as_bytes(), UP)?;
        let mut left = bytes;
        while left > 0 {
            let n = left.min(block.len() as u64);
            self.write(&block[..n as usize], UP)?;
            left -= n;
        }
        self.expect("taken", UP)?;
        Ok(start.elapsed())
    }

    /// Lines of 64 bytes there and back, one after the other, as long as `most_time` is not over; how long each took.
    ///
    /// # Errors
    /// As [`Channel::open`].
    pub fn echoes(&mut self, count: usize, most_time: Duration) -> Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(count);
        let until = Instant::now() + most_time;
        while times.len() < count && (times.is_empty() || Instant::now() < until) {
            // one dd for a few of them and for the first, which is not counted
            let batch = 1 + 5.min(count - times.len());
            self.write(format!("echo {batch}\n").as_bytes(), ECHO)?;
            for n in 0..batch {
                let start = Instant::now();
                self.write(&[b'.'; LINE_BYTES], ECHO)?;
                self.discard(LINE_BYTES as u64)?;
                // the first one waits for dd to start
                if n > 0 {
                    times.push(start.elapsed());
                }
            }
        }
        Ok(times)
    }

    /// An answer of several lines, without its `end`.
    fn text(&mut self, request: &str) -> Result<String> {
        const DOING: &str = "it was asked what it is";
        self.write(request.as_bytes(), DOING)?;
        let mut text = String::new();
        loop {
            let line = self.line(DOING)?;
            if line == "end" {
                return Ok(text);
            }
            if text.len() > LONGEST_TEXT {
                return Err(Error::Answer {
                    host: self.name.clone(),
                    doing: DOING,
                    said: "without end".to_owned(),
                });
            }
            text.push_str(&line);
            text.push('\n');
        }
    }

    fn expect(&mut self, word: &str, doing: &'static str) -> Result<()> {
        let line = self.line(doing)?;
        if line == word {
            return Ok(());
        }
        let said: String = line.chars().take(80).collect();
        Err(Error::Answer { host: self.name.clone(), doing, said })
    }

    fn line(&mut self, doing: &'static str) -> Result<String> {
        self.line_until(Instant::now() + STALLED_AFTER, doing)
    }

    fn line_until(&mut self, until: Instant, doing: &'static str) -> Result<String> {
        loop {
            if let Some(at) = self.ahead.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.ahead.drain(..=at).collect();
                return Ok(String::from_utf8_lossy(&line[..at]).trim_end_matches('\r').to_owned());
            }
            let mut bytes = [0; 4096];
            let n = self.read(&mut bytes, until, doing)?;
            self.ahead.extend_from_slice(&bytes[..n]);
            if self.ahead.len() > LONGEST_TEXT {
                self.ahead.clear();
            }
        }
    }

    /// Reads so many bytes away.
    fn discard(&mut self, bytes: u64) -> Result<()> {
        let held = bytes.min(self.ahead.len() as u64);
        self.ahead.drain(..held as usize);
        let mut left = bytes - held;
        let mut room = vec![0; 256 << 10];
        while left > 0 {
            let most = left.min(room.len() as u64) as usize;
            left -= self.read(&mut room[..most], Instant::now() + STALLED_AFTER, DOWN)? as u64;
        }
        Ok(())
    }

    fn read(&mut self, room: &mut [u8], until: Instant, doing: &'static str) -> Result<usize> {
        loop {
            match self.output.read(room) {
                Ok(0) => return Err(self.ended(doing)),
                Ok(n) => return Ok(n),
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                    wait(&self.output, PollFlags::IN);
                    self.may_go_on(until, doing)?;
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::Pipe { what: "read from", source }),
            }
        }
    }

    fn write(&mut self, mut bytes: &[u8], doing: &'static str) -> Result<()> {
        let mut until = Instant::now() + STALLED_AFTER;
        while !bytes.is_empty() {
            let Some(input) = &mut self.input else { return Err(self.ended(doing)) };
            match input.write(bytes) {
                Ok(n) => {
                    bytes = &bytes[n..];
                    until = Instant::now() + STALLED_AFTER;
                }
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {
                    wait(input, PollFlags::OUT);
                    self.may_go_on(until, doing)?;
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == std::io::ErrorKind::BrokenPipe => return Err(self.ended(doing)),
                Err(source) => return Err(Error::Pipe { what: "write to", source }),
            }
        }
        Ok(())
    }

    fn may_go_on(&self, until: Instant, doing: &'static str) -> Result<()> {
        if self.shutdown.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        if Instant::now() < until {
            return Ok(());
        }
        Err(Error::Stalled { host: self.name.clone(), doing, seconds: STALLED_AFTER.as_secs() })
    }

    fn ended(&mut self, doing: &'static str) -> Error {
        if self.shutdown.load(Ordering::Relaxed) {
            return Error::Interrupted;
        }
        let said = self.last_words();
        let last = said.lines().rev().find(|l| !l.starts_with("debug") && !l.trim().is_empty());
        Error::Ended { host: self.name.clone(), doing, said: last.unwrap_or_default().trim().to_owned() }
    }
}

const DOWN: &str = "bytes came from there";
const UP: &str = "bytes went there";
const ECHO: &str = "short lines went there and back";

impl Drop for Channel<'_> {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Collects what comes, up to a bound, so that ssh never waits for a reader.
fn listen(mut error: impl Read + Send + 'static, said: Arc<Mutex<Vec<u8>>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(n) = error.read(&mut bytes) {
            if n == 0 {
                return;
            }
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            if said.len() < LONGEST_TEXT {
                said.extend_from_slice(&bytes[..n]);
            }
        }
    })
}

fn wait(fd: &impl AsFd, flags: PollFlags) {
    let _ = poll(&mut [PollFd::new(fd, flags)], Some(&TICK));
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
        // whatever went through before, it still answers
        assert!(here.facts().unwrap().system.starts_with("Linux"));
    }

    #[test]
    fn a_sample_is_of_the_process_that_is_asked_for() {
        let mut here = here();
        let own = here.sample(Some(std::process::id())).unwrap();
        assert!(own.cpu_ns.is_some() && own.machine_ticks.is_some());
        assert_eq!(here.sample(Some(u32::MAX)).unwrap().cpu_ns, None);
    }

    #[test]
    fn noise_before_the_first_answer_is_passed_over_and_an_early_end_is_said() {
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

    #[test]
    fn a_signal_and_an_end_in_the_middle_are_errors() {
        let stop = AtomicBool::new(false);
        let opening = Opening { name: "far", may_ask: false, shutdown: &stop };
        let mut dies = Command::new("sh");
        dies.args(["-c", "echo eke-link-1; head -c 100 >/dev/null; echo gone >&2"]);
        let mut dies = Channel::open(dies, opening).unwrap();
        assert!(matches!(dies.get(1000), Err(Error::Ended { said, .. }) if said == "gone"));
        let mut silent = Command::new("sh");
        silent.args(["-c", "echo eke-link-1; exec sleep 100"]);
        let mut silent = Channel::open(silent, opening).unwrap();
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(silent.get(1000), Err(Error::Interrupted)));
    }
}
