//! `eke demo`: what compressed swap changes, shown in a box on a machine that is short of nothing, in under a minute.
//!
//! 1. A process too large for its box, without swap: the kernel kills it, or it gets stuck and is ended.
//! 2. The same data with swap on this machine's disk: page turns, timed.
//! 3. The same process with the plan's compressed swap: it finishes, its pages are checked, and its page turns are timed.
//!
//! Applying and undoing the plan is the caller's ([`Arrange`]); this module has the order of things, the temporary swap
//! file, the figures and their text ([`text::render`]).

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

use crate::hog::latency::Latency;
use crate::hog::{HogReport, HogSpec, Turns};
use crate::pen::{self, Output, PenSpec, Report, Swap};
use disk_file::DiskFile;

/// A process that lacks memory without swap is killed within seconds, or reads its own program from the disk again and again without end: the
/// kernel (6.18, cgroup v1) goes on as long as there is a page of a file that it can take.
const STUCK_AFTER: Duration = Duration::from_secs(20);
/// How often it is looked whether it is to end.
const LOOK: Duration = Duration::from_millis(20);

/// How the caller arranges the machine's swap for each part. What one call applied, the next undoes first.
pub trait Arrange {
    /// Why it cannot be arranged.
    type Error: std::fmt::Display;
    /// The plan's compressed swap, before all other swap.
    ///
    /// # Errors
    /// The caller's.
    fn compressed(&mut self) -> Result<(), Self::Error>;
    /// Swap on this file alone (it has a swap header), before all other swap, and nothing compressed in front of it.
    ///
    /// # Errors
    /// The caller's.
    fn disk(&mut self, file: &Path) -> Result<(), Self::Error>;
    /// Everything as it was.
    ///
    /// # Errors
    /// The caller's.
    fn none(&mut self) -> Result<(), Self::Error>;
}

/// What the demo runs.
#[derive(Debug, Clone, PartialEq)]
pub struct DemoSpec {
    /// The memory of the box.
    pub memory: Bytes,
    /// The data of the process in it, compressible 3 to 1.
    pub data: Bytes,
    /// The hog as a command, up to its last argument (`eke hog`).
    pub hog: Vec<OsString>,
    /// Where the temporary swap file goes; it must be on a disk. See [`disk_file::default_dir`].
    pub dir: PathBuf,
    /// How long pages are turned in each part, at most, in seconds.
    pub turn_seconds: f64,
}

impl DemoSpec {
    /// 256 MiB of data in a box of 160 MiB, 8 seconds of turns.
    pub fn new(hog: Vec<OsString>, dir: PathBuf) -> Self {
        Self { memory: Bytes::mib(160), data: Bytes::mib(256), hog, dir, turn_seconds: 8.0 }
    }
}

/// What the demo showed.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DemoReport {
    /// The memory of the box.
    pub memory: Bytes,
    /// The data of the process in it.
    pub data: Bytes,
    /// Without swap.
    pub without: Part,
    /// With swap on the disk; `None` if that could not be had here, for the reason in `notes`.
    pub disk: Option<Part>,
    /// With the plan's compressed swap.
    pub compressed: Part,
    /// From the beginning to the end, in seconds.
    pub seconds: f64,
    /// What the reader should know about these figures.
    pub notes: Vec<String>,
}

/// One run of the process.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// Did it finish, with every page as it was written?
    pub finished: bool,
    /// What the box saw.
    pub run: Report,
    /// The time to fill its pages and to touch them again, in seconds; 0 if it did not come to that.
    pub work_seconds: f64,
    /// How often it touched all of them after filling.
    pub passes: u32,
    /// The times of its page turns, if it came to that.
    pub turns: Option<Latency>,
    /// The share of the turns whose page had to come from swap, 0..=1.
    pub turns_from_swap: f64,
    /// Pages that were not as they were written.
    pub corrupted_pages: u64,
}

