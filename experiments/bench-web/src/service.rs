//! A program that serves: started in a box with a log, awaited, and watched.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_bench_core::fault::on;
use rustix::process::{Pid, Signal, kill_process};

use super::error::{Error, Result};
use super::server_box::ServerBox;

/// How long a program may take until it is ready: a JVM starts slowly from a slow disk.
const PATIENCE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_millis(20);
/// How long a program may take to end.
const ENDS_WITHIN: Duration = Duration::from_secs(10);
/// How many characters of a log an error shows.
const SHOWN: usize = 2000;

/// A running program. It belongs to its box, which ends it.
#[derive(Debug)]
pub struct Service {
    name: &'static str,
    index: usize,
    log: PathBuf,
}

impl Service {
    /// Starts a program in the box. Its output goes to the file `NAME.log` in `dir`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        server_box: &mut ServerBox,
        name: &'static str,
        command: &Command,
        dir: &Path,
    ) -> Result<Self> {
        let log = dir.join(format!("{name}.log"));
        let options = OpenOptions::new().append(true).create(true).open(&log);
        let file = options.map_err(on("make", &log))?;
        let copy = file.try_clone().map_err(on("open", &log))?;
        let index = server_box.start(command, Stdio::from(file), Stdio::from(copy))?;
        Ok(Self { name, index, log })
    }

    /// Waits until `is_ready`.
    ///
    /// # Errors
    /// The program ends, or takes too long; the error has the end of its log. Or a signal came.
    pub fn wait(
        &self,
        shutdown: &AtomicBool,
        server_box: &mut ServerBox,
        mut is_ready: impl FnMut() -> bool,
    ) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while !is_ready() {
            if shutdown.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            self.check(server_box)?;
            if Instant::now() > until {
                return Err(self.failed("is not ready"));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Checks that it still runs.
    ///
    /// # Errors
    /// It ended; the error has its status and the end of its log.
    pub fn check(&self, server_box: &mut ServerBox) -> Result<()> {
        let ended = server_box.child(self.index).and_then(|child| child.try_wait().ok().flatten());
        ended.map_or(Ok(()), |status| Err(self.failed(&format!("ended ({status})"))))
    }

    /// Ends it and its workers in order, so that no file of the content stays open.
    pub fn stop(&self, server_box: &mut ServerBox) {
        let Some(child) = server_box.child(self.index) else { return };
        let _ = kill_process(Pid::from_child(child), Signal::TERM);
        let until = Instant::now() + ENDS_WITHIN;
        while Instant::now() < until && child.try_wait().is_ok_and(|ended| ended.is_none()) {
            std::thread::sleep(PAUSE);
        }
    }

    fn failed(&self, what: &str) -> Error {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let from = text.char_indices().rev().nth(SHOWN).map_or(0, |(at, _)| at);
        Error::Program { name: self.name, what: what.to_owned(), log: text[from..].to_owned() }
    }
}
