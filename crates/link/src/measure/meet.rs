//! The first connection, in the cipher that ssh takes by itself: what both ends are, offer and agree on.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::channel::Channel;
use super::{Asked, Ssh, local, open};
use crate::error::Result;
use crate::figures::median;
use crate::parse::config::{Config, config, supported};
use crate::parse::facts::Facts;
use crate::parse::handshake::{Handshake, handshake};
use crate::policy::{Policy, Refused};
use crate::suite::Suite;

/// Both ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Met {
    /// What was asked for, or `fips` where a kernel is in FIPS mode.
    pub policy: Policy,
    /// This machine's ssh, as `ssh -V` says it.
    pub client: String,
    /// The far end's.
    pub software: Option<String>,
    /// Have both ends strict key exchange?
    pub is_strict: bool,
    /// Ciphers that both ends have.
    pub ciphers: Vec<String>,
    /// MACs that both ends have.
    pub macs: Vec<String>,
    /// Ciphers that the far end offers.
    pub offered: Vec<String>,
    /// What both have and the policy does not allow.
    pub refused: Vec<Refused>,
    /// What they agree on without eke.
    pub in_use: Option<Suite>,
    /// The same, if somebody set it in ssh's configuration, so that it is not ssh's own order.
    pub configured: Option<Suite>,
    /// Had somebody to type a password?
    pub was_asked: bool,
    /// Does it go through a proxy or a jump host?
    pub has_proxy: bool,
    /// This machine.
    pub here: Facts,
    /// The far end.
    pub there: Facts,
    /// A line of 64 bytes there and back, in microseconds, the median.
    pub round_trip_us: Option<f64>,
}

/// A connection that takes so long where ssh may ask was probably typed for.
const TYPED_AFTER: Duration = Duration::from_secs(3);
/// Echoes for the round trip.
const ECHOES: usize = 20;

/// Connects, looks, and disconnects.
///
/// # Errors
/// As [`super::run`].
pub fn meet(ssh: &Ssh, asked: &Asked, shutdown: &AtomicBool) -> Result<Met> {
    let set = config(&ssh.ask(&["-G", "--", &asked.host])?);
    let own = [supported(&ssh.ask(&["-Q", "cipher"])?), supported(&ssh.ask(&["-Q", "mac"])?)];
    let client = ssh.ask(&["-V"])?.trim().to_owned();
    // -vv writes a line for each packet window later on, so that nothing is timed over this connection but echoes.
    let began = Instant::now();
    let mut channel = open(ssh, &asked.host, None, &["-T", "-vv"], ssh.may_ask, shutdown)?;
    // A key with a passphrase is `publickey` too, and somebody types it each time.
    let is_slow = ssh.may_ask && began.elapsed() > TYPED_AFTER;
    let there = channel.facts()?;
    let round_trip_us = echo_us(&mut channel)?;
    let hands = handshake(&channel.last_words());
    drop(channel);
    let here = local(shutdown)?.facts()?;
    let policy = if here.is_fips || there.is_fips { Policy::Fips } else { asked.policy };
    let common = |own: &[String], theirs: &[String]| -> Vec<String> {
        own.iter().filter(|name| theirs.contains(name)).cloned().collect()
    };
    let (ciphers, macs) = (common(&own[0], &hands.server.ciphers), common(&own[1], &hands.server.macs));
    let is_strict = hands.is_strict();
    let offers = crate::policy::Offers { ciphers, macs, is_strict };
    Ok(Met {
        policy,
        client,
        configured: configured(ssh, &set, &hands)?,
        refused: policy.refused(&offers),
        is_strict,
        ciphers: offers.ciphers,
        macs: offers.macs,
        was_asked: hands.was_asked() || is_slow,
        offered: hands.server.ciphers,
        software: hands.software,
        in_use: hands.to_here,
        has_proxy: set.has_proxy,
        here,
        there,
        round_trip_us,
    })
}

/// What is agreed on counts as somebody's choice only where the preferences are not those of ssh itself.
fn configured(ssh: &Ssh, set: &Config, hands: &Handshake) -> Result<Option<Suite>> {
    let bare = Ssh { config: Some("none".into()), ..ssh.clone() };
    let defaults = config(&bare.ask(&["-G", "--", "localhost"])?);
    let is_set = set.ciphers != defaults.ciphers || set.macs != defaults.macs;
    Ok(hands.to_here.clone().filter(|_| is_set))
}

/// The median echo, in microseconds.
///
/// # Errors
/// As [`Channel::echoes`].
pub fn echo_us(channel: &mut Channel<'_>) -> Result<Option<f64>> {
    let times = channel.echoes(ECHOES, Duration::from_millis(300))?;
    let times: Vec<f64> = times.iter().map(|t| t.as_secs_f64() * 1e6).collect();
    Ok((!times.is_empty()).then(|| median(&times)))
}
