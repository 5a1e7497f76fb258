//! One setting: measures every allowed cipher exhaustively, then lets eke choose.

use std::time::Duration;

use eke_bench_core::Environment;
use eke_link::Suite;
use eke_link::decide::Limit;
use eke_link::measure::channel::{Channel, Opening};
use eke_link::measure::{self, MeasureOptions, Ssh};
use eke_link::policy::{Offers, Policy};
use eke_link::throughput::{both_ways, median, net_seconds};

use super::Options;
use super::error::{Error, Result};
use super::plan::study;
use super::server::HOST;
use super::x11::Session;

/// The length and number of slices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lengths {
    /// The time of one slice.
    pub slice: Duration,
    /// The most bytes of one slice.
    pub most: u64,
    /// How many slices count.
    pub rounds: usize,
}

impl Lengths {
    /// The slices of a calibration.
    pub const CALIBRATION: Self = Self { slice: Duration::from_millis(400), most: 64_000_000, rounds: 5 };
}

/// A cipher, measured exhaustively.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// The cipher.
    pub suite: Suite,
    /// Whether eke may choose it.
    pub is_allowed: bool,
    /// MB/s of each slice from the server.
    pub to_here: Vec<f64>,
    /// MB/s of each slice to the server.
    pub to_there: Vec<f64>,
    /// CPU seconds per MB of the end that needs more, for each round; empty if an end does not report them. Background load hardly
    /// changes them.
    pub bound_per_mb: Vec<f64>,
}

impl Sampled {
    /// MB/s with equal amounts in both directions, for each round.
    pub fn rates(&self) -> Vec<f64> {
        self.to_here.iter().zip(&self.to_there).map(|(a, b)| both_ways(*a, *b)).collect()
    }

    /// The median of [`Self::rates`].
    pub fn rate(&self) -> f64 {
        median(&self.rates())
    }
}

/// One decision of eke.
#[derive(Debug, Clone, PartialEq)]
pub struct Chosen {
    /// The chosen cipher.
    pub suite: Suite,
    /// What limits the rate.
    pub limit: Limit,
    /// How long the decision took, in seconds.
    pub seconds: f64,
    /// How many bytes it moved.
    pub bytes: u64,
}

/// The transport of an X session.
#[derive(Debug, Clone, PartialEq)]
pub enum Transport {
    /// ssh with this cipher.
    Suite(Suite),
    /// ssh with eke's cipher and compression.
    Compressed,
    /// TCP without ssh.
    Direct,
}

/// The measurements of one setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Every cipher, measured exhaustively.
    pub sampled: Vec<Sampled>,
    /// eke's decisions.
    pub chosen: Vec<Chosen>,
    /// Frames per second of an X session, for some transports.
    pub frames: Vec<(Transport, f64)>,
    /// Why there are no frames.
    pub no_frames: Option<String>,
}

/// Measures every allowed cipher and the study's, then lets eke choose.
///
/// # Errors
/// A connection fails, or a signal came.
pub fn run(
    environment: &Environment<'_>,
    options: &Options,
    ssh: &Ssh,
    session: Option<&Session>,
) -> Result<Trial> {
    let suites = suites(environment, ssh)?;
    let lengths = if options.quick {
        Lengths { slice: Duration::from_millis(120), most: 12_000_000, rounds: options.rounds }
    } else {
        Lengths { slice: Duration::from_millis(400), most: 64_000_000, rounds: options.rounds }
    };
    let sampled = exhaustive(environment, ssh, &suites, lengths)?;
    let mut chosen = Vec::new();
    for _ in 0..options.repeats {
        environment.progress.doing("eke link");
        let link = measure::run(ssh, &MeasureOptions::new(HOST), environment.shutdown, &|_| {})?;
        chosen.push(Chosen {
            suite: link.decision.chosen,
            limit: link.decision.limit,
            seconds: link.seconds,
            bytes: link.bytes,
        });
    }
    let (frames, no_frames) = match session.map(|s| frames(environment, ssh, s, &chosen)).transpose() {
        Ok(frames) => (frames.unwrap_or_default(), None),
        Err(Error::Environment(why)) => (Vec::new(), Some(why)),
        Err(e) => return Err(e),
    };
    Ok(Trial { sampled, chosen, frames, no_frames })
}

/// Frames per second with the study's cipher, one of each family, eke's choice with and without compression, and without ssh.
fn frames(
    environment: &Environment<'_>,
    ssh: &Ssh,
    session: &Session,
    chosen: &[Chosen],
) -> Result<Vec<(Transport, f64)>> {
    let mut suites = vec![study()];
    let families = ["aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"].map(|c| Suite::new(c, None));
    for suite in families.iter().chain(chosen.iter().map(|c| &c.suite)) {
        if !suites.contains(suite) {
            suites.push(suite.clone());
        }
    }
    let mut frames = Vec::new();
    for suite in suites {
        environment.progress.doing(&format!("X through {suite}"));
        frames
            .push((Transport::Suite(suite.clone()), session.through(environment, ssh, &suite, &[])?.per_s()));
    }
    if let Some(last) = chosen.last() {
        environment.progress.doing(&format!("X through {}, compressed", last.suite));
        frames
            .push((Transport::Compressed, session.through(environment, ssh, &last.suite, &["-C"])?.per_s()));
    }
    environment.progress.doing("X without ssh");
    frames.push((Transport::Direct, session.direct(environment)?.per_s()));
    Ok(frames)
}

