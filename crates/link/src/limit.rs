//! What keeps a cipher from being faster, read off what ssh and sshd used meanwhile. Pure.

use std::fmt;

use serde::Serialize;

use crate::evidence::Evidence;
use crate::figures::{Flow, Measured};
use crate::parse::sample::Used;

/// What keeps a session from being faster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Limit {
    /// The link, or what else uses it.
    Link,
    /// One thread of this machine: ssh.
    ThisThread,
    /// One thread of the far end: its ssh server.
    ThatThread,
    /// All CPUs of this machine, or the quota of the group that ssh is in.
    ThisMachine,
    /// All CPUs of the far end, or its quota.
    ThatMachine,
    /// A CPU, and the far end does not show how much its server uses.
    SomeCpu,
}

/// A thread that is so busy can do no more; the rest is waiting for its pipe.
const BUSY_THREAD: f64 = 0.85;
/// The same of all CPUs of a machine.
const BUSY_MACHINE: f64 = 0.93;
/// Threads that do so little are not what others' load keeps from being faster.
const LIGHT: f64 = 0.2;
/// A quota that holds back for so much of the time is the limit.
const HELD_BACK: f64 = 0.1;
/// Somebody who got so much more through shows that it is not the link.
const MORE: f64 = 1.15;
/// What carries so much of what the link does without ssh fills it: headers and MACs take the rest.
const FULL_LINK: f64 = 0.93;
/// Rates of ciphers that cost so differently are the same only by the link.
const OTHER_COST: f64 = 1.25;
const SAME_RATE: f64 = 0.04;

/// The limit of one that was measured, beside all the others: a thread that is busy; the link, where ssh fills it or another cost gives the same rate; a quota;
/// all CPUs; a thread, where somebody got more through; the link.
pub fn limit(m: &Measured, evidence: &Evidence<'_>) -> Limit {
    let (here, there) = shares(m);
    if here.max(there) >= BUSY_THREAD {
        return busier(m, here, there);
    }
    let is_full = evidence.bare.is_some_and(|bare| m.rate() >= bare.rate() * FULL_LINK);
    if is_full || evidence.measured.iter().any(|other| is_link(m, other)) {
        return Limit::Link;
    }
    let seconds = m.to_here.seconds.min(m.to_there.seconds).max(1e-9);
    if let Some(held) = machine(m, |u| u.throttled_s, HELD_BACK * seconds) {
        return held;
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

/// The shares of a CPU that ssh and sshd used, both ways together.
fn shares(m: &Measured) -> (f64, f64) {
    let seconds = (m.to_here.seconds + m.to_there.seconds).max(1e-9);
    let all = |of: fn(&Flow) -> &Used| {
        (of(&m.to_here).cpu_s.unwrap_or(0.0) + of(&m.to_there).cpu_s.unwrap_or(0.0)) / seconds
    };
    (all(|f| &f.here), all(|f| &f.there))
}

/// The thread that used more; unknown where the far end does not show it and this one is not busy.
fn busier(m: &Measured, here: f64, there: f64) -> Limit {
    if m.to_here.there.cpu_s.is_none() && here < BUSY_THREAD {
        return Limit::SomeCpu;
    }
    if here >= there { Limit::ThisThread } else { Limit::ThatThread }
}

/// The machine where this figure is at least so much, by the larger of both ways.
fn machine(m: &Measured, of: fn(&Used) -> Option<f64>, least: f64) -> Option<Limit> {
    let most = |a: &Used, b: &Used| of(a).unwrap_or(0.0).max(of(b).unwrap_or(0.0));
    let here = most(&m.to_here.here, &m.to_there.here);
    let there = most(&m.to_here.there, &m.to_there.there);
    let which = if here >= there { Limit::ThisMachine } else { Limit::ThatMachine };
    (here.max(there) >= least).then_some(which)
}

/// The same rate at another cost: then it is not the CPU.
fn is_link(m: &Measured, other: &Measured) -> bool {
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
