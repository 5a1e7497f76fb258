//! Bulk data through each cipher, in alternating slices from and to the far end, with the CPU time of both processes.

use std::time::{Duration, Instant};

use super::channel::Channel;
use super::connect::echo_us;
use crate::error::Result;
use crate::parse::sample::Spent;
use crate::plan::{self, Budget, slice_bytes};
use crate::suite::Suite;
use crate::throughput::{CipherMeasurement, Direction, Flow, net_seconds};

/// The result.
#[derive(Debug, Clone, PartialEq)]
pub struct Slices {
    /// In the order of the channels.
    pub measured: Vec<CipherMeasurement>,
    /// Bytes moved in all.
    pub bytes: u64,
}

/// The first probe of a rate, in bytes; each further one is larger.
const FIRST_PROBE: u64 = 4 << 10;
/// The largest probe.
const LONGEST_PROBE: u64 = 512 << 10;
/// A probe of so many seconds is long enough.
const PROBED_S: f64 = 0.02;

/// Measures all channels; `here` is a shell on this machine.
///
/// # Errors
/// A channel's.
pub fn measure(
    channels: &mut [(Suite, Channel<'_>)],
    here: &mut Channel<'_>,
    budget: &Budget,
    began: Instant,
) -> Result<Slices> {
    let mut rounds = Rounds { here, moved: 0, end: began + budget.time };
    let mut runs = Vec::new();
    let slices = plan::slices(channels.len());
    for (suite, channel) in channels.iter_mut() {
        let echo_us = echo_us(channel)?;
        let left = budget.time.saturating_sub(began.elapsed());
        let mut run = |way| rounds.probe(channel, way, slices, left, budget);
        let (to_here, to_there) = (run(Direction::ToHere)?, run(Direction::ToThere)?);
        runs.push(CipherRun { suite: suite.clone(), channel, to_here, to_there, echo_us });
    }
    let all: Vec<usize> = (0..runs.len()).collect();
    rounds.rounds(&mut runs, &all, plan::WARM_UP)?;
    runs.iter_mut().for_each(CipherRun::forget);
    rounds.rounds(&mut runs, &all, plan::ROUNDS)?;
    if !rounds.is_late() {
        let near = near(&runs);
        rounds.rounds(&mut runs, &near, plan::MORE_ROUNDS)?;
    }
    Ok(Slices { measured: runs.iter().map(CipherRun::measured).collect(), bytes: rounds.moved })
}

/// A cipher under measurement.
struct CipherRun<'c, 'a> {
    suite: Suite,
    channel: &'c mut Channel<'a>,
    to_here: DirectionRun,
    to_there: DirectionRun,
    echo_us: Option<f64>,
}

/// One direction of it.
struct DirectionRun {
    /// Bytes of each slice.
    bytes: u64,
    /// The time of an empty request.
    idle: Duration,
    flow: Flow,
    here: Spent,
    there: Spent,
}

impl DirectionRun {
    fn forget(&mut self) {
        (self.flow, self.here, self.there) = (Flow::default(), Spent::default(), Spent::default());
    }

    fn flow(&self) -> Flow {
        Flow { here: self.here.used(), there: self.there.used(), ..self.flow.clone() }
    }
}

impl CipherRun<'_, '_> {
    fn forget(&mut self) {
        self.to_here.forget();
        self.to_there.forget();
    }

    /// MB/s of both directions, by the best slice of each: a disturbed slice does not count against the cipher.
    fn best(&self) -> f64 {
        let best = |t: &DirectionRun| t.flow.mb_per_s.iter().copied().fold(0.0, f64::max);
        crate::throughput::both_ways(best(&self.to_here), best(&self.to_there))
    }

    fn measured(&self) -> CipherMeasurement {
        CipherMeasurement {
            suite: self.suite.clone(),
            to_here: self.to_here.flow(),
            to_there: self.to_there.flow(),
            echo_us: self.echo_us,
        }
    }

    /// CPU seconds per MB of the end that needs more.
    fn cost(&self) -> Option<f64> {
        self.measured().bound_per_mb()
    }
}

/// The ciphers that may still be the fastest, and the one with the least CPU time.
fn near(runs: &[CipherRun<'_, '_>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|a, b| runs[*b].best().total_cmp(&runs[*a].best()));
    let fastest = order.first().map_or(0.0, |n| runs[*n].best());
    order.truncate(plan::NEAR);
    order.retain(|n| runs[*n].best() >= fastest * plan::NEAR_FASTEST);
    let cheapest =
        (0..runs.len()).filter_map(|n| Some((n, runs[n].cost()?))).min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((cheapest, _)) = cheapest.filter(|(n, _)| !order.contains(n)) {
        order.truncate(plan::NEAR - 1);
        order.push(cheapest);
    }
    order
}

struct Rounds<'c, 'a> {
    here: &'c mut Channel<'a>,
    moved: u64,
    /// The end of the planned time. On a slow link it comes before all rounds.
    end: Instant,
}

impl Rounds<'_, '_> {
    fn is_late(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Finds the size of a slice by a few small ones.
    fn probe(
        &mut self,
        channel: &mut Channel<'_>,
        way: Direction,
        slices: usize,
        left: Duration,
        budget: &Budget,
    ) -> Result<DirectionRun> {
        let mut idle = Duration::MAX;
        for _ in 0..3 {
            idle = idle.min(go(channel, way, 1)?);
        }
        let mut bytes = FIRST_PROBE;
        let rate = loop {
            let seconds = net_seconds(go(channel, way, bytes)?, idle);
            self.moved += bytes;
            if seconds >= PROBED_S || bytes >= LONGEST_PROBE {
                break bytes as f64 / seconds;
            }
            bytes *= 4;
        };
        let bytes = slice_bytes(rate, slices, left, budget);
        Ok(DirectionRun {
            bytes,
            idle,
            flow: Flow::default(),
            here: Spent::default(),
            there: Spent::default(),
        })
    }

    fn rounds(&mut self, runs: &mut [CipherRun<'_, '_>], which: &[usize], rounds: usize) -> Result<()> {
        for round in 0..rounds {
            if round > 0 && self.is_late() {
                break;
            }
            for n in 0..which.len() {
                // each round begins with another cipher
                let run = &mut runs[which[(n + round) % which.len()]];
                self.slice(run.channel, &mut run.to_here, Direction::ToHere)?;
                self.slice(run.channel, &mut run.to_there, Direction::ToThere)?;
            }
        }
        Ok(())
    }

    fn slice(&mut self, channel: &mut Channel<'_>, run: &mut DirectionRun, way: Direction) -> Result<()> {
        let pid = Some(channel.pid());
        let before = (self.here.sample(pid)?, channel.sample(None)?);
        let seconds = net_seconds(go(channel, way, run.bytes)?, run.idle);
        let there = channel.sample(None)?.since(&before.1);
        let here = self.here.sample(pid)?.since(&before.0);
        let cpu_s = here.used().cpu_s.zip(there.used().cpu_s);
        let mb = run.bytes as f64 / 1e6;
        run.flow.slices_cpu_per_mb.extend(cpu_s.map(|(here, there)| (here / mb, there / mb)));
        run.here += here;
        run.there += there;
        run.flow.bytes += run.bytes;
        run.flow.seconds += seconds;
        run.flow.mb_per_s.push(run.bytes as f64 / 1e6 / seconds);
        self.moved += run.bytes;
        Ok(())
    }
}

fn go(channel: &mut Channel<'_>, way: Direction, bytes: u64) -> Result<Duration> {
    match way {
        Direction::ToHere => channel.get(bytes),
        Direction::ToThere => channel.put(bytes),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::measure::channel::Opening;

    #[test]
    fn on_a_link_that_is_slower_than_planned_each_cipher_has_one_slice() {
        static ON: AtomicBool = AtomicBool::new(false);
        let open = || {
            let opening = Opening { name: "here", may_ask: false, shutdown: &ON };
            Channel::open(Command::new("sh"), opening).unwrap()
        };
        let suites = ["aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"];
        let mut channels: Vec<_> = suites.iter().map(|name| (Suite::new(name, None), open())).collect();
        let slices = |time: Duration, channels: &mut Vec<_>| {
            let budget = Budget { time, ..Budget::default() };
            let found = measure(channels, &mut open(), &budget, Instant::now()).unwrap();
            found.measured.iter().map(|m| m.to_here.mb_per_s.len()).collect::<Vec<_>>()
        };
        assert_eq!(slices(Duration::ZERO, &mut channels), [1, 1]);
        let all = plan::ROUNDS + plan::MORE_ROUNDS;
        assert!(slices(Duration::from_secs(1000), &mut channels).contains(&all));
    }
}