/// The study's cipher, and those of both ends that the policy allows. The flag tells whether eke may choose it.
fn suites(environment: &Environment<'_>, ssh: &Ssh) -> Result<Vec<(Suite, bool)>> {
    let met = measure::connect::connect(ssh, &MeasureOptions::new(HOST), environment.shutdown)?;
    let offers = Offers { ciphers: met.ciphers, macs: met.macs, is_strict: met.is_strict };
    let allowed = Policy::Modern.allowed(&offers).into_iter().map(|s| (s, true));
    Ok(std::iter::once((study(), false)).chain(allowed).collect())
}

/// A cipher's connection and its measurements so far.
struct Measured<'a> {
    channel: Channel<'a>,
    sizes: (u64, u64),
    idle: (Duration, Duration),
    sampled: Sampled,
}

fn exhaustive(
    environment: &Environment<'_>,
    ssh: &Ssh,
    suites: &[(Suite, bool)],
    lengths: Lengths,
) -> Result<Vec<Sampled>> {
    let mut here = local(environment)?;
    let mut all = Vec::new();
    for (suite, is_allowed) in suites {
        environment.progress.doing(&suite.to_string());
        all.push(Measured::open(environment, ssh, suite, *is_allowed, lengths)?);
    }
    for round in 0..lengths.rounds {
        environment.progress.doing(&format!("round {} of {}", round + 1, lengths.rounds));
        for n in 0..all.len() {
            if environment.is_interrupted() {
                return Err(Error::Interrupted);
            }
            // Each round begins with another cipher.
            let n = (n + round * 5) % all.len();
            all[n].round(&mut here)?;
        }
    }
    Ok(all.into_iter().map(|measured| measured.sampled).collect())
}

/// MB/s of one cipher from the server, and the client's CPU seconds per MB of both directions.
///
/// # Errors
/// The connection fails, or the kernel does not report the client's CPU time.
pub fn to_here(
    environment: &Environment<'_>,
    ssh: &Ssh,
    suite: &Suite,
    lengths: Lengths,
) -> Result<(f64, f64)> {
    let mut here = local(environment)?;
    let mut measured = Measured::open(environment, ssh, suite, false, lengths)?;
    let pid = Some(measured.channel.pid());
    let before = here.sample(pid)?;
    for _ in 0..lengths.rounds {
        measured.round(&mut here)?;
    }
    let mb = lengths.rounds as f64 * (measured.sizes.0 + measured.sizes.1) as f64 / 1e6;
    let cpu_s = here.sample(pid)?.since(&before).used().cpu_s;
    let cpu_s = cpu_s
        .ok_or_else(|| Error::Environment("the kernel does not report the CPU time of ssh".to_owned()))?;
    Ok((median(&measured.sampled.to_here), cpu_s / mb))
}

fn local<'a>(environment: &Environment<'a>) -> Result<Channel<'a>> {
    let opening = Opening { name: "this machine", may_ask: false, shutdown: environment.shutdown };
    Ok(Channel::open(std::process::Command::new("sh"), opening)?)
}

impl<'a> Measured<'a> {
    fn open(
        environment: &Environment<'a>,
        ssh: &Ssh,
        suite: &Suite,
        is_allowed: bool,
        lengths: Lengths,
    ) -> Result<Self> {
        let opening = Opening { name: HOST, may_ask: false, shutdown: environment.shutdown };
        let mut channel = Channel::open(ssh.connection(HOST, Some(suite), &["-T"], "exec sh"), opening)?;
        let to_here = size(lengths, |bytes| Ok(channel.get(bytes)?))?;
        let to_there = size(lengths, |bytes| Ok(channel.put(bytes)?))?;
        let sampled = Sampled {
            suite: suite.clone(),
            is_allowed,
            to_here: Vec::new(),
            to_there: Vec::new(),
            bound_per_mb: Vec::new(),
        };
        let (sizes, idle) = ((to_here.0, to_there.0), (to_here.1, to_there.1));
        Ok(Self { channel, sizes, idle, sampled })
    }

    fn round(&mut self, here: &mut Channel<'_>) -> Result<()> {
        let pid = Some(self.channel.pid());
        let before = (here.sample(pid)?, self.channel.sample(None)?);
        let took = self.channel.get(self.sizes.0)?;
        self.sampled.to_here.push(rate(self.sizes.0, took, self.idle.0));
        let took = self.channel.put(self.sizes.1)?;
        self.sampled.to_there.push(rate(self.sizes.1, took, self.idle.1));
        let there = self.channel.sample(None)?.since(&before.1).used();
        let here = here.sample(pid)?.since(&before.0).used();
        let mb = (self.sizes.0 + self.sizes.1) as f64 / 1e6;
        self.sampled.bound_per_mb.extend(here.cpu_s.zip(there.cpu_s).map(|(a, b)| a.max(b) / mb));
        Ok(())
    }
}

fn rate(bytes: u64, took: Duration, idle: Duration) -> f64 {
    bytes as f64 / 1e6 / net_seconds(took, idle)
}

/// The bytes of a slice, and the time of a request for one byte. The last trial slice is as long as those that count, so that the
/// connection is at its full rate.
fn size(lengths: Lengths, mut go: impl FnMut(u64) -> Result<Duration>) -> Result<(u64, Duration)> {
    let mut idle = Duration::MAX;
    for _ in 0..3 {
        idle = idle.min(go(1)?);
    }
    let mut bytes = 64 << 10;
    for _ in 0..8 {
        let took = net_seconds(go(bytes)?, idle);
        let target = (bytes as f64 / took * lengths.slice.as_secs_f64()) as u64;
        let next = target.min(bytes * 8).clamp(16 << 10, lengths.most);
        if next <= bytes + bytes / 4 {
            return Ok((next, idle));
        }
        bytes = next;
    }
    Ok((bytes, idle))
}
