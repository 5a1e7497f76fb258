//! One run: from a cold disk, by way of whoever reads ahead, to a started program.

use super::calls::{self, Calls};
use super::error::{Result, on};
use super::launcher::Ready;
use super::place::Reads;
use super::plan::Variant;
use super::prefetcher::Prefetcher;
use super::programs::Program;
use super::scene::{How, Launched, Scene};

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Trial {
    /// From exec until its window was there, or until it ended.
    pub seconds: f64,
    /// Faults that waited for the disk.
    pub major_faults: u64,
    /// What was read from the disk meanwhile, by whomever.
    pub during: Reads,
    /// What was read ahead; `None` where nobody reads ahead.
    pub ahead: Option<Reads>,
}

/// Holds one run. Afterwards the program has ended and the prefetcher rests, also where it failed.
///
/// # Errors
/// The launch came to nothing, or the prefetcher.
pub fn hold(
    scene: &Scene<'_>,
    prefetcher: &mut Option<&mut dyn Prefetcher>,
    program: &'static Program,
    variant: Variant,
) -> Result<Trial> {
    let held = begin(scene, prefetcher, program, variant, How::default()).and_then(|(ready, ahead)| {
        let Launched { running, reads } = scene.go(ready)?;
        let started = running.started.clone();
        running.end()?;
        Ok(Trial { seconds: started.seconds, major_faults: started.major_faults, during: reads, ahead })
    });
    let rested = prefetcher.as_mut().map_or(Ok(()), |p| p.rest());
    held.and_then(|trial| rested.map(|()| trial))
}

/// Cold, and then what the variant does before the launch. Gives the launch, and what was read ahead. The launcher is there first, as
/// a desktop is: who watches what is executed sees the program alone.
fn begin<'a>(
    scene: &Scene<'a>,
    prefetcher: &mut Option<&mut dyn Prefetcher>,
    program: &'static Program,
    variant: Variant,
    how: How<'_>,
) -> Result<(Ready<'a>, Option<Reads>)> {
    scene.place.cold()?;
    if variant == Variant::Warm {
        scene.launch(program, How::default())?.running.end()?;
    }
    let ready = scene.prepare(program, how)?;
    let before = scene.place.reads();
    prepare(scene, prefetcher, program, variant)?;
    let reads_ahead = matches!(variant, Variant::Preload | Variant::Ahead);
    Ok((ready, reads_ahead.then(|| scene.place.reads() - before)))
}

/// What the prefetcher of a variant does before the launch.
///
/// # Errors
/// The prefetcher's.
pub fn prepare(
    scene: &Scene<'_>,
    prefetcher: &mut Option<&mut dyn Prefetcher>,
    program: &'static Program,
    variant: Variant,
) -> Result<()> {
    match (variant, prefetcher) {
        (Variant::Preload | Variant::Ahead, Some(prefetcher)) => prefetcher.ahead(scene, &[program]),
        (Variant::AtExec, Some(prefetcher)) => prefetcher.at_exec(scene),
        _ => Ok(()),
    }
}

/// The time in system calls of one more launch, under strace.
///
/// # Errors
/// As [`hold`], or there is no strace.
pub fn traced(
    scene: &Scene<'_>,
    prefetcher: &mut Option<&mut dyn Prefetcher>,
    program: &'static Program,
    variant: Variant,
) -> Result<Calls> {
    let temporary = std::env::temp_dir();
    let file = tempfile::NamedTempFile::new().map_err(on("make a file in", &temporary))?;
    let how = How { traced: Some(file.path()), ..How::default() };
    let begun = begin(scene, prefetcher, program, variant, how);
    let held = begun.and_then(|(ready, _)| scene.go(ready)?.running.end());
    let rested = prefetcher.as_mut().map_or(Ok(()), |p| p.rest());
    held.and(rested)?;
    let text = std::fs::read(file.path()).map_err(on("read", file.path()))?;
    Ok(calls::parse(&String::from_utf8_lossy(&text)))
}
