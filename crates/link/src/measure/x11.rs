//! A real X session, once as it is and once compressed: what it moved, and what that cost both ends.

use std::io::{Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::channel::{Channel, listen};
use super::ssh::Ssh;
use crate::compress::{Compression, Session, judge};
use crate::error::{Error, Result};
use crate::parse::sample::Sample;
use crate::parse::traffic::traffic;
use crate::suite::Suite;

/// What is to run there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// A line for the far end's shell.
    pub command: String,
    /// How long it runs at most, each time.
    pub time: Duration,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct X11 {
    /// What ran.
    pub command: String,
    /// As it is.
    pub plain: Session,
    /// Compressed.
    pub packed: Session,
    /// Is it worth it?
    pub compression: Option<Compression>,
    /// Why that cannot be said.
    pub why_not: Option<String>,
}

/// Connecting, and a program that takes its time to end.
const MORE_TIME: Duration = Duration::from_secs(30);
const LOOKS_EVERY: Duration = Duration::from_millis(250);

/// Who takes part.
pub(super) struct Stage<'c, 'a> {
    pub ssh: &'c Ssh,
    pub host: &'c str,
    pub suite: &'c Suite,
    /// A shell on this machine, and one on the far end.
    pub here: &'c mut Channel<'a>,
    pub there: &'c mut Channel<'a>,
    pub shutdown: &'a AtomicBool,
}

/// Runs it twice.
///
/// # Errors
/// ssh's, or a signal. A program that cannot be run, or draws nothing, is no error of the measurement: it is said in the result.
pub(super) fn measure(stage: &mut Stage<'_, '_>, wanted: &Wanted, link_mb_per_s: f64) -> Result<X11> {
    let (plain, packed) = (once(stage, wanted, false)?, once(stage, wanted, true)?);
    let judged = plain.clone().and_then(|plain| judge(&plain, &packed.clone()?, link_mb_per_s));
    Ok(X11 {
        command: wanted.command.clone(),
        plain: plain.unwrap_or_default(),
        packed: packed.unwrap_or_default(),
        compression: judged.as_ref().ok().copied(),
        why_not: judged.err(),
    })
}

/// One run; what was wrong with the program in words.
fn once(stage: &mut Stage<'_, '_>, wanted: &Wanted, packs: bool) -> Result<Result<Session, String>> {
    let mut command = connection(stage, packs);
    let mut child = command.spawn().map_err(|e| stage.ssh.cannot_start(e))?;
    // an ssh that ended already says why itself
    let _ = child.stdin.take().map(|mut input| input.write_all(script(wanted).as_bytes()));
    let (out, said) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let cpu = watch(stage, &mut child, &out, wanted.time + MORE_TIME);
    let (status, cpu) = match cpu {
        Ok(found) => found,
        Err(e) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(e);
        }
    };
    let said = text(&said);
    let Some(traffic) = traffic(&said).filter(|_| status.code() != Some(255)) else {
        let refusal = crate::parse::refusal::refusal(&said);
        return Err(Error::Refused { host: stage.host.to_owned(), refusal, may_ask: stage.ssh.may_ask });
    };
    if let Some(why) = unfit(status, &said) {
        return Ok(Err(why));
    }
    let (raw_bytes, wire_bytes) = traffic.compressed.unwrap_or((traffic.wire_bytes, traffic.wire_bytes));
    if packs && traffic.compressed.is_none() {
        return Ok(Err("the far end does not compress (Compression in sshd_config(5))".to_owned()));
    }
    Ok(Ok(Session { raw_bytes, wire_bytes, here_cpu_s: cpu.0, there_cpu_s: cpu.1 }))
}

/// For `sh` on its standard input, so that no login shell has to understand it: it says whose child it is, and becomes the program; timeout(1)
/// ends that, so that ssh comes to its end and says what it moved.
fn script(wanted: &Wanted) -> String {
    let quoted = wanted.command.replace('\'', r"'\''");
    let seconds = wanted.time.as_secs().max(1);
    format!("echo \"$PPID\"; exec timeout -k 2 {seconds} sh -c '{quoted}' </dev/null >/dev/null\n")
}

