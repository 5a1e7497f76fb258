//! One run: from a cold disk, by way of whoever reads ahead, to a started program.

use std::time::Duration;

use eke_bench_core::fault::on;

use super::calls::{self, Calls};
use super::disk::Reads;
use super::error::{Error, Result};
use super::fixture::{Fixture, How, Launched};
use super::launcher::Ready;
use super::plan::Variant;
use super::prefetcher::Prefetcher;
use super::programs::Program;

/// After so long without anything new a launcher is no launch any more for who watches what is executed; eke waits 2 s.
const LAUNCHER_SETTLES: Duration = Duration::from_secs(3);

/// What was wanted for a launch before, and put off while others used the disk, may be read now: then it is made cold again.
const ATTEMPTS: usize = 5;
/// A few tables of the file system, in bytes; more is part of a program.
const STRAY: u64 = 1 << 20;

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Trial {
    /// From exec until its window was there, or until it ended.
    pub seconds: f64,
    /// Faults that waited for the disk.
    pub major_faults: u64,
    /// What was read from the disk meanwhile, by whomever.
    pub during: Reads,
    /// What was read before the launch, since the disk was made cold; `None` where nobody reads ahead. With what works at exec alone
    /// that is nothing, or the run is worth nothing.
    pub ahead: Option<Reads>,
}

/// Holds one run. Afterwards the program has ended and the prefetcher rests, also where it failed.
///
/// # Errors
/// The launch came to nothing, or the prefetcher.
pub fn run(
    fixture: &Fixture<'_>,
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

/// A launch that only waits to be told, from a cold disk, or from one where the program was started just before. The launcher is there
/// before the program, as a desktop is: who watches what is executed sees the program alone. Also gives what was read by then.
///
/// # Errors
/// The disk is in use, or the prefetcher's.
pub fn begin<'a>(
    fixture: &Fixture<'a>,
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

/// Lets the prefetcher of the variant read ahead, where it does.
///
/// # Errors
/// The prefetcher's.
pub fn ahead(
    fixture: &Fixture<'_>,
    prefetcher: &mut Option<&mut dyn Prefetcher>,
    program: &'static Program,
    variant: Variant,
) -> Result<()> {
    match (variant, prefetcher) {
        (Variant::Preload | Variant::Ahead, Some(prefetcher)) => prefetcher.ahead(fixture, &[program]),
        _ => Ok(()),
    }
}

/// The time in system calls of one more launch, under strace.
///
/// # Errors
/// As [`run`], or there is no strace.
pub fn traced(
    fixture: &Fixture<'_>,
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
