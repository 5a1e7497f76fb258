//! Programs in a row, each closed before the next: what they share is in memory after the first that had it. Without a prefetcher this
//! is what the bare page cache does.

use std::time::Duration;

use super::disk::Reads;
use super::error::Result;
use super::fixture::{Fixture, How, Launched};
use super::plan::Variant;
use super::prefetcher::Prefetcher;
use super::programs::Program;

/// So many.
pub const COUNT: usize = 10;
/// Each stays for so many of preload's cycles, so that it has its chance; and at least for [`LEAST`].
const CYCLES: f64 = 1.5;
const LEAST: Duration = Duration::from_secs(3);

/// A row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ten {
    /// Each start, in order.
    pub seconds: Vec<f64>,
    /// What was read while they started.
    pub during: Reads,
    /// What was read before the first and between the starts, too.
    pub all: Reads,
}

/// Holds a row, from a cold disk. Variants of which nothing runs by itself are the same as cold.
///
/// # Errors
/// A launch came to nothing, or the prefetcher.
pub fn run(
    fixture: &Fixture<'_>,
    prefetcher: &mut Option<&mut dyn Prefetcher>,
    row: &[&'static Program],
    variant: Variant,
) -> Result<Ten> {
    let measured = go_through(fixture, prefetcher, row, variant);
    let rested = prefetcher.as_mut().map_or(Ok(()), |p| p.rest());
    measured.and_then(|ten| rested.map(|()| ten))
}

fn go_through(
    fixture: &Fixture<'_>,
    prefetcher: &mut Option<&mut dyn Prefetcher>,
    row: &[&'static Program],
    variant: Variant,
) -> Result<Ten> {
    let mut ten = Ten::default();
    let mut rest = row.iter();
    let stay = Duration::from_secs(fixture.options.preload_cycle_s).mul_f64(CYCLES).max(LEAST);
    begin(fixture, prefetcher, row, variant)?;
    fixture.disk.cold()?;
    let mut next = rest.next().map(|program| fixture.prepare(program, How::default())).transpose()?;
    let before = fixture.disk.reads();
    fixture.sleep(stay)?;
    while let Some(ready) = next {
        let Launched { running, reads } = fixture.go(ready)?;
        ten.seconds.push(running.started.seconds);
        ten.during.requests += reads.requests;
        ten.during.bytes += reads.bytes;
        // The next launcher is there for a while before it is used, as a desktop is.
        next = rest.next().map(|program| fixture.prepare(program, How::default())).transpose()?;
        fixture.sleep(stay)?;
        running.end()?;
    }
    ten.all = fixture.disk.reads() - before;
    Ok(ten)
}

fn begin(
    fixture: &Fixture<'_>,
    prefetcher: &mut Option<&mut dyn Prefetcher>,
    row: &[&'static Program],
    variant: Variant,
) -> Result<()> {
    match (variant, prefetcher, row.first()) {
        (Variant::Preload | Variant::Ahead, Some(prefetcher), _) => prefetcher.watch(fixture, row),
        (Variant::AtExec, Some(prefetcher), Some(first)) => prefetcher.at_exec(fixture, first),
        _ => Ok(()),
    }
}
