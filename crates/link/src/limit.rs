//! The bottleneck of a cipher, from the CPU use of ssh and sshd. Pure.

use std::fmt;

use serde::Serialize;

use crate::evidence::Evidence;
use crate::parse::sample::Used;
use crate::throughput::{CipherMeasurement, Flow};

/// The bottleneck of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Limit {
    /// The link, or other traffic on it.
    Link,
    /// One thread of this machine: ssh.
    ThisThread,
    /// One thread of the far end: its ssh server.
    ThatThread,
    /// All CPUs of this machine, or the CPU quota of ssh's control group.
    ThisMachine,
    /// All CPUs of the far end, or its quota.
    ThatMachine,
    /// A CPU; the far end does not show the CPU use of its server.
    SomeCpu,
}

/// A thread with this share of a CPU is at its limit; in the rest it waits for its pipe.
const BUSY_THREAD: f64 = 0.85;
/// A machine with this share of all its CPUs is at its limit.
const BUSY_MACHINE: f64 = 0.93;
/// A thread with a smaller share of a CPU does not suffer from a busy machine.
const LIGHT: f64 = 0.2;
/// A quota that throttles for this share of the time is the limit.
const THROTTLED: f64 = 0.1;
/// If something else moved this much more, the link is not the limit.
const MORE: f64 = 1.15;
/// ssh fills the link from this share of its bare rate on: headers and MACs take the rest.
const FULL_LINK: f64 = 0.93;
/// If the costs of two ciphers differ by this ratio
const OTHER_COST: f64 = 1.25;
/// and their rates by less than this, the link is their limit.
const SAME_RATE: f64 = 0.04;

/// The limit of one cipher, beside all others. Tests in this order: a busy thread; the link, if ssh fills it or a cipher of another cost has the
/// same rate; a quota; all CPUs; a thread, if something else moved more; else the link.
pub fn limit(m: &CipherMeasurement, evidence: &Evidence<'_>) -> Limit {
    let (here, there) = shares(m);
    if here.max(there) >= BUSY_THREAD {
        return busier(m, here, there);
    }
    let is_full = evidence.bare.is_some_and(|bare| m.rate() >= bare.rate() * FULL_LINK);
    if is_full || evidence.measured.iter().any(|other| is_link(m, other)) {
        return Limit::Link;
    }
    let seconds = m.to_here.seconds.min(m.to_there.seconds).max(1e-9);
    if let Some(throttled) = machine(m, |u| u.throttled_s, THROTTLED * seconds) {
        return throttled;
    }
    if here.max(there) >= LIGHT {
        if let Some(full) = machine(m, |u| u.machine_busy, BUSY_MACHINE) {
            return full;
        }
    }
    let more = evidence.measured.iter().any(|o| o.rate() >= m.rate() * MORE)
        || evidence.bare.is_some_and(|bare| bare.rate() >= m.rate() * MORE)
        || evidence.sessions.is_some_and(|s| s.mb_per_s >= m.to_here.rate() * MORE);
    if more { busier(m, here, there) } else { Limit::Link }
}

/// The shares of a CPU that ssh and sshd used, in both directions together.
fn shares(m: &CipherMeasurement) -> (f64, f64) {
    let seconds = (m.to_here.seconds + m.to_there.seconds).max(1e-9);
    let all = |of: fn(&Flow) -> &Used| {
        (of(&m.to_here).cpu_s.unwrap_or(0.0) + of(&m.to_there).cpu_s.unwrap_or(0.0)) / seconds
    };
    (all(|f| &f.here), all(|f| &f.there))
}

/// The thread that used more CPU; unknown if the far end does not show it and this one is not busy.
fn busier(m: &CipherMeasurement, here: f64, there: f64) -> Limit {
    if m.to_here.there.cpu_s.is_none() && here < BUSY_THREAD {
        return Limit::SomeCpu;
    }
    if here >= there { Limit::ThisThread } else { Limit::ThatThread }
}

/// The machine where this value is at least `least`, by the larger of both directions.
fn machine(m: &CipherMeasurement, of: fn(&Used) -> Option<f64>, least: f64) -> Option<Limit> {
    let most = |a: &Used, b: &Used| of(a).unwrap_or(0.0).max(of(b).unwrap_or(0.0));
    let here = most(&m.to_here.here, &m.to_there.here);
    let there = most(&m.to_here.there, &m.to_there.there);
    let which = if here >= there { Limit::ThisMachine } else { Limit::ThatMachine };
    (here.max(there) >= least).then_some(which)
}

/// The same rate at another cost shows that the CPU is not the limit.
fn is_link(m: &CipherMeasurement, other: &CipherMeasurement) -> bool {
    let same = (other.rate() / m.rate().max(1e-9) - 1.0).abs() < SAME_RATE;
    let costs = m.cpu_per_mb().zip(other.cpu_per_mb());
    same && costs.is_some_and(|(a, b)| a.max(b) >= OTHER_COST * a.min(b))
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Link => "the link",
            Self::ThisThread => "one thread of this CPU",
            Self::ThatThread => "one thread of that CPU",
            Self::ThisMachine => "all of this CPU",
            Self::ThatMachine => "all of that CPU",
            Self::SomeCpu => "a CPU",
        })
    }
}
