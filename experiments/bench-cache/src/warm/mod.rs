//! `eke bench warm`: what the list of what was hot brings after an unmount, and what its reading costs others on the same disk.
//!
//! - `files`: the files on a slow disk; `load`: readers; `report`: names of variants and metrics

mod files;
mod load;
mod report;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use eke_bench_core::fault::{self, Io};
use eke_bench_core::{Environment, Experiment, Results, shuffled};
use eke_model::units::Bytes;
use eke_results::report::Report;
use eke_results::rows::{Rows, params};

use crate::cache_mount::CacheMount;
use files::Files;
use load::{Requests, beside, requests};

/// The user's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The directory for the image of the disk.
    pub dir: PathBuf,
    /// The slow disk's name.
    pub disk: String,
    /// The size of all files.
    pub content: Bytes,
    /// The store's limit.
    pub memory: Bytes,
    /// Requests before the unmount; a quarter of them are counted, and as many after it.
    pub requests: usize,
    /// Seconds of an idle disk after the mount.
    pub idle_s: u64,
    /// Seconds that another reader is measured.
    pub beside_s: u64,
    /// How often each is measured.
    pub rounds: usize,
}

impl Options {
    fn other(&self) -> Bytes {
        files::other_of(self.content)
    }
}

/// Why the experiment could not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] Io),
    /// `eke cache` or another program failed.
    #[error(transparent)]
    Program(#[from] fault::Command),
    /// The disk cannot be made.
    #[error(transparent)]
    Disk(#[from] eke_bench_core::test_image::Error),
    /// There is too little content.
    #[error(transparent)]
    Content(#[from] crate::store::Error),
    /// The mount has no status.
    #[error("`eke cache status` shows no details of the mount")]
    Silent,
    /// A signal came.
    #[error("interrupted")]
    Interrupted,
}

/// The experiment. It changes nothing of the machine but a disk of its own and mounts, which it removes afterwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warm(pub Options);

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// The hit rate after an unmount.
    Back {
        /// With the list.
        remembers: bool,
    },
    /// Another reader of the disk.
    Beside {
        /// While the list is read.
        remembers: bool,
        /// Its mean pause in milliseconds.
        pause_ms: u64,
    },
}

impl Case {
    const ALL: [Self; 6] = [
        Self::Back { remembers: true },
        Self::Back { remembers: false },
        Self::Beside { remembers: true, pause_ms: 100 },
        Self::Beside { remembers: false, pause_ms: 100 },
        Self::Beside { remembers: true, pause_ms: 500 },
        Self::Beside { remembers: false, pause_ms: 500 },
    ];

    fn remembers(self) -> bool {
        match self {
            Self::Back { remembers } | Self::Beside { remembers, .. } => remembers,
        }
    }
}

/// One measurement of the plan.
#[derive(Debug, Clone, Copy)]
pub struct Run {
    case: Case,
    /// From 0.
    round: usize,
}

/// A metric, its unit, and its value.
type Measured = (&'static str, &'static str, f64);

impl Experiment for Warm {
    const NEEDS_ROOT: Option<&'static str> =
        Some("`eke bench warm` makes a disk of its own, which needs root");
    type Fixture<'e> = Files<'e>;
    type Run = Run;
    type Measurement = Vec<Measured>;
    type Error = Error;

    fn set_up<'e>(
        &'e self,
        environment: &'e Environment<'e>,
        notes: &mut Vec<String>,
    ) -> Result<Files<'e>, Error> {
        environment.progress.print("Making files and a slow disk.");
        notes.push(files::about(&self.0));
        Files::make(environment, &self.0)
    }

    fn plan(&self, _files: &Files<'_>) -> Vec<Run> {
        let of_round = |round| shuffled(&Case::ALL, round).into_iter().map(move |case| Run { case, round });
        (0..self.0.rounds).flat_map(of_round).collect()
    }

    fn name(&self, _files: &Files<'_>, Run { case, round }: &Run) -> String {
        format!("{}, {} of {}", case.name(), round + 1, self.0.rounds)
    }

    fn measure(
        &self,
        files: &mut Files<'_>,
        run: &Run,
        _notes: &mut Vec<String>,
    ) -> Result<Option<Vec<Measured>>, Error> {
        match run.case {
            Case::Back { remembers } => self.back(files, remembers, run.round).map(Some),
            Case::Beside { remembers, pause_ms } => {
                self.reader(files, remembers, (Duration::from_millis(pause_ms), run.round)).map(Some)
            }
        }
    }

    fn report(
        &self,
        environment: &Environment<'_>,
        _files: &mut Files<'_>,
        results: Results<Run, Vec<Measured>>,
    ) -> Report {
        let mut rows = Rows::default();
        for (run, measurements) in results.measured {
            let params = match run.case {
                Case::Back { .. } => params([("measured", "hit rate".into())]),
                Case::Beside { pause_ms, .. } => {
                    params([("measured", format!("a read each {pause_ms} ms").into())])
                }
            };
            for (metric, unit, value) in measurements {
                rows.add(run.case.name(), &params, metric, unit, [value]);
            }
        }
        report::report(environment, rows.done(), results.notes)
    }
}

