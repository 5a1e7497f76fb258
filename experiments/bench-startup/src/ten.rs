//! Programs in a row, each closed before the next: shared files stay in memory after the first program. Without a prefetcher this
//! measures the page cache alone.

use std::time::Duration;

use super::disk::Reads;
use super::error::Result;
use super::fixture::{DiskFixture, How, Launched};
use super::plan::Variant;
use super::prefetcher::Prefetcher;
use super::programs::Program;

/// The number of starts.
pub const COUNT: usize = 10;
/// Each program runs for this many of preload's cycles, so that preload can learn it, and at least for [`LEAST`].
const CYCLES: f64 = 1.5;
const LEAST: Duration = Duration::from_secs(3);

/// The measurements of a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ten {
    /// The time of each start, in order.
    pub seconds: Vec<f64>,
    /// Reads during the starts.
    pub during: Reads,
    /// All reads, also before and between the starts.
    pub all: Reads,
}

/// Starts a row from a cold disk. Variants without a running prefetcher are the same as cold.
///
/// # Errors
/// A launch or the prefetcher failed.
pub fn run(
    fixture: &DiskFixture<'_>,
    prefetcher: &mut Option<&mut dyn Prefetcher>,
    row: &[&'static Program],
    variant: Variant,
) -> Result<Ten> {
    let measured = go_through(fixture, prefetcher, row, variant);
    let rested = prefetcher.as_mut().map_or(Ok(()), |p| p.rest());
    measured.and_then(|ten| rested.map(|()| ten))
}

fn go_through(
    fixture: &DiskFixture<'_>,
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
        // The next launcher runs for a while before it is used, as a desktop does.
        next = rest.next().map(|program| fixture.prepare(program, How::default())).transpose()?;
        fixture.sleep(stay)?;
        running.end()?;
    }
    ten.all = fixture.disk.reads() - before;
    Ok(ten)
}

fn begin(
    fixture: &DiskFixture<'_>,
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
