//! preload 0.6.4, the daemon of Debian's package with its own cycle.
//!
//! It runs outside of the tree, and sees and reads programs by their outside paths; the kernel shares the pages. It learns a program
//! together with a predecessor, a copy of `sleep` that is not on the measured disk: the predecessor starts, some cycles later the
//! program, then both end; three times. Later the predecessor makes it predict the program. Its state is saved after that and restored
//! for each run.
//!
//! This is its best case: it knows nothing else, so all its budget is for this program, and the program starts only after it has read
//! everything.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use eke_bench_core::fault::{Missing, on};
use eke_bench_core::test_image::Scratch;
use eke_bench_desktop::desktop::find;
use eke_linux::Root;
use rustix::process::Signal;

use super::{Prefetcher, conf, key};
use crate::child_process::ChildProcess;
use crate::error::{Error, Result};
use crate::fixture::{DiskFixture, How, Launched};
use crate::programs::Program;

const NAME: &str = "preload";
const DAEMON: &str = "/usr/sbin/preload";
/// Replays of a program.
const REPLAYS: usize = 3;
/// It polls running processes once per cycle, and adds them to its model half a cycle later.
const CYCLES_TO_SEE: f64 = 2.5;
/// It reads what it predicts within this many cycles after the predecessor, or never.
const CYCLES_TO_ACT: f64 = 4.0;
/// After this many cycles without reads it has read everything.
const QUIET_CYCLES: f64 = 1.25;
/// After this time the run begins anyway.
const LONGEST: Duration = Duration::from_secs(300);

/// See the module.
pub struct Preload {
    dir: Scratch,
    cycle_s: u64,
    states: BTreeMap<String, String>,
    daemon: Option<ChildProcess>,
    predecessor: Option<ChildProcess>,
}

impl Preload {
    /// Checks whether it is installed.
    ///
    /// # Errors
    /// The package is not installed.
    pub fn check() -> Result<()> {
        if Path::new(DAEMON).is_file() {
            return Ok(());
        }
        Err(Missing::new(DAEMON, "the variant \"preload\" needs", "preload").into())
    }

    /// A prefetcher that has learned nothing.
    ///
    /// # Errors
    /// Its directory cannot be made.
    pub fn new(root: &Root, cycle_s: u64) -> Result<Self> {
        let dir = Scratch::in_run(root)?;
        let sleep = find(&["sleep"]).ok_or_else(|| failed("has no predecessor: there is no `sleep`"))?;
        let predecessor = dir.path().join("predecessor");
        std::fs::copy(&sleep, &predecessor).map_err(on("copy", &sleep))?;
        Ok(Self { dir, cycle_s, states: BTreeMap::new(), daemon: None, predecessor: None })
    }

    fn cycles(&self, cycles: f64) -> Duration {
        Duration::from_secs(self.cycle_s).mul_f64(cycles)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The daemon as Debian starts it (`/etc/init.d/preload`: idle I/O class, nice 15), but in the foreground.
    fn start(&mut self, fixture: &DiskFixture<'_>, state: &str) -> Result<()> {
        let (predecessor, conf, saved) =
            (self.file("predecessor"), self.file("preload.conf"), self.file("preload.state"));
        put(&conf, &conf::configuration(&fixture.disk.dir(), &predecessor, self.cycle_s))?;
        put(&saved, state)?;
        let mut command = Command::new("ionice");
        command.args(["-c3", DAEMON, "--foreground", "--nice", "15", "--conffile"]).arg(&conf);
        command.arg("--statefile").arg(&saved).arg("--logfile").arg(self.file("preload.log"));
        self.daemon = Some(ChildProcess::start(NAME, command.stderr(Stdio::null()), Some(Signal::TERM))?);
        Ok(())
    }

    fn start_predecessor(&mut self) -> Result<()> {
        let mut command = Command::new(self.file("predecessor"));
        let predecessor = ChildProcess::start(
            "predecessor",
            command.arg("100000").stderr(Stdio::null()),
            Some(Signal::KILL),
        )?;
        self.predecessor = Some(predecessor);
        Ok(())
    }

    /// Stops it. It saves its state when it ends.
    fn stop(&mut self) -> Result<String> {
        self.rest()?;
        let saved = self.file("preload.state");
        Ok(std::fs::read_to_string(&saved).map_err(on("read", &saved))?)
    }

    fn is_alive(&mut self) -> Result<()> {
        let ended = self.daemon.as_mut().is_none_or(ChildProcess::has_ended);
        if !ended {
            return Ok(());
        }
        let log = std::fs::read_to_string(self.file("preload.log")).unwrap_or_default();
        Err(failed(format!(
            "ended by itself; its log ends with: {}",
            log.lines().last().unwrap_or("nothing")
        )))
    }

    /// Starts the predecessor and the program, and ends both.
    fn replay(&mut self, fixture: &DiskFixture<'_>, program: &'static Program) -> Result<()> {
        fixture.sleep(self.cycles(CYCLES_TO_SEE))?;
        self.start_predecessor()?;
        fixture.sleep(self.cycles(CYCLES_TO_SEE))?;
        self.stay(fixture, program)?;
        fixture.sleep(self.cycles(QUIET_CYCLES))?;
        self.predecessor = None;
        self.is_alive()
    }

    /// Runs the program until preload has seen it.
    fn stay(&self, fixture: &DiskFixture<'_>, program: &'static Program) -> Result<()> {
        let Launched { running, .. } = fixture.launch(program, How { staying: true, ..How::default() })?;
        fixture.sleep(self.cycles(CYCLES_TO_SEE))?;
        running.end()
    }

    fn learn_one(&mut self, fixture: &DiskFixture<'_>, program: &'static Program) -> Result<()> {
        (0..REPLAYS).try_for_each(|_| self.replay(fixture, program))
    }

    /// Learns programs in a row, as they will be started.
    fn learn_row(&mut self, fixture: &DiskFixture<'_>, programs: &[&'static Program]) -> Result<()> {
        for _ in 0..REPLAYS - 1 {
            for program in programs {
                self.stay(fixture, program)?;
                self.is_alive()?;
            }
            fixture.sleep(self.cycles(CYCLES_TO_SEE))?;
        }
        Ok(())
    }

