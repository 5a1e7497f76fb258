//! A real X session, once plain and once compressed: its bytes, and the CPU time of both ends.

use std::io::Write;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::channel::Channel;
use super::collect::Collected;
use super::ssh::Ssh;
use crate::compress::{Compression, Session, judge};
use crate::error::{Error, Result};
use crate::parse::sample::Sample;
use crate::parse::traffic::traffic;
use crate::suite::Suite;

/// The X program to run on the far end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct X11Command {
    /// A line for the far end's shell.
    pub command: String,
    /// The longest time of each run.
    pub time: Duration,
}

/// Both runs, and the decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct X11 {
    /// The command line.
    pub command: String,
    /// The run without compression.
    pub plain: Session,
    /// The run with compression.
    pub compressed: Session,
    /// The effect of compression.
    pub compression: Option<Compression>,
    /// Why that is unknown.
    pub why_not: Option<String>,
}

/// The time to connect, and for the program to end.
const MORE_TIME: Duration = Duration::from_secs(30);
const SAMPLE_EVERY: Duration = Duration::from_millis(250);

/// Both ends of the session.
pub(super) struct X11Ends<'c, 'a> {
    pub ssh: &'c Ssh,
    pub host: &'c str,
    pub suite: &'c Suite,
    /// A shell on this machine, and one on the far end.
    pub here: &'c mut Channel<'a>,
    pub there: &'c mut Channel<'a>,
    pub shutdown: &'a AtomicBool,
}

/// Runs the program twice.
///
/// # Errors
/// ssh failed, or a signal came. A program that does not start or draws nothing is no error; the result has the reason.
pub(super) fn measure(ends: &mut X11Ends<'_, '_>, program: &X11Command, link_mb_per_s: f64) -> Result<X11> {
    let (plain, compressed) = (once(ends, program, false)?, once(ends, program, true)?);
    let judged = plain.clone().and_then(|plain| judge(&plain, &compressed.clone()?, link_mb_per_s));
    Ok(X11 {
        command: program.command.clone(),
        plain: plain.unwrap_or_default(),
        compressed: compressed.unwrap_or_default(),
        compression: judged.as_ref().ok().copied(),
        why_not: judged.err(),
    })
}

/// One run; the inner error is the program's failure as a sentence.
fn once(
    ends: &mut X11Ends<'_, '_>,
    program: &X11Command,
    compresses: bool,
) -> Result<Result<Session, String>> {
    let mut command = connection(ends, compresses);
    let mut child = command.spawn().map_err(|e| ends.ssh.cannot_start(e))?;
    // an ssh that has ended already prints the reason itself
    let _ = child.stdin.take().map(|mut input| input.write_all(script(program).as_bytes()));
    let (out, errors) = (Collected::of(child.stdout.take()), Collected::of(child.stderr.take()));
    let cpu = watch(ends, &mut child, &out, program.time + MORE_TIME);
    let (status, cpu) = match cpu {
        Ok(found) => found,
        Err(e) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(e);
        }
    };
    let errors = errors.text();
    let Some(traffic) = traffic(&errors).filter(|_| status.code() != Some(255)) else {
        let refusal = crate::parse::refusal::refusal(&errors);
        return Err(Error::Refused { host: ends.host.to_owned(), refusal, may_ask: ends.ssh.may_ask });
    };
    if let Some(why) = unfit(status, &errors) {
        return Ok(Err(why));
    }
    let (raw_bytes, wire_bytes) = traffic.compressed.unwrap_or((traffic.wire_bytes, traffic.wire_bytes));
    if compresses && traffic.compressed.is_none() {
        return Ok(Err("the far end does not compress (Compression in sshd_config(5))".to_owned()));
    }
    Ok(Ok(Session { raw_bytes, wire_bytes, here_cpu_s: cpu.0, there_cpu_s: cpu.1 }))
}

/// A script for `sh` on its standard input, so that it does not depend on the login shell. It prints its parent's number and executes the program under
/// timeout(1), so that ssh ends and prints its traffic.
fn script(program: &X11Command) -> String {
    let quoted = program.command.replace('\'', r"'\''");
    let seconds = program.time.as_secs().max(1);
    format!("echo \"$PPID\"; exec timeout -k 2 {seconds} sh -c '{quoted}' </dev/null >/dev/null\n")
}

