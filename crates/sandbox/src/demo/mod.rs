//! `eke demo`: shows the effect of compressed swap in a box, on any machine, in under a minute.
//!
//! 1. A process too large for its box, without swap: the kernel kills it, or it gets stuck and is ended.
//! 2. The same data with swap on this machine's disk: random reads, timed.
//! 3. The same process with the plan's compressed swap: it finishes, its pages are checked, and its random reads are timed.
//!
//! The caller applies and undoes the plan ([`Arrange`]). This module has the order of the runs, the temporary swap file, the measurements and their
//! text ([`text::render`]).

pub mod disk_file;
pub mod text;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use eke_linux::{Root, read};
use eke_model::sample::SwapArea;
use eke_model::units::Bytes;
use serde::Serialize;

use crate::cgroup_box::{self, BoxReport, BoxSpec, Output, Swap};
use crate::stressor::latency::Latency;
use crate::stressor::{Reads, StressorReport, StressorSpec};
use disk_file::DiskFile;

/// A process that lacks memory without swap is killed within seconds, or reads its own program from the disk again and again for ever: the kernel
/// (6.18, cgroup v1) does not kill while it can reclaim a page of a file.
const STUCK_AFTER: Duration = Duration::from_secs(20);
/// The time between two checks of the flags.
const POLL: Duration = Duration::from_millis(20);

/// Arranges the machine's swap for each run. Each call first undoes the call before.
pub trait Arrange {
    /// Why it failed.
    type Error: std::fmt::Display;
    /// Sets up the plan's compressed swap, with the highest priority.
    ///
    /// # Errors
    /// The caller's.
    fn compressed(&mut self) -> Result<(), Self::Error>;
    /// Sets up swap on this file, which has a swap header, with the highest priority and no compression.
    ///
    /// # Errors
    /// The caller's.
    fn disk(&mut self, file: &Path) -> Result<(), Self::Error>;
    /// Restores the machine's own swap.
    ///
    /// # Errors
    /// The caller's.
    fn none(&mut self) -> Result<(), Self::Error>;
}

/// The parameters of the demo.
#[derive(Debug, Clone, PartialEq)]
pub struct DemoSpec {
    /// The memory of the box.
    pub memory: Bytes,
    /// The data of the process in it, compressible 3 to 1.
    pub data: Bytes,
    /// The memory stressor as a command, up to its last argument (`eke stressor`).
    pub stressor: Vec<OsString>,
    /// The directory of the temporary swap file, on a disk. See [`disk_file::default_dir`].
    pub dir: PathBuf,
    /// The longest time of random reads in each run, in seconds.
    pub read_seconds: f64,
}

impl DemoSpec {
    /// 256 MiB of data in a box of 160 MiB, 8 seconds of reads.
    pub fn new(stressor: Vec<OsString>, dir: PathBuf) -> Self {
        Self { memory: Bytes::mib(160), data: Bytes::mib(256), stressor, dir, read_seconds: 8.0 }
    }
}

/// The result of the demo.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DemoReport {
    /// The memory of the box.
    pub memory: Bytes,
    /// The data of the process in it.
    pub data: Bytes,
    /// Without swap.
    pub without: DemoRun,
    /// With swap on the disk; `None` if this machine cannot do that, for the reason in `notes`.
    pub disk: Option<DemoRun>,
    /// With the plan's compressed swap.
    pub compressed: DemoRun,
    /// The time of the demo, in seconds.
    pub seconds: f64,
    /// Notes on these measurements.
    pub notes: Vec<String>,
}

/// One run of the process.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DemoRun {
    /// Did it finish, with every page as it was written?
    pub finished: bool,
    /// The result of its box.
    pub run: BoxReport,
    /// The time to fill its pages and to touch them again, in seconds; 0 if it ended earlier.
    pub work_seconds: f64,
    /// Passes over all pages after filling.
    pub passes: u32,
    /// The latency of its random reads; `None` if it ended earlier.
    pub reads: Option<Latency>,
    /// The share of the reads whose page was in swap, 0..=1.
    pub reads_from_swap: f64,
    /// Pages with other content than written.
    pub corrupted_pages: u64,
}

/// Why the demo failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The box failed.
    #[error(transparent)]
    Box(#[from] cgroup_box::Error),
    /// The caller's arrangement failed.
    #[error("cannot arrange {what} for the demo: {why}")]
    Arrange {
        /// The arrangement.
        what: &'static str,
        /// The caller's reason.
        why: String,
    },
    /// A signal came; everything is restored.
    #[error("the demo was interrupted; everything is as it was before")]
    Interrupted,
    /// The machine's swap areas cannot be read.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
}

struct Demo<'a> {
    root: &'a Root,
    spec: &'a DemoSpec,
    shutdown: &'a AtomicBool,
    notes: Vec<String>,
}

