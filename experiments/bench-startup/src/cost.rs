//! The cost of tracing launches: the CPU time of warm starts and of `eke-prefetch`, beside starts without it.

use std::time::Duration;

use super::error::Result;
use super::fixture::{DiskFixture, How};
use super::launcher::Ready;
use super::prefetcher::eke::Eke;
use super::programs::Program;

/// Rounds, each with an empty store.
const ROUNDS: usize = 4;
/// Starts in a round: without eke-prefetch, while it learns each, and once it knows the program. The first start is cold, since only
/// cold ones are kept, and is not counted. Of the next, only two are learned.
const UNSEEN: usize = 4;
const LEARNED: usize = 2;
const KNOWN: usize = 3;
/// eke-prefetch ignores starts that follow sooner on another start of the same program, so they would cost too little. Starts without it
/// have the same pause: a program takes more CPU time when the processor's caches are cold.
const BETWEEN: Duration = Duration::from_secs(11);
/// eke-prefetch has finished its work for a start by then.
const SETTLES: Duration = Duration::from_secs(3);

/// CPU seconds of starts, with those of `eke-prefetch`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cost {
    /// Without eke-prefetch.
    pub unseen_s: Vec<f64>,
    /// The program is known: eke-prefetch probes its files.
    pub known_s: Vec<f64>,
    /// eke-prefetch learns the start.
    pub learned_s: Vec<f64>,
    /// The part of `known_s` that `eke-prefetch` took itself.
    pub own_known_s: Vec<f64>,
    /// The same of `learned_s`.
    pub own_learned_s: Vec<f64>,
}

/// Measures the cost. `eke`'s store is empty afterwards.
///
/// # Errors
/// A launch or `eke-prefetch` failed.
pub fn run(fixture: &DiskFixture<'_>, eke: &mut Eke, program: &'static Program) -> Result<Cost> {
    let mut cost = Cost::default();
    let done = (0..ROUNDS).try_for_each(|_| round(fixture, eke, program, &mut cost));
    done.and(eke.forget_all()).map(|()| cost)
}

fn round(fixture: &DiskFixture<'_>, eke: &mut Eke, program: &'static Program, cost: &mut Cost) -> Result<()> {
    eke.forget_all()?;
    for _ in 0..UNSEEN {
        fixture.sleep(BETWEEN)?;
        cost.unseen_s.push(start(fixture, fixture.prepare(program, How::default())?)?);
    }
    fixture.disk.cold()?;
    // Prepare all before tracing starts: the launcher is a program too, and a program that it starts soon would be part of its launch.
    let prepared = (0..1 + LEARNED + KNOWN).map(|_| fixture.prepare(program, How::default()));
    let mut prepared = prepared.collect::<Result<Vec<_>>>()?.into_iter();
    eke.watch_starts(fixture)?;
    for ready in prepared.by_ref().take(1) {
        start(fixture, ready)?;
        eke.wait_learned(fixture, &fixture.inside(program))?;
    }
    for ready in prepared.by_ref().take(LEARNED) {
        let before = eke.cpu_s()?;
        let seconds = start(fixture, ready)?;
        eke.wait_learned(fixture, &fixture.inside(program))?;
        let own = eke.cpu_s()? - before;
        cost.learned_s.push(seconds + own);
        cost.own_learned_s.push(own);
    }
    for ready in prepared {
        fixture.sleep(BETWEEN)?;
        let before = eke.cpu_s()?;
        let seconds = start(fixture, ready)?;
        fixture.sleep(SETTLES)?;
        let own = eke.cpu_s()? - before;
        cost.known_s.push(seconds + own);
        cost.own_known_s.push(own);
    }
    Ok(())
}

/// The CPU time of one start.
fn start(fixture: &DiskFixture<'_>, ready: Ready<'_>) -> Result<f64> {
    let launched = fixture.go(ready)?;
    let seconds = launched.running.started.cpu_s;
    launched.running.end()?;
    Ok(seconds)
}
