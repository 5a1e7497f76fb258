//! eke's own: the program `eke-prefetch` beside `eke`.
//!
//! `eke-prefetch run --store DIR --now-only [--no-ahead] [--no-exec]` stays, learns launches and reads at exec; `eke-prefetch ahead --store DIR
//! PROGRAM...` reads the file sets of these programs now. Both say what happens as lines of JSON on standard output.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use eke_kernel::Root;
use rustix::process::Signal;
use serde_json::Value;

use super::Prefetcher;
use crate::stage::Scratch;
use crate::startup::error::{Error, Result, on};
use crate::startup::helper::{Helper, Line};
use crate::startup::programs::Program;
use crate::startup::scene::{How, Scene};

const NAME: &str = "eke-prefetch";
/// Cold, warm, cold: one launch does not show all that a program reads.
const LAUNCHES: [bool; 3] = [true, false, true];
/// A launch is learned when nothing new is touched for a while; then it is written.
const LEARNED_WITHIN: Duration = Duration::from_secs(20);
/// Its tracer is attached by then.
const STARTS_WITHIN: Duration = Duration::from_secs(20);
const READ_WITHIN: Duration = Duration::from_secs(300);

/// See the module.
pub struct Eke {
    program: PathBuf,
    dir: Scratch,
    daemon: Option<Helper>,
}

impl Eke {
    /// Its path beside the running program.
    pub fn beside(eke: &Path) -> PathBuf {
        eke.with_file_name(NAME)
    }

    /// What it needs here.
    ///
    /// # Errors
    /// The program is not there.
    pub fn check(eke: &Path) -> Result<()> {
        if Self::beside(eke).is_file() {
            return Ok(());
        }
        Err(Error::Usage(format!("{NAME} is not beside {}; `make build` puts it there", eke.display())))
    }

    /// One that has learned nothing.
    ///
    /// # Errors
    /// No directory for its store can be made.
    pub fn new(root: &Root, eke: &Path) -> Result<Self> {
        Ok(Self { program: Self::beside(eke), dir: Scratch::in_run(root)?, daemon: None })
    }

    fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    /// Starts the daemon, and waits for its first line.
    fn run(&mut self, scene: &Scene<'_>, without: &[&str]) -> Result<()> {
        self.rest()?;
        let mut command = Command::new(&self.program);
        command
            .args(["run", "--now-only", "--store"])
            .arg(self.store())
            .args(without)
            .stderr(Stdio::inherit());
        let mut daemon = Helper::start(NAME, &mut command, Some(Signal::TERM))?;
        match daemon.line(Instant::now() + STARTS_WITHIN, scene.bench.shutdown)? {
            Line::Said(_) => {
                self.daemon = Some(daemon);
                Ok(())
            }
            Line::Nothing => Err(failed(format!("run says nothing for {} s", STARTS_WITHIN.as_secs()))),
            Line::Closed => Err(failed("run ended at once; what it said is above")),
        }
    }

    /// Waits until it says that a launch was learned.
    fn wait_learned(&mut self, scene: &Scene<'_>) -> Result<()> {
        let until = Instant::now() + LEARNED_WITHIN;
        let Some(daemon) = &mut self.daemon else { return Err(failed("does not run")) };
        loop {
            match daemon.line(until, scene.bench.shutdown)? {
                Line::Said(line) if event(&line) == Some("learned".to_owned()) => return Ok(()),
                Line::Said(_) => {}
                Line::Nothing => {
                    return Err(failed(format!(
                        "does not say within {} s that it learned",
                        LEARNED_WITHIN.as_secs()
                    )));
                }
                Line::Closed => return Err(failed("ended while it was to learn; what it said is above")),
            }
        }
    }
}

/// `learned` of `{"event": "learned", ...}`.
fn event(line: &str) -> Option<String> {
    serde_json::from_str::<Value>(line).ok()?["event"].as_str().map(str::to_owned)
}

impl Prefetcher for Eke {
    fn learn(&mut self, scene: &Scene<'_>, programs: &[&'static Program]) -> Result<()> {
        for program in programs {
            for cold in LAUNCHES {
                self.rest()?;
                if cold {
                    scene.place.cold()?;
                }
                self.run(scene, &["--no-ahead", "--no-exec"])?;
                let launched = scene.launch(program, How::default())?;
                let learned = self.wait_learned(scene);
                launched.running.end()?;
                learned?;
            }
        }
        self.rest()
    }

    fn ahead(&mut self, scene: &Scene<'_>, programs: &[&'static Program]) -> Result<()> {
        let mut command = Command::new(&self.program);
        command.args(["ahead", "--store"]).arg(self.store()).args(programs.iter().map(|p| scene.outside(p)));
        let mut ahead = Helper::start(NAME, command.stderr(Stdio::inherit()), Some(Signal::TERM))?;
        let said = ahead.rest(Instant::now() + READ_WITHIN, scene.bench.shutdown)?;
        ahead.end()?;
        let bytes =
            said.iter().rev().find_map(|line| serde_json::from_str::<Value>(line).ok()?["bytes"].as_u64());
        bytes.ok_or_else(|| {
            failed(format!("ahead does not say how many bytes it read; it said: {}", said.join("; ")))
        })?;
        self.at_exec(scene)
    }

    fn at_exec(&mut self, scene: &Scene<'_>) -> Result<()> {
        self.run(scene, &["--no-ahead"])
    }

    fn watch(&mut self, scene: &Scene<'_>, _programs: &[&'static Program]) -> Result<()> {
        self.run(scene, &[])
    }

    fn rest(&mut self) -> Result<()> {
        self.daemon.take().map_or(Ok(()), Helper::end)
    }

    fn forget(&mut self) -> Result<()> {
        let store = self.store();
        match std::fs::remove_dir_all(&store) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(on("remove", &store)(e)),
            _ => Ok(()),
        }
    }
}

fn failed(why: impl Into<String>) -> Error {
    Error::Prefetcher { name: NAME, why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_have_a_word() {
        assert_eq!(event(r#"{"event": "learned", "program": "/usr/bin/xterm"}"#), Some("learned".to_owned()));
        assert_eq!(event("learned"), None);
    }
}
