//! Bulk through each cipher in turn, in slices, first to here and then to there, and what each process used for it.

use std::time::{Duration, Instant};

use super::channel::Channel;
use super::meet::echo_us;
use crate::error::Result;
use crate::figures::{Flow, Measured, Way};
use crate::parse::sample::Sample;
use crate::plan::{Budget, ROUNDS, slice_bytes};
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
const LONGEST_LOOK: u64 = 1 << 20;
/// Enough for a look.
const LOOKED: Duration = Duration::from_millis(40);

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
    let mut echoes = Vec::new();
    for (_, channel) in channels.iter_mut() {
        echoes.push(echo_us(channel)?);
    }
    let mut both = Vec::new();
    let mut bytes = 0;
    for way in [Way::ToHere, Way::ToThere] {
        let left =
            budget.time.saturating_sub(began.elapsed()).mul_f64(if way == Way::ToHere { 0.5 } else { 1.0 });
        let half = Budget { bytes: budget.bytes / 2, ..*budget };
        let (flows, moved) = one_way(channels, here, way, &half, left)?;
        both.push(flows);
        bytes += moved;
    }
    let to_there = both.pop().unwrap_or_default();
    let to_here = both.pop().unwrap_or_default();
    let suites = channels.iter().map(|(suite, _)| suite.clone());
    let flows = to_here.into_iter().zip(to_there).zip(echoes);
    let measured = suites
        .zip(flows)
        .map(|(suite, ((to_here, to_there), echo_us))| Measured { suite, to_here, to_there, echo_us })
        .collect();
    Ok(Slices { measured, bytes })
}

/// What is known of a channel before its slices.
struct Look {
    /// The time of a request for nothing.
    idle: Duration,
    bytes: u64,
    here: Sample,
    there: Sample,
}

fn one_way(
    channels: &mut [(Suite, Channel<'_>)],
    here: &mut Channel<'_>,
    way: Way,
    budget: &Budget,
    left: Duration,
) -> Result<(Vec<Flow>, u64)> {
    let slices = channels.len() * ROUNDS;
    let mut moved = 0;
    let mut looks = Vec::new();
    for (_, channel) in channels.iter_mut() {
        let (idle, rate, looked) = look(channel, way)?;
        moved += looked;
        let bytes = slice_bytes(rate, slices, left, budget);
        looks.push(Look {
            idle,
            bytes,
            here: here.sample(Some(channel.pid()))?,
            there: channel.sample(None)?,
        });
    }
    let mut flows = vec![Flow::default(); channels.len()];
    for round in 0..ROUNDS {
        for n in 0..channels.len() {
            // another one begins each round
            let n = (n + round) % channels.len();
            let took = go(&mut channels[n].1, way, looks[n].bytes)?;
            let seconds = took.saturating_sub(looks[n].idle).as_secs_f64().max(1e-6);
            moved += looks[n].bytes;
            flows[n].bytes += looks[n].bytes;
            flows[n].seconds += seconds;
            flows[n].mb_per_s.push(looks[n].bytes as f64 / 1e6 / seconds);
        }
    }
    for ((flow, look), (_, channel)) in flows.iter_mut().zip(&looks).zip(channels.iter_mut()) {
        flow.here = here.sample(Some(channel.pid()))?.since(&look.here);
        flow.there = channel.sample(None)?.since(&look.there);
    }
    Ok((flows, moved))
}

fn go(channel: &mut Channel<'_>, way: Way, bytes: u64) -> Result<Duration> {
    match way {
        Way::ToHere => channel.get(bytes),
        Way::ToThere => channel.put(bytes),
    }
}

/// The time of a request for nothing, the rate in bytes a second, and the bytes that it took to find out.
fn look(channel: &mut Channel<'_>, way: Way) -> Result<(Duration, f64, u64)> {
    let mut idle = Duration::MAX;
    for _ in 0..3 {
        idle = idle.min(go(channel, way, 1)?);
    }
    let (mut bytes, mut moved) = (FIRST_LOOK, 3);
    loop {
        let took = go(channel, way, bytes)?.saturating_sub(idle).max(Duration::from_micros(1));
        moved += bytes;
        if took >= LOOKED || bytes >= LONGEST_LOOK {
            return Ok((idle, bytes as f64 / took.as_secs_f64(), moved));
        }
        bytes *= 4;
    }
}
