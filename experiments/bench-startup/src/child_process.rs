//! A child process with lines as input and output.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_bench_core::fault::on;
use eke_bench_desktop::desktop::bare::die_with_parent;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::error::{Error, Result};

/// It may take this long to end in order. Then it is killed.
const ENDS_WITHIN: Duration = Duration::from_secs(20);
/// The latest reaction to a signal.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A child process. Drop ends it, by closing its standard input or by its signal.
#[derive(Debug)]
pub struct ChildProcess {
    name: String,
    child: Child,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
    text: Vec<u8>,
    by: Option<Signal>,
}

/// The result of reading a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A line.
    Text(String),
    /// No line in time.
    Nothing,
    /// The output is closed: the process ended.
    Closed,
}

impl ChildProcess {
    /// Starts the process in a process group of its own, so that signals of the terminal do not reach it. `by` is the signal that ends
    /// it, also when the calling thread dies. Without a signal it ends with its standard input.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(name: &str, command: &mut Command, by: Option<Signal>) -> Result<Self> {
        let program = std::path::PathBuf::from(command.get_program());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
        if let Some(signal) = by {
            die_with_parent(command, signal);
        }
        let mut child = command.spawn().map_err(on("start", &program))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Ok(Self { name: name.to_owned(), child, input, output, text: Vec::new(), by })
    }

    /// Writes a line to its input. If it has ended, its output shows that.
    pub fn send(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        }
    }

    /// Reads its next line, or waits until `until`.
    ///
    /// # Errors
    /// A signal came.
    pub fn line(&mut self, until: Instant, shutdown: &AtomicBool) -> Result<Line> {
        loop {
            if let Some(at) = self.text.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.text.drain(..=at).collect();
                return Ok(Line::Text(String::from_utf8_lossy(&line[..at]).into_owned()));
            }
            if shutdown.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            if Instant::now() >= until {
                return Ok(Line::Nothing);
            }
            if !self.more() {
                return Ok(Line::Closed);
            }
        }
    }

    /// Closes its input, and reads its output to the end.
    ///
    /// # Errors
    /// A signal came.
    pub fn rest(&mut self, until: Instant, shutdown: &AtomicBool) -> Result<Vec<String>> {
        self.input = None;
        let mut lines = Vec::new();
        while let Line::Text(line) = self.line(until, shutdown)? {
            lines.push(line);
        }
        Ok(lines)
    }

    /// Waits a moment for more output. Returns whether it is still open.
    fn more(&mut self) -> bool {
        let Some(output) = &mut self.output else { return false };
        let ready = poll(&mut [PollFd::new(output, PollFlags::IN)], Some(&TICK));
        if !matches!(ready, Ok(n) if n > 0) {
            return true;
        }
        let mut bytes = [0; 4096];
        match output.read(&mut bytes) {
            Ok(n) if n > 0 => {
                self.text.extend_from_slice(&bytes[..n]);
                true
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => true,
            _ => false,
        }
    }

    /// The CPU time of all its threads, also of ended ones, in seconds.
    ///
    /// # Errors
    /// The kernel's answer: it has ended.
    #[expect(unsafe_code, reason = "clock_getcpuclockid(3) has no safe wrapper in the crates that are here")]
    pub fn cpu_s(&self) -> Result<f64> {
        let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
        let pid = i32::try_from(self.child.id()).unwrap_or(-1);
        // SAFETY: the pointer is to a value that lives through the call.
        let failed = unsafe { libc::clock_getcpuclockid(pid, &mut clock) };
        // SAFETY: likewise; any number is a clock, or an error.
        let known = failed == 0 && unsafe { libc::clock_gettime(clock, &mut time) } == 0;
        if known {
            return Ok(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9);
        }
        Err(Error::Launch { program: self.name.clone(), why: "its CPU time cannot be read".to_owned() })
    }

    /// Has it ended by itself?
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Ends it and waits for that.
    ///
    /// # Errors
    /// It had to be killed.
    pub fn end(mut self) -> Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        if self.has_ended() {
            return Ok(());
        }
        self.input = None;
        if let Some(signal) = self.by {
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
        let until = Instant::now() + ENDS_WITHIN;
        while Instant::now() < until {
            if self.has_ended() {
                return Ok(());
            }
            // A full pipe must not keep it from ending.
            self.more();
            std::thread::sleep(Duration::from_millis(2));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let why = format!("did not end within {} s and was killed", ENDS_WITHIN.as_secs());
        Err(Error::Launch { program: self.name.clone(), why })
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        let _ = self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str, by: Option<Signal>) -> ChildProcess {
        ChildProcess::start("shell", Command::new("/bin/sh").args(["-c", text]), by).unwrap()
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn lines_come_one_by_one_until_it_ends() {
        let on = AtomicBool::new(false);
        let mut process = shell("read a; echo got $a; echo two; read b; echo three", None);
        process.send("one");
        assert_eq!(process.line(later(), &on).unwrap(), Line::Text("got one".into()));
        assert_eq!(process.line(later(), &on).unwrap(), Line::Text("two".into()));
        assert_eq!(process.line(Instant::now(), &on).unwrap(), Line::Nothing);
        assert_eq!(process.rest(later(), &on).unwrap(), ["three"]);
        assert_eq!(process.line(later(), &on).unwrap(), Line::Closed);
        process.end().unwrap();
    }

    #[test]
    fn a_signal_ends_the_wait_and_dropping_ends_the_process() {
        let mut process = shell("exec sleep 60", Some(Signal::KILL));
        let pid = process.child.id();
        assert!(matches!(process.line(later(), &AtomicBool::new(true)), Err(Error::Interrupted)));
        drop(process);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}