impl Warm {
    /// Fills the store, unmounts, and drops all from memory. Returns the hit rate at the end.
    fn fill(&self, files: &Files<'_>, round: usize) -> Result<f64, Error> {
        files.forget();
        files.cold()?;
        let mount = self.mount(files, true)?;
        requests(files, &mount, Requests { number: self.0.requests, seed: seed(round, 0) })?;
        let before = requests(files, &mount, self.counted(round, 1))?;
        mount.unmount()?;
        files.cold()?;
        Ok(before.hits)
    }

    /// Others by the same law: the same ones again would find all that they had read themselves.
    fn counted(&self, round: usize, which: u64) -> Requests {
        Requests { number: (self.0.requests / 4).max(10), seed: seed(round, which) }
    }

    fn mount(&self, files: &Files<'_>, remembers: bool) -> Result<CacheMount, Error> {
        let memory = format!("--memory={}", self.0.memory.0);
        let options = [memory.as_str(), "--passthrough=never"];
        let make = if remembers { CacheMount::remembering } else { CacheMount::new };
        Ok(make(files.environment, &files.dir(), files.place(), &options)?)
    }

    fn back(&self, files: &Files<'_>, remembers: bool, round: usize) -> Result<Vec<Measured>, Error> {
        let before = self.fill(files, round)?;
        let (begun, idle) = (Instant::now(), Duration::from_secs(self.0.idle_s));
        let mount = self.mount(files, remembers)?;
        let mut ready = None;
        while begun.elapsed() < idle {
            files.check()?;
            if remembers && ready.is_none() && is_read_again(&mount) {
                ready = Some(begun.elapsed().as_secs_f64());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let after = requests(files, &mount, self.counted(round, 3))?;
        mount.unmount()?;
        let mut measured = vec![
            (report::BEFORE, "%", before),
            (report::AFTER, "%", after.hits),
            (report::SHARE, "%", 100.0 * after.hits / before),
            (report::RATE, "MB/s", after.rate),
        ];
        measured.extend(ready.map(|seconds| (report::READY, "s", seconds)));
        Ok(measured)
    }

    fn reader(
        &self,
        files: &Files<'_>,
        remembers: bool,
        (pause, round): (Duration, usize),
    ) -> Result<Vec<Measured>, Error> {
        // Both read a disk with the same history.
        self.fill(files, round)?;
        let mount = self.mount(files, remembers)?;
        let mut took = beside(files, Duration::from_secs(self.0.beside_s), pause, seed(round, 2))?;
        let read = if remembers { share_read(&mount) } else { None };
        mount.unmount()?;
        took.sort_unstable_by(f64::total_cmp);
        let quantile = |q: f64| took.get((took.len() as f64 * q) as usize).copied().unwrap_or(0.0);
        let mut measured = vec![(report::P50, "ms", quantile(0.5)), (report::P99, "ms", quantile(0.99))];
        measured.extend(read.map(|share| (report::READ, "%", share)));
        Ok(measured)
    }
}

impl Files<'_> {
    /// # Errors
    /// A signal came.
    fn check(&self) -> Result<(), Error> {
        if self.environment.is_interrupted() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

fn is_read_again(mount: &CacheMount) -> bool {
    let details = mount.details();
    let state = details.as_ref().and_then(|details| details.pointer("/worker/remember/state")?.as_str());
    matches!(state, Some("done" | "full"))
}

/// The share of the list that was read again, in percent.
fn share_read(mount: &CacheMount) -> Option<f64> {
    let details = mount.details()?;
    let of = |name: &str| details.pointer(&format!("/worker/remember/{name}"))?.as_f64();
    Some(100.0 * of("done")? / of("listed")?.max(1.0))
}

fn seed(round: usize, which: u64) -> u64 {
    round as u64 * 16 + which + 1
}
