//! eke's own: the program `eke-prefetch` beside `eke`.
//!
//! `eke-prefetch run --store DIR --now-only [--no-ahead] [--no-exec]` stays, learns launches and reads at exec; `eke-prefetch ahead --store DIR
//! PROGRAM...` reads the file sets of these programs now. Both print events as lines of JSON. Programs have the names that eke-prefetch
//! gave them when it learned them: it sees them from outside of the tree.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use eke_bench_core::fault::on;
use eke_bench_core::test_image::Scratch;
use eke_linux::Root;
use rustix::process::Signal;
use serde_json::Value;

use super::Prefetcher;
use crate::child_process::{ChildProcess, Line};
use crate::error::{Error, Result};
use crate::fixture::{DiskFixture, How};
use crate::programs::Program;

const NAME: &str = "eke-prefetch";
/// Cold, warm, cold: one launch does not show everything that a program reads.
const LAUNCHES: [bool; 3] = [true, false, true];
/// A launch is learned and written when nothing new is touched for a while.
const LEARNED_WITHIN: Duration = Duration::from_secs(40);
/// Its tracer is attached by then.
const STARTS_WITHIN: Duration = Duration::from_secs(20);
const MEASURES_WITHIN: Duration = Duration::from_secs(3);
const QUIET_WITHIN: Duration = Duration::from_secs(60);
/// eke-prefetch ignores a program that was started more recently: its files are in memory, except in an experiment that made them cold.
const FORGETS_WITHIN: Duration = Duration::from_secs(11);
const READ_WITHIN: Duration = Duration::from_secs(300);

/// See the module.
pub struct Eke {
    program: PathBuf,
    dir: Scratch,
    /// Its names of programs.
    names: BTreeMap<&'static str, String>,
    daemon: Option<ChildProcess>,
}

impl Eke {
    /// Its path beside the running program.
    pub fn beside(eke: &Path) -> PathBuf {
        eke.with_file_name(NAME)
    }

    /// Checks whether it is installed.
    ///
    /// # Errors
    /// The program is missing.
    pub fn check(eke: &Path) -> Result<()> {
        if Self::beside(eke).is_file() {
            return Ok(());
        }
        Err(Error::Usage(format!("{NAME} is not beside {}; `make build` puts it there", eke.display())))
    }

    /// A prefetcher that has learned nothing.
    ///
    /// # Errors
    /// The directory of its store cannot be made.
    pub fn new(root: &Root, eke: &Path) -> Result<Self> {
        Ok(Self {
            program: Self::beside(eke),
            dir: Scratch::in_run(root)?,
            names: BTreeMap::new(),
            daemon: None,
        })
    }

    fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    /// Starts the daemon, and waits for its first line.
    fn run(&mut self, fixture: &DiskFixture<'_>, without: &[&str]) -> Result<()> {
        self.rest()?;
        let mut command = Command::new(&self.program);
        command
            .args(["run", "--now-only", "--store"])
            .arg(self.store())
            .args(without)
            .stderr(Stdio::inherit());
        let mut daemon = ChildProcess::start(NAME, &mut command, Some(Signal::TERM))?;
        match daemon.line(Instant::now() + STARTS_WITHIN, fixture.environment.shutdown)? {
            Line::Text(_) => {
                self.daemon = Some(daemon);
                Ok(())
            }
            Line::Nothing => Err(failed(format!("run printed nothing for {} s", STARTS_WITHIN.as_secs()))),
            Line::Closed => Err(failed("run ended at once; see its messages above")),
        }
    }

    /// Stops it, and clears its store.
    ///
    /// # Errors
    /// It had to be killed, or the store cannot be removed.
    pub fn forget_all(&mut self) -> Result<()> {
        self.rest()?;
        self.forget()
    }

    /// Starts it with its defaults: it traces and learns starts, probes known programs, and reads ahead.
    ///
    /// # Errors
    /// It is missing, or ended.
    pub fn watch_starts(&mut self, fixture: &DiskFixture<'_>) -> Result<()> {
        self.run(fixture, &[])
    }

    /// Its CPU time since its start, in seconds; 0 if it does not run.
    ///
    /// # Errors
    /// The CPU time cannot be read.
    pub fn cpu_s(&self) -> Result<f64> {
        self.daemon.as_ref().map_or(Ok(0.0), ChildProcess::cpu_s)
    }

    /// Waits until it has processed a launch of the program with this path in the tree. Returns the program's name if it was learned: a
    /// launch that reads next to nothing is not.
    ///
    /// # Errors
    /// It ended, or sent no event in time.
    pub fn wait_learned(&mut self, fixture: &DiskFixture<'_>, inside: &str) -> Result<Option<String>> {
        let until = Instant::now() + LEARNED_WITHIN;
        let Some(daemon) = &mut self.daemon else { return Err(failed("does not run")) };
        loop {
            match daemon.line(until, fixture.environment.shutdown)? {
                Line::Text(line) => {
                    if let Some(name) = dealt_with(&line, inside) {
                        return Ok(name);
                    }
                }
                Line::Nothing => {
                    let seconds = LEARNED_WITHIN.as_secs();
                    return Err(failed(format!("sent no event within {seconds} s that it learned {inside}")));
                }
                Line::Closed => return Err(failed("ended while learning; see its messages above")),
            }
        }
    }