    fn state_of(&self, programs: &[&'static Program]) -> Result<String> {
        let state = self.states.get(&key(programs)).cloned();
        state.ok_or_else(|| failed(format!("has not learned {}", key(programs))))
    }

    /// Waits until it has read everything.
    fn settle(&mut self, fixture: &DiskFixture<'_>) -> Result<()> {
        let begun = Instant::now();
        let (mut last, mut since) = (fixture.disk.reads(), begun);
        while begun.elapsed() < LONGEST {
            fixture.sleep(Duration::from_millis(100))?;
            self.is_alive()?;
            let now = fixture.disk.reads();
            if now != last {
                (last, since) = (now, Instant::now());
            }
            let is_quiet = since.elapsed() > self.cycles(QUIET_CYCLES);
            if is_quiet && begun.elapsed() > self.cycles(CYCLES_TO_ACT) {
                break;
            }
        }
        Ok(())
    }
}

impl Prefetcher for Preload {
    fn learn(&mut self, fixture: &DiskFixture<'_>, programs: &[&'static Program]) -> Result<()> {
        if self.states.contains_key(&key(programs)) {
            return Ok(());
        }
        self.start(fixture, "")?;
        let learned = match programs {
            [one] => self.learn_one(fixture, one),
            several => self.learn_row(fixture, several),
        };
        let state = self.stop()?;
        learned?;
        for program in programs {
            let executable = fixture.outside(program);
            if conf::known(&state, &executable).maps.is_none_or(|maps| maps == 0) {
                return Err(failed(format!("did not learn {} in {REPLAYS} replays", executable.display())));
            }
        }
        self.states.insert(key(programs), state);
        Ok(())
    }

    fn ahead(&mut self, fixture: &DiskFixture<'_>, programs: &[&'static Program]) -> Result<()> {
        self.watch(fixture, programs)?;
        self.start_predecessor()?;
        self.settle(fixture)
    }

    fn at_exec(&mut self, _fixture: &DiskFixture<'_>, _program: &'static Program) -> Result<()> {
        Ok(())
    }

    fn watch(&mut self, fixture: &DiskFixture<'_>, programs: &[&'static Program]) -> Result<()> {
        let state = self.state_of(programs)?;
        self.start(fixture, &state)
    }

    fn rest(&mut self) -> Result<()> {
        self.predecessor = None;
        self.daemon.take().map_or(Ok(()), ChildProcess::end)
    }

    fn forget(&mut self) -> Result<()> {
        self.states.clear();
        Ok(())
    }
}

fn failed(why: impl Into<String>) -> Error {
    Error::Prefetcher { name: NAME, why: why.into() }
}

/// Writes a state file, or removes it if `text` is empty: preload rejects an empty state, and starts afresh without one.
fn put(path: &Path, text: &str) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(on("remove", path)(e).into()),
        _ if text.is_empty() => return Ok(()),
        _ => {}
    }
    let file = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    Ok(file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(on("write", path))?)
}