fn connection(stage: &Stage<'_, '_>, packs: bool) -> Command {
    let mut extra = vec!["-T", "-v", "-X"];
    extra.extend(packs.then_some("-C"));
    let mut command = stage.ssh.connection(stage.host, Some(stage.suite), &extra, "exec sh");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

type Said = Arc<Mutex<Vec<u8>>>;

fn collect(pipe: Option<impl Read + Send + 'static>) -> Said {
    let said = Said::default();
    if let Some(pipe) = pipe {
        listen(pipe, Arc::clone(&said));
    }
    said
}

fn text(said: &Said) -> String {
    String::from_utf8_lossy(&said.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
}

/// CPU seconds here and there, from the first sign of life to the last look before the end.
type Cpu = (Option<f64>, Option<f64>);

fn watch(
    stage: &mut Stage<'_, '_>,
    child: &mut Child,
    out: &Said,
    most: Duration,
) -> Result<(ExitStatus, Cpu)> {
    let until = Instant::now() + most;
    let mut spans: Option<(Span, Span)> = None;
    loop {
        if stage.shutdown.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        if let Some(status) = child.try_wait().map_err(|source| Error::Pipe { what: "wait for", source })? {
            let cpu = spans.map_or((None, None), |(here, there)| (here.cpu_s(), there.cpu_s()));
            return Ok((status, cpu));
        }
        if Instant::now() >= until {
            let doing = "an X session ran";
            return Err(Error::Stalled { host: stage.host.to_owned(), doing, seconds: most.as_secs() });
        }
        if let Ok(server) = text(out).trim().parse::<u32>() {
            let (here, there) = (stage.here.sample(Some(child.id()))?, stage.there.sample(Some(server))?);
            let (from, to) = spans.get_or_insert((Span::from(here), Span::from(there)));
            from.until(here);
            to.until(there);
        }
        std::thread::sleep(LOOKS_EVERY);
    }
}

/// The first sample and the last one in which the process was there.
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

/// timeout(1) ends with 124 if it ended the program, a shell with 127 if there is none.
fn unfit(status: ExitStatus, said: &str) -> Option<String> {
    if said.contains("X11 forwarding request failed") {
        return Some(
            "the far end forwards no X11 (X11Forwarding in sshd_config(5), and xauth there)".to_owned(),
        );
    }
    let code = status.code().unwrap_or(-1);
    if matches!(code, 0 | 124 | 137 | 143) {
        return None;
    }
    let last = said.lines().rev().map(str::trim).find(|line| {
        let is_sshs =
            ["debug1:", "Transferred:", "Bytes per second:"].iter().any(|own| line.starts_with(own));
        !line.is_empty() && !is_sshs
    });
    Some(format!("the program ended with {code}: {}", last.unwrap_or("it said nothing")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn what_is_wrong_with_a_program_is_said() {
        let status = |code: i32| ExitStatus::from_raw(code << 8);
        let said = "debug1: x\r\nsh: 1: xeyes: not found\r\nTransferred: sent 1, received 2 bytes\r\n";
        assert_eq!(unfit(status(127), said).unwrap(), "the program ended with 127: sh: 1: xeyes: not found");
        assert_eq!((unfit(status(124), said), unfit(status(0), "")), (None, None));
        assert!(unfit(status(0), "X11 forwarding request failed on channel 0").unwrap().contains("xauth"));
    }

    #[test]
    fn a_command_reaches_the_far_shell_as_it_is() {
        static ON: AtomicBool = AtomicBool::new(false);
        let opening = super::super::channel::Opening { name: "here", may_ask: false, shutdown: &ON };
        let (mut here, mut there) = (
            Channel::open(Command::new("sh"), opening).unwrap(),
            Channel::open(Command::new("sh"), opening).unwrap(),
        );
        let stage = Stage {
            ssh: &Ssh::default(),
            host: "far",
            suite: &Suite::new("aes128-gcm@openssh.com", None),
            here: &mut here,
            there: &mut there,
            shutdown: &ON,
        };
        let wanted = Wanted { command: "xterm -e 'ls -R /'".into(), time: Duration::from_secs(7) };
        let command = connection(&stage, true);
        let words: Vec<String> = command.get_args().map(|a| a.to_string_lossy().into_owned()).collect();
        assert!(words.contains(&"-C".to_owned()) && words.contains(&"-X".to_owned()), "{words:?}");
        assert_eq!(words.last().unwrap(), "exec sh");
        let script = script(&wanted);
        let line = script.trim_end();
        assert!(
            line.ends_with(r"timeout -k 2 7 sh -c 'xterm -e '\''ls -R /'\''' </dev/null >/dev/null"),
            "{line}"
        );
    }
}