    fn learn_launch(
        &mut self,
        fixture: &DiskFixture<'_>,
        program: &'static Program,
        cold: bool,
    ) -> Result<()> {
        self.rest()?;
        if cold {
            fixture.disk.cold()?;
        }
        let ready = fixture.prepare(program, How::default())?;
        self.run(fixture, &["--no-ahead", "--no-exec"])?;
        let launched = fixture.go(ready)?;
        let learned = self.wait_learned(fixture, &fixture.inside(program));
        launched.running.end()?;
        if let Some(name) = learned? {
            self.names.insert(program.name, name);
        }
        Ok(())
    }
}

/// The program's name in `{"event": "learned", "program": ...}`, if its path ends with this one; `Some(None)` if it was not kept.
fn dealt_with(line: &str, inside: &str) -> Option<Option<String>> {
    let event: Value = serde_json::from_str(line).ok()?;
    let name = event["program"].as_str()?;
    let path = name.split(' ').next().unwrap_or_default();
    match event["event"].as_str()? {
        "learned" if path.ends_with(inside) => Some(Some(name.to_owned())),
        "not_kept" if path.ends_with(inside) => Some(None),
        _ => None,
    }
}

impl Prefetcher for Eke {
    fn learn(&mut self, fixture: &DiskFixture<'_>, programs: &[&'static Program]) -> Result<()> {
        for program in programs {
            LAUNCHES.into_iter().try_for_each(|cold| self.learn_launch(fixture, program, cold))?;
            if !self.names.contains_key(program.name) {
                return Err(failed(format!("kept none of {} launches of {}", LAUNCHES.len(), program.name)));
            }
        }
        self.rest()
    }

    fn ahead(&mut self, fixture: &DiskFixture<'_>, programs: &[&'static Program]) -> Result<()> {
        let mut command = Command::new(&self.program);
        let unknown = |p: &&'static Program| failed(format!("has not learned {}", p.name));
        let names = programs.iter().map(|p| self.names.get(p.name).ok_or_else(|| unknown(p)));
        let names = names.collect::<Result<Vec<_>>>()?;
        command.args(["ahead", "--store"]).arg(self.store()).args(names);
        let mut ahead = ChildProcess::start(NAME, command.stderr(Stdio::inherit()), Some(Signal::TERM))?;
        let lines = ahead.rest(Instant::now() + READ_WITHIN, fixture.environment.shutdown)?;
        ahead.end()?;
        let bytes =
            lines.iter().rev().find_map(|line| serde_json::from_str::<Value>(line).ok()?["bytes"].as_u64());
        bytes.ok_or_else(|| {
            failed(format!("ahead did not report how many bytes it read: {}", lines.join("; ")))
        })?;
        self.run(fixture, &["--no-ahead"])
    }

    fn at_exec(&mut self, fixture: &DiskFixture<'_>, program: &'static Program) -> Result<()> {
        self.run(fixture, &["--no-ahead"])?;
        know_the_disk(fixture, program)
    }

    fn watch(&mut self, fixture: &DiskFixture<'_>, programs: &[&'static Program]) -> Result<()> {
        self.run(fixture, &[])?;
        programs.first().map_or(Ok(()), |program| know_the_disk(fixture, program))
    }

    fn rest(&mut self) -> Result<()> {
        self.daemon.take().map_or(Ok(()), ChildProcess::end)
    }

    fn forget(&mut self) -> Result<()> {
        self.names.clear();
        let store = self.store();
        match std::fs::remove_dir_all(&store) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(on("remove", &store)(e).into()),
            _ => Ok(()),
        }
    }
}

/// It measures a disk before its first read from it, which takes about a second of quiet. A daemon that runs since boot has done so long
/// before.
fn know_the_disk(fixture: &DiskFixture<'_>, program: &'static Program) -> Result<()> {
    fixture.disk.cold()?;
    let began = Instant::now();
    fixture.launch(program, How::default())?.running.end()?;
    // Late reads for this launch must not fall into the next one.
    let (mut last, longest) = (fixture.disk.reads(), Instant::now() + QUIET_WITHIN);
    while Instant::now() < longest {
        fixture.sleep(MEASURES_WITHIN)?;
        let now = fixture.disk.reads();
        if now == last {
            break;
        }
        last = now;
    }
    fixture.sleep(FORGETS_WITHIN.saturating_sub(began.elapsed()))
}

fn failed(why: impl Into<String>) -> Error {
    Error::Prefetcher { name: NAME, why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_is_known_by_the_end_of_its_path() {
        let inside = "/usr/bin/xterm";
        let line = |event: &str, program: &str| {
            format!(r#"{{"event": "{event}", "program": "{program}", "took_s": 1.5}}"#)
        };
        let name = "/run/eke/stage0-1-2/root/usr/bin/xterm";
        assert_eq!(dealt_with(&line("learned", name), inside), Some(Some(name.to_owned())));
        assert_eq!(dealt_with(&line("not_kept", name), inside), Some(None));
        assert_eq!(dealt_with(&line("at_exec", name), inside), None);
        assert_eq!(dealt_with(&line("learned", "/usr/bin/uxterm"), inside), None);
        assert_eq!(dealt_with("learned", inside), None);
    }
}
