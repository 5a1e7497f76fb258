//! What seeing launches costs: the CPU time of warm starts, with that of `eke-prefetch`, beside starts of which nobody knows.

use std::time::Duration;

use super::error::Result;
use super::fixture::{Fixture, How};
use super::launcher::Ready;
use super::prefetcher::eke::Eke;
use super::programs::Program;

/// All again so often, each time with a store that knows nothing.
const ROUNDS: usize = 4;
/// Starts in a round while nobody watches, while each is learned, and of a program that is known. The first of a program is learned cold,
/// or it would not be kept, and is not counted; of the next only two are learned.
const UNSEEN: usize = 4;
const LEARNED: usize = 2;
const KNOWN: usize = 3;
/// A start so soon after another of the same program is not looked after, and would cost too little. Before those that nobody sees it is as
/// quiet for as long: a program costs more when the processor's caches have forgotten it.
const BETWEEN: Duration = Duration::from_secs(11);
/// What is done for a start is done by then.
const SETTLES: Duration = Duration::from_secs(3);

/// CPU seconds of starts, each with what `eke-prefetch` took for it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cost {
    /// Nobody watches.
    pub unseen_s: Vec<f64>,
    /// The program is known: its files are looked at.
    pub known_s: Vec<f64>,
    /// The start is learned.
    pub learned_s: Vec<f64>,
    /// What of `known_s` `eke-prefetch` took itself.
    pub own_known_s: Vec<f64>,
    /// And of `learned_s`.
    pub own_learned_s: Vec<f64>,
}

/// Measures it. `eke` knows nothing afterwards.
///
/// # Errors
/// A launch came to nothing, or `eke-prefetch`.
pub fn run(fixture: &Fixture<'_>, eke: &mut Eke, program: &'static Program) -> Result<Cost> {
    let mut cost = Cost::default();
    let done = (0..ROUNDS).try_for_each(|_| round(fixture, eke, program, &mut cost));
    done.and(eke.forget_all()).map(|()| cost)
}

fn round(fixture: &Fixture<'_>, eke: &mut Eke, program: &'static Program, cost: &mut Cost) -> Result<()> {
    eke.forget_all()?;
    for _ in 0..UNSEEN {
        fixture.sleep(BETWEEN)?;
        cost.unseen_s.push(start(fixture, fixture.prepare(program, How::default())?)?);
    }
    fixture.disk.cold()?;
    // All before somebody watches: who prepares a launch is a program too, and what it starts soon would be part of its launch.
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

/// The CPU time of one.
fn start(fixture: &Fixture<'_>, ready: Ready<'_>) -> Result<f64> {
    let launched = fixture.go(ready)?;
    let seconds = launched.running.started.cpu_s;
    launched.running.end()?;
    Ok(seconds)
}