/// Why the demo could not be held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No box.
    #[error(transparent)]
    Pen(#[from] pen::Error),
    /// The caller's arrangement failed.
    #[error("cannot arrange {what} for the demo: {why}")]
    Arrange {
        /// What was to be arranged.
        what: &'static str,
        /// The caller's reason.
        why: String,
    },
    /// A signal came; everything is as before.
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

/// Holds the demo. Whatever happens, `arrange.none()` is called last and the swap file is removed.
///
/// # Errors
/// No box, no compressed swap, or a signal. That the disk cannot be shown is no error but a note.
pub fn run<A: Arrange>(
    root: &Root,
    spec: &DemoSpec,
    arrange: &mut A,
    shutdown: &AtomicBool,
) -> Result<DemoReport, Error> {
    let begun = Instant::now();
    let mut demo = Demo { root, spec, shutdown, notes: notes_before(&read::swaps(root)?) };
    let parts = demo.parts(arrange);
    let restored = arrange.none().map_err(arranging("everything as it was"));
    let (without, disk, compressed) = parts?;
    restored?;
    let seconds = begun.elapsed().as_secs_f64();
    let (memory, data) = (spec.memory, spec.data);
    Ok(DemoReport { memory, data, without, disk, compressed, seconds, notes: demo.notes })
}

fn arranging<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> Error {
    move |why| Error::Arrange { what, why: why.to_string() }
}

impl Demo<'_> {
    fn parts<A: Arrange>(&mut self, arrange: &mut A) -> Result<(Part, Option<Part>, Part), Error> {
        let turns = Some(Turns { count: u64::MAX, seconds: self.spec.turn_seconds });
        arrange.none().map_err(arranging("a machine without eke's swap"))?;
        let without = self.part(Swap::Forbidden, 1, None)?;
        let disk = self.on_disk(arrange, turns)?;
        arrange.compressed().map_err(arranging("compressed swap"))?;
        let compressed = self.part(Swap::Machines, 1, turns)?;
        Ok((without, disk, compressed))
    }

    /// Filling and turning only: a pass over all pages would take minutes on a slow disk.
    fn on_disk<A: Arrange>(&mut self, arrange: &mut A, turns: Option<Turns>) -> Result<Option<Part>, Error> {
        let file = match DiskFile::make(self.root, &self.spec.dir, self.spec.data) {
            Ok(file) => file,
            Err(why) => return Ok(self.without_disk(why)),
        };
        let part = match arrange.disk(file.path()) {
            Ok(()) => self.part(Swap::Machines, 0, turns).map(Some),
            Err(why) => Ok(self.without_disk(why)),
        };
        arrange.none().map_err(arranging("the disk's swap off"))?;
        part
    }

    fn without_disk(&mut self, why: impl std::fmt::Display) -> Option<Part> {
        self.notes.push(format!("page turns on the disk could not be shown here: {why}"));
        None
    }

    fn part(&self, swap: Swap, passes: u32, turns: Option<Turns>) -> Result<Part, Error> {
        let hog = HogSpec { size: self.spec.data, passes: Some(passes), turns, ..HogSpec::default() };
        let argument = serde_json::to_string(&hog).unwrap_or_default();
        let command = self.spec.hog.iter().cloned().chain([OsString::from(argument)]);
        let pen = PenSpec { swap, output: Output::Capture, ..PenSpec::new(self.spec.memory, command) };
        let run = match swap {
            Swap::Forbidden => within(STUCK_AFTER, self.shutdown, |end| pen::run(self.root, &pen, end))?,
            Swap::Machines => pen::run(self.root, &pen, self.shutdown)?,
        };
        if self.shutdown.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok(part_of(run))
    }
}

/// Does something that ends when its flag is set: by `shutdown`, or after so long.
fn within<T>(most: Duration, shutdown: &AtomicBool, act: impl FnOnce(&AtomicBool) -> T) -> T {
    let (end, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let ends = shutdown.load(Ordering::Relaxed) || begun.elapsed() >= most;
                end.fetch_or(ends, Ordering::Relaxed);
                std::thread::sleep(LOOK);
            }
        });
        let done = act(&end);
        is_over.store(true, Ordering::Relaxed);
        done
    })
}

fn part_of(run: Report) -> Part {
    let hog: Option<HogReport> = run.stdout.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let turns = hog.as_ref().and_then(|h| h.turns);
    let faults = hog.as_ref().map_or(0, |h| h.turn_major_faults);
    let corrupted_pages = hog.as_ref().map_or(0, |h| h.corrupted_pages);
    Part {
        work_seconds: hog.as_ref().map_or(0.0, |h| h.fill_seconds + h.pass_seconds),
        passes: hog.as_ref().map_or(0, |h| h.passes),
        finished: run.exit_code == Some(0) && corrupted_pages == 0,
        turns_from_swap: turns.map_or(0.0, |t| (faults as f64 / t.count as f64).min(1.0)),
        turns,
        corrupted_pages,
        run: Report { stdout: None, ..run },
    }
}

/// Swap that is on already is named, not refused: the first part forbids it to the box, the others come before it.
fn notes_before(areas: &[SwapArea]) -> Vec<String> {
    if areas.is_empty() {
        return Vec::new();
    }
    let names: Vec<&str> = areas.iter().map(|a| a.path.as_str()).collect();
    let one = names.len() == 1;
    vec![format!(
        "this machine already swaps on {}: \"without\" forbids {} to the box; in the other parts pages may also go there once the demo's own swap is full",
        names.join(" and "),
        if one { "it" } else { "them" }
    )]
}

#[cfg(test)]
mod tests;