fn connection(ends: &X11Ends<'_, '_>, compresses: bool) -> Command {
    let mut extra = vec!["-T", "-v", "-X"];
    extra.extend(compresses.then_some("-C"));
    let mut command = ends.ssh.connection(ends.host, Some(ends.suite), &extra, "exec sh");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// CPU seconds here and there, from the first output to the last sample before the end.
type Cpu = (Option<f64>, Option<f64>);

fn watch(
    ends: &mut X11Ends<'_, '_>,
    child: &mut Child,
    out: &Collected,
    most: Duration,
) -> Result<(ExitStatus, Cpu)> {
    let until = Instant::now() + most;
    let mut spans: Option<(Span, Span)> = None;
    loop {
        if ends.shutdown.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        if let Some(status) = child.try_wait().map_err(|source| Error::Pipe { what: "wait for", source })? {
            let cpu = spans.map_or((None, None), |(here, there)| (here.cpu_s(), there.cpu_s()));
            return Ok((status, cpu));
        }
        if Instant::now() >= until {
            let doing = "an X session ran";
            return Err(Error::Stalled { host: ends.host.to_owned(), doing });
        }
        if let Ok(server) = out.text().trim().parse::<u32>() {
            let (here, there) = (ends.here.sample(Some(child.id()))?, ends.there.sample(Some(server))?);
            let (from, to) = spans.get_or_insert((Span::from(here), Span::from(there)));
            from.until(here);
            to.until(there);
        }
        std::thread::sleep(SAMPLE_EVERY);
    }
}

/// The first sample, and the last one in which the process existed.
#[derive(Clone, Copy)]
struct Span(Sample, Sample);

impl Span {
    fn from(sample: Sample) -> Self {
        Self(sample, sample)
    }

    fn until(&mut self, sample: Sample) {
        if sample.cpu_ns.is_some() {
            self.1 = sample;
        }
    }

    fn cpu_s(&self) -> Option<f64> {
        self.1.since(&self.0).used().cpu_s
    }
}

/// The reason why a session does not count. timeout(1) exits with 124 if it ended the program, a shell with 127 if the program does not exist.
fn unfit(status: ExitStatus, errors: &str) -> Option<String> {
    if errors.contains("X11 forwarding request failed") {
        return Some(
            "the far end forwards no X11 (X11Forwarding in sshd_config(5), and xauth there)".to_owned(),
        );
    }
    let code = status.code().unwrap_or(-1);
    if matches!(code, 0 | 124 | 137 | 143) {
        return None;
    }
    let last = errors.lines().rev().map(str::trim).find(|line| {
        let is_sshs =
            ["debug1:", "Transferred:", "Bytes per second:"].iter().any(|own| line.starts_with(own));
        !line.is_empty() && !is_sshs
    });
    Some(format!("the program ended with {code}: {}", last.unwrap_or("without a message")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn the_failure_of_a_program_is_reported() {
        let status = |code: i32| ExitStatus::from_raw(code << 8);
        let errors = "debug1: x\r\nsh: 1: xeyes: not found\r\nTransferred: sent 1, received 2 bytes\r\n";
        assert_eq!(
            unfit(status(127), errors).unwrap(),
            "the program ended with 127: sh: 1: xeyes: not found"
        );
        assert_eq!((unfit(status(124), errors), unfit(status(0), "")), (None, None));
        assert!(unfit(status(0), "X11 forwarding request failed on channel 0").unwrap().contains("xauth"));
    }

    #[test]
    fn a_command_reaches_the_far_shell_unchanged() {
        static ON: AtomicBool = AtomicBool::new(false);
        let opening = super::super::channel::Opening { name: "here", may_ask: false, shutdown: &ON };
        let (mut here, mut there) = (
            Channel::open(Command::new("sh"), opening).unwrap(),
            Channel::open(Command::new("sh"), opening).unwrap(),
        );
        let ends = X11Ends {
            ssh: &Ssh::default(),
            host: "far",
            suite: &Suite::new("aes128-gcm@openssh.com", None),
            here: &mut here,
            there: &mut there,
            shutdown: &ON,
        };
        let program = X11Command { command: "xterm -e 'ls -R /'".into(), time: Duration::from_secs(7) };
        let command = connection(&ends, true);
        let words: Vec<String> = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
        assert!(words.contains(&"-C".to_owned()) && words.contains(&"-X".to_owned()), "{words:?}");
        assert_eq!(words.last().unwrap(), "exec sh");
        let script = script(&program);
        let line = script.trim_end();
        assert!(
            line.ends_with(r"timeout -k 2 7 sh -c 'xterm -e '\''ls -R /'\''' </dev/null >/dev/null"),
            "{line}"
        );
    }
}
