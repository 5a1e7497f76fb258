//! One run: makes the disk cold, lets a prefetcher read ahead, starts the program.

use std::time::Duration;

use eke_bench_core::fault::on;

use super::calls::{self, Calls};
use super::disk::Reads;
use super::error::{Error, Result};
use super::fixture::{DiskFixture, How, Launched};
use super::launcher::Ready;
use super::plan::Variant;
use super::prefetcher::Prefetcher;
use super::programs::Program;

/// After this pause, tracers of exec no longer count the launcher as a launch. eke waits 2 s.
const LAUNCHER_SETTLES: Duration = Duration::from_secs(3);

/// A prefetcher may now make reads that it postponed in an earlier launch. Then the disk is made cold again, at most this often.
const ATTEMPTS: usize = 5;
/// Fewer bytes are file system metadata; more are part of a program.
const STRAY: u64 = 1 << 20;

/// The measurements of a run.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Trial {
    /// From exec until its window was mapped, or until it ended.
    pub seconds: f64,
    /// Page faults that waited for the disk.
    pub major_faults: u64,
    /// Reads from the disk during the start, by any process.
    pub during: Reads,
    /// Reads before the launch, since the disk was made cold; `None` without a prefetcher. A prefetcher that works only at exec reads
    /// nothing then, or the run is invalid.
    pub ahead: Option<Reads>,
}

/// Makes one run. Afterwards the program has ended and the prefetcher is stopped, also after a failure.
///
/// # Errors
/// The launch or the prefetcher failed.
pub fn run(
    fixture: &DiskFixture<'_>,
    prefetcher: &mut Option<&mut dyn Prefetcher>,
    program: &'static Program,
    variant: Variant,
) -> Result<Trial> {
    let measured =
        begin(fixture, prefetcher, program, variant, How::default()).and_then(|(ready, before)| {
            ahead(fixture, prefetcher, program, variant)?;
            let is_prefetched = !matches!(variant, Variant::Cold | Variant::Warm);
            let ahead = is_prefetched.then(|| fixture.disk.reads() - before);
            let Launched { running, reads } = fixture.go(ready)?;
            let started = running.started.clone();
            running.end()?;
            Ok(Trial { seconds: started.seconds, major_faults: started.major_faults, during: reads, ahead })
        });
    let rested = prefetcher.as_mut().map_or(Ok(()), |p| p.rest());
    measured.and_then(|trial| rested.map(|()| trial))
}

/// Prepares a launch from a cold disk, or, for a warm start, from one where the program was started just before. The launcher runs
/// before the program, as a desktop does, so tracers of exec see the program alone. Also returns the reads until now.
///
/// # Errors
/// The disk is in use, or the prefetcher failed.
pub fn begin<'a>(
    fixture: &DiskFixture<'a>,
    prefetcher: &mut Option<&mut dyn Prefetcher>,
    program: &'static Program,
    variant: Variant,
    how: How<'_>,
) -> Result<(Ready<'a>, Reads)> {
    if let (Variant::AtExec, Some(prefetcher)) = (variant, prefetcher) {
        prefetcher.at_exec(fixture, program)?;
    }
    for _ in 0..ATTEMPTS {
        fixture.disk.cold()?;
        if variant == Variant::Warm {
            fixture.launch(program, How::default())?.running.end()?;
        }
        let ready = fixture.prepare(program, how)?;
        let before = fixture.disk.reads();
        if variant != Variant::AtExec {
            return Ok((ready, before));
        }
        fixture.sleep(LAUNCHER_SETTLES)?;
        if (fixture.disk.reads() - before).bytes < STRAY {
            return Ok((ready, before));
        }
    }
    let why =
        format!("reads from the disk before anything is executed, {ATTEMPTS} times one after the other");
    Err(Error::Prefetcher { name: "eke-prefetch", why })
}

/// Lets the variant's prefetcher read ahead, if it has one.
///
/// # Errors
/// The prefetcher failed.
pub fn ahead(
    fixture: &DiskFixture<'_>,
    prefetcher: &mut Option<&mut dyn Prefetcher>,
    program: &'static Program,
    variant: Variant,
) -> Result<()> {
    match (variant, prefetcher) {
        (Variant::Preload | Variant::Ahead, Some(prefetcher)) => prefetcher.ahead(fixture, &[program]),
        _ => Ok(()),
    }
}

/// Measures the time in system calls of another launch, under strace.
///
/// # Errors
/// As [`run`], or strace is missing.
pub fn traced(
    fixture: &DiskFixture<'_>,
    prefetcher: &mut Option<&mut dyn Prefetcher>,
    program: &'static Program,
    variant: Variant,
) -> Result<Calls> {
    let temporary = std::env::temp_dir();
    let file = tempfile::NamedTempFile::new().map_err(on("make a file in", &temporary))?;
    let how = How { traced: Some(file.path()), ..How::default() };
    let measured = begin(fixture, prefetcher, program, variant, how).and_then(|(ready, _)| {
        ahead(fixture, prefetcher, program, variant)?;
        fixture.go(ready)?.running.end()
    });
    let rested = prefetcher.as_mut().map_or(Ok(()), |p| p.rest());
    measured.and(rested)?;
    let text = std::fs::read(file.path()).map_err(on("read", file.path()))?;
    Ok(calls::parse(&String::from_utf8_lossy(&text)))
}