/// Runs the demo. In any case it calls `arrange.none()` last and removes the swap file.
///
/// # Errors
/// No box, no compressed swap, or a signal. A missing run on the disk is no error but a note.
pub fn run<A: Arrange>(
    root: &Root,
    spec: &DemoSpec,
    arrange: &mut A,
    shutdown: &AtomicBool,
) -> Result<DemoReport, Error> {
    let begun = Instant::now();
    let mut demo = Demo { root, spec, shutdown, notes: notes_before(&read::swaps(root)?) };
    let runs = demo.runs(arrange);
    let restored = arrange.none().map_err(arranging("everything as it was"));
    let (without, disk, compressed) = runs?;
    restored?;
    let seconds = begun.elapsed().as_secs_f64();
    let (memory, data) = (spec.memory, spec.data);
    Ok(DemoReport { memory, data, without, disk, compressed, seconds, notes: demo.notes })
}

fn arranging<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> Error {
    move |why| Error::Arrange { what, why: why.to_string() }
}

impl Demo<'_> {
    fn runs<A: Arrange>(&mut self, arrange: &mut A) -> Result<(DemoRun, Option<DemoRun>, DemoRun), Error> {
        let reads = Some(Reads { count: u64::MAX, seconds: self.spec.read_seconds });
        arrange.none().map_err(arranging("a machine without eke's swap"))?;
        let without = self.run(Swap::Forbidden, 1, None)?;
        let disk = self.on_disk(arrange, reads)?;
        arrange.compressed().map_err(arranging("compressed swap"))?;
        let compressed = self.run(Swap::Machines, 1, reads)?;
        Ok((without, disk, compressed))
    }

    /// Fills and reads only: a pass over all pages would take minutes on a slow disk.
    fn on_disk<A: Arrange>(
        &mut self,
        arrange: &mut A,
        reads: Option<Reads>,
    ) -> Result<Option<DemoRun>, Error> {
        let file = match DiskFile::make(self.root, &self.spec.dir, self.spec.data) {
            Ok(file) => file,
            Err(why) => return Ok(self.without_disk(why)),
        };
        let run = match arrange.disk(file.path()) {
            Ok(()) => self.run(Swap::Machines, 0, reads).map(Some),
            Err(why) => Ok(self.without_disk(why)),
        };
        arrange.none().map_err(arranging("the disk's swap off"))?;
        run
    }

    fn without_disk(&mut self, why: impl std::fmt::Display) -> Option<DemoRun> {
        self.notes.push(format!("random reads on the disk could not be measured: {why}"));
        None
    }

    fn run(&self, swap: Swap, passes: u32, reads: Option<Reads>) -> Result<DemoRun, Error> {
        let stressor =
            StressorSpec { size: self.spec.data, passes: Some(passes), reads, ..StressorSpec::default() };
        let argument = serde_json::to_string(&stressor).unwrap_or_default();
        let command = self.spec.stressor.iter().cloned().chain([OsString::from(argument)]);
        let spec = BoxSpec { swap, output: Output::Capture, ..BoxSpec::new(self.spec.memory, command) };
        let run = match swap {
            Swap::Forbidden => {
                within(STUCK_AFTER, self.shutdown, |end| cgroup_box::run(self.root, &spec, end))?
            }
            Swap::Machines => cgroup_box::run(self.root, &spec, self.shutdown)?,
        };
        if self.shutdown.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok(demo_run(run))
    }
}

/// Calls `act`, which ends when its flag is set: with `shutdown`, or after `most`.
fn within<T>(most: Duration, shutdown: &AtomicBool, act: impl FnOnce(&AtomicBool) -> T) -> T {
    let (end, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let ends = shutdown.load(Ordering::Relaxed) || begun.elapsed() >= most;
                end.fetch_or(ends, Ordering::Relaxed);
                std::thread::sleep(POLL);
            }
        });
        let done = act(&end);
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

fn demo_run(run: BoxReport) -> DemoRun {
    let stressor: Option<StressorReport> =
        run.stdout.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let reads = stressor.as_ref().and_then(|h| h.reads);
    let faults = stressor.as_ref().map_or(0, |h| h.read_major_faults);
    let corrupted_pages = stressor.as_ref().map_or(0, |h| h.corrupted_pages);
    DemoRun {
        work_seconds: stressor.as_ref().map_or(0.0, |h| h.fill_seconds + h.pass_seconds),
        passes: stressor.as_ref().map_or(0, |h| h.passes),
        finished: run.exit_code == Some(0) && corrupted_pages == 0,
        reads_from_swap: reads.map_or(0.0, |t| (faults as f64 / t.count as f64).min(1.0)),
        reads,
        corrupted_pages,
        run: BoxReport { stdout: None, ..run },
    }
}

/// Names swap that is on already. The first run forbids it to the box; in the others the demo's own swap has a higher priority.
fn notes_before(areas: &[SwapArea]) -> Vec<String> {
    if areas.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = areas.iter().map(|a| a.path.as_str()).collect();
    let one = names.len() == 1;
    vec![format!(
        "this machine already swaps on {}: the run without swap forbids {} to the box; in the other runs pages also go there when the demo's own swap is full",
        names.join(" and "),
        if one { "it" } else { "them" }
    )]
}

#[cfg(test)]
mod tests;
