//! Bulk through each cipher in turn, in slices to here and to there, and what each process used for it.

use std::time::{Duration, Instant};

use super::channel::Channel;
use super::meet::echo_us;
use crate::error::Result;
use crate::figures::{Flow, Measured, Way, net_seconds};
use crate::parse::sample::Spent;
use crate::plan::{self, Budget, slice_bytes};
use crate::suite::Suite;

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Slices {
    /// In the order of the channels.
    pub measured: Vec<Measured>,
    /// All bytes that were moved.
    pub bytes: u64,
}

/// Finding a slice's size begins with this, and ends with the second.
const FIRST_LOOK: u64 = 4 << 10;
const LONGEST_LOOK: u64 = 512 << 10;
/// Enough for a look.
const LOOKED_S: f64 = 0.02;

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
    let mut race = Race { here, moved: 0 };
    let mut lanes = Vec::new();
    let slices = plan::slices(channels.len());
    for (suite, channel) in channels.iter_mut() {
        let echo_us = echo_us(channel)?;
        let left = budget.time.saturating_sub(began.elapsed());
        let mut track = |way| race.look(channel, way, slices, left, budget);
        let (to_here, to_there) = (track(Way::ToHere)?, track(Way::ToThere)?);
        lanes.push(Lane { suite: suite.clone(), channel, to_here, to_there, echo_us });
    }
    let everybody: Vec<usize> = (0..lanes.len()).collect();
    race.rounds(&mut lanes, &everybody, plan::WARM_UP)?;
    lanes.iter_mut().for_each(Lane::forget);
    race.rounds(&mut lanes, &everybody, plan::ROUNDS)?;
    let near = near(&lanes);
    race.rounds(&mut lanes, &near, plan::MORE_ROUNDS)?;
    Ok(Slices { measured: lanes.iter().map(Lane::measured).collect(), bytes: race.moved })
}

/// A cipher in the race.
struct Lane<'c, 'a> {
    suite: Suite,
    channel: &'c mut Channel<'a>,
    to_here: Track,
    to_there: Track,
    echo_us: Option<f64>,
}

/// One way of it.
struct Track {
    /// Of each slice.
    bytes: u64,
    /// The time of a request for nothing.
    idle: Duration,
    flow: Flow,
    here: Spent,
    there: Spent,
}

impl Track {
    fn forget(&mut self) {
        (self.flow, self.here, self.there) = (Flow::default(), Spent::default(), Spent::default());
    }

    fn flow(&self) -> Flow {
        Flow { here: self.here.used(), there: self.there.used(), ..self.flow.clone() }
    }
}

impl Lane<'_, '_> {
    fn forget(&mut self) {
        self.to_here.forget();
        self.to_there.forget();
    }

    /// MB/s both ways, by the best slice of each: one that was disturbed says nothing of the cipher.
    fn best(&self) -> f64 {
        let best = |t: &Track| t.flow.mb_per_s.iter().copied().fold(0.0, f64::max);
        crate::figures::both_ways(best(&self.to_here), best(&self.to_there))
    }

    fn measured(&self) -> Measured {
        Measured {
            suite: self.suite.clone(),
            to_here: self.to_here.flow(),
            to_there: self.to_there.flow(),
            echo_us: self.echo_us,
        }
    }

    /// CPU of the end that needs more.
    fn cost(&self) -> Option<f64> {
        self.measured().bound_per_mb()
    }
}

/// Those that may still be the fastest, the one that costs the least CPU among them.
fn near(lanes: &[Lane<'_, '_>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..lanes.len()).collect();
    order.sort_by(|a, b| lanes[*b].best().total_cmp(&lanes[*a].best()));
    let fastest = order.first().map_or(0.0, |n| lanes[*n].best());
    order.truncate(plan::NEAR);
    order.retain(|n| lanes[*n].best() >= fastest * plan::IN_THE_RACE);
    let cheapest =
        (0..lanes.len()).filter_map(|n| Some((n, lanes[n].cost()?))).min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((cheapest, _)) = cheapest.filter(|(n, _)| !order.contains(n)) {
        order.truncate(plan::NEAR - 1);
        order.push(cheapest);
    }
    order
}

struct Race<'c, 'a> {
    here: &'c mut Channel<'a>,
    moved: u64,
}

impl Race<'_, '_> {
    /// How large a slice is to be, by what a few small ones show.
    fn look(
        &mut self,
        channel: &mut Channel<'_>,
        way: Way,
        slices: usize,
        left: Duration,
        budget: &Budget,
    ) -> Result<Track> {
        let mut idle = Duration::MAX;
        for _ in 0..3 {
            idle = idle.min(go(channel, way, 1)?);
        }
        let mut bytes = FIRST_LOOK;
        let rate = loop {
            let seconds = net_seconds(go(channel, way, bytes)?, idle);
            self.moved += bytes;
            if seconds >= LOOKED_S || bytes >= LONGEST_LOOK {
                break bytes as f64 / seconds;
            }
            bytes *= 4;
        };
        let bytes = slice_bytes(rate, slices, left, budget);
        Ok(Track { bytes, idle, flow: Flow::default(), here: Spent::default(), there: Spent::default() })
    }

    fn rounds(&mut self, lanes: &mut [Lane<'_, '_>], which: &[usize], rounds: usize) -> Result<()> {
        for round in 0..rounds {
            for n in 0..which.len() {
                // another one begins each round
                let lane = &mut lanes[which[(n + round) % which.len()]];
                self.slice(lane.channel, &mut lane.to_here, Way::ToHere)?;
                self.slice(lane.channel, &mut lane.to_there, Way::ToThere)?;
            }
        }
        Ok(())
    }

    fn slice(&mut self, channel: &mut Channel<'_>, track: &mut Track, way: Way) -> Result<()> {
        let pid = Some(channel.pid());
        let before = (self.here.sample(pid)?, channel.sample(None)?);
        let seconds = net_seconds(go(channel, way, track.bytes)?, track.idle);
        let there = channel.sample(None)?.since(&before.1);
        let here = self.here.sample(pid)?.since(&before.0);
        let cpu_s = here.used().cpu_s.zip(there.used().cpu_s);
        let mb = track.bytes as f64 / 1e6;
        track.flow.slices_cpu_per_mb.extend(cpu_s.map(|(here, there)| (here / mb, there / mb)));
        track.here += here;
        track.there += there;
        track.flow.bytes += track.bytes;
        track.flow.seconds += seconds;
        track.flow.mb_per_s.push(track.bytes as f64 / 1e6 / seconds);
        self.moved += track.bytes;
        Ok(())
    }
}

fn go(channel: &mut Channel<'_>, way: Way, bytes: u64) -> Result<Duration> {
    match way {
        Way::ToHere => channel.get(bytes),
        Way::ToThere => channel.put(bytes),
    }
}
