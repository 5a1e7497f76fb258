//! The first connection, in the cipher that ssh takes by itself: facts about both ends, their offers, and their agreement.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::channel::Channel;
use super::{MeasureOptions, OwnBlock, Ssh, local, open};
use crate::error::{Error, Result};
use crate::parse::config::{Config, config, supported};
use crate::parse::facts::Facts;
use crate::parse::handshake::{Handshake, handshake};
use crate::policy::{Offers, Policy, Refused};
use crate::suite::Suite;
use crate::throughput::median;

/// Both ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ends {
    /// The requested policy, or `fips` if a kernel is in FIPS mode.
    pub policy: Policy,
    /// The output of `ssh -V` on this machine.
    pub client: String,
    /// The far end's ssh server.
    pub software: Option<String>,
    /// Have both ends strict key exchange?
    pub is_strict: bool,
    /// Ciphers that both ends have.
    pub ciphers: Vec<String>,
    /// MACs that both ends have.
    pub macs: Vec<String>,
    /// Ciphers that the far end offers.
    pub offered: Vec<String>,
    /// Ciphers and MACs that both ends have and the policy does not allow.
    pub refused: Vec<Refused>,
    /// The cipher that they agree on without eke.
    pub in_use: Option<Suite>,
    /// The same, if ssh's configuration sets it; `None` with ssh's own order.
    pub configured: Option<Suite>,
    /// Did a person have to type a password?
    pub was_interactive: bool,
    /// Does the connection go through a proxy or a jump host?
    pub has_proxy: bool,
    /// The address that ssh connected to, by its own messages; `None` through a proxy.
    #[serde(skip)]
    pub address: Option<IpAddr>,
    /// Ciphers that the policy allows and this machine's ssh configuration does not.
    #[serde(skip)]
    pub excluded: Vec<Suite>,
    /// This machine.
    pub here: Facts,
    /// The far end.
    pub there: Facts,
    /// The median round trip of a line of 64 bytes, in microseconds.
    pub round_trip_us: Option<f64>,
}

pub(super) const EXCLUDED: &str = "ssh's configuration on this machine excludes it";
/// A connection that takes longer probably waited for typing, if ssh may ask.
const TYPED_AFTER: Duration = Duration::from_secs(3);
/// Echoes for the round trip.
const ECHOES: usize = 20;

/// Connects, collects facts, and disconnects.
///
/// # Errors
/// As [`super::run`].
pub fn connect(ssh: &Ssh, options: &MeasureOptions, shutdown: &AtomicBool) -> Result<Ends> {
    let set = config(&ssh.ask(&["-G", "--", &options.host])?);
    let own = [supported(&ssh.ask(&["-Q", "cipher"])?), supported(&ssh.ask(&["-Q", "mac"])?)];
    let client = ssh.ask(&["-V"])?.trim().to_owned();
    // -vv writes a line for each packet window, so only echoes are timed over this connection
    let began = Instant::now();
    let mut channel = open(ssh, &options.host, None, &["-T", "-vv"], ssh.may_ask, shutdown)?;
    // a key with a passphrase is `publickey` too, and is typed each time
    let is_slow = ssh.may_ask && began.elapsed() > TYPED_AFTER;
    let there = channel.facts()?;
    let round_trip_us = echo_us(&mut channel)?;
    let handshake = handshake(&channel.finish());
    drop(channel);
    let here = local(shutdown)?.facts()?;
    let policy = if here.is_fips || there.is_fips { Policy::Fips } else { options.policy };
    let (ciphers, macs) =
        (common(&own[0], &handshake.server.ciphers), common(&own[1], &handshake.server.macs));
    let is_strict = handshake.is_strict();
    let offers = Offers { ciphers, macs, is_strict };
    let offers = match &options.server {
        Some(server) => accepted(&offers, server, policy, &options.host)?,
        None => offers,
    };
    let limited = limited(&offers, &limits(ssh, options, &set));
    let mut excluded = policy.allowed(&offers);
    let allowed = policy.allowed(&limited);
    excluded.retain(|suite| !allowed.contains(suite));
    Ok(Ends {
        policy,
        client,
        configured: configured(ssh, &set, &handshake)?,
        refused: policy.refused(&offers),
        is_strict,
        ciphers: limited.ciphers,
        macs: limited.macs,
        excluded,
        was_interactive: handshake.was_interactive() || is_slow,
        offered: handshake.server.ciphers,
        software: handshake.software,
        in_use: handshake.to_here,
        has_proxy: set.has_proxy,
        address: handshake.address,
        here,
        there,
        round_trip_us,
    })
}

fn common(own: &[String], theirs: &[String]) -> Vec<String> {
    own.iter().filter(|name| theirs.contains(name)).cloned().collect()
}

/// The configuration that limits the choice: the one that ssh uses, but not the list that eke itself wrote. Otherwise a list could only get shorter.
fn limits(ssh: &Ssh, options: &MeasureOptions, set: &Config) -> Config {
    let own = options.own.as_ref().filter(|own| own.ciphers == set.ciphers);
    // without an answer a list that is too short is the safe one
    let rest = own.and_then(|own| ssh.ask_configured(&own.rest, &options.host).ok());
    rest.map_or_else(|| set.clone(), |text| config(&text))
}

/// Ciphers and MACs of eke's own block that ssh takes for this host and would not list without it: the policy that limited them has changed.
///
/// # Errors
/// ssh cannot be started, or rejects its configuration.
pub fn outlived(ssh: &Ssh, host: &str, own: &OwnBlock) -> Result<Vec<String>> {
    let set = config(&ssh.ask(&["-G", "--", host])?);
    let rest = config(&ssh.ask_configured(&own.rest, host)?);
    let beyond = |own: &[String], set: &[String], rest: &[String]| -> Vec<String> {
        let is_in_force = own == set;
        own.iter().filter(|name| is_in_force && !rest.contains(name)).cloned().collect()
    };
    let ciphers = beyond(&own.ciphers, &set.ciphers, &rest.ciphers);
    Ok([ciphers, beyond(&own.macs, &set.macs, &rest.macs)].concat())
}

/// The offers that this machine's ssh server accepts.
///
/// # Errors
/// None of them is allowed, and others are.
fn accepted(offers: &Offers, server: &Config, policy: Policy, host: &str) -> Result<Offers> {
    let accepted = limited(offers, server);
    let allowed = policy.allowed(offers);
    if policy.allowed(&accepted).is_empty() && !allowed.is_empty() {
        return Err(Error::NotAccepted { host: host.to_owned(), allowed });
    }
    Ok(accepted)
}

/// The offers that this configuration allows. An ssh older than 6.8 does not list them, so it allows all.
fn limited(offers: &Offers, limits: &Config) -> Offers {
    let of = |offers: &[String], limits: &[String]| {
        if limits.is_empty() { offers.to_vec() } else { common(offers, limits) }
    };
    Offers {
        ciphers: of(&offers.ciphers, &limits.ciphers),
        macs: of(&offers.macs, &limits.macs),
        is_strict: offers.is_strict,
    }
}

/// The agreed cipher counts as configured only if the preferences differ from ssh's own.
fn configured(ssh: &Ssh, set: &Config, handshake: &Handshake) -> Result<Option<Suite>> {
    let bare = Ssh { config: Some("none".into()), ..ssh.clone() };
    let defaults = config(&bare.ask(&["-G", "--", "localhost"])?);
    let is_set = set.ciphers != defaults.ciphers || set.macs != defaults.macs;
    Ok(handshake.to_here.clone().filter(|_| is_set))
}

/// The median round trip, in microseconds.
///
/// # Errors
/// As [`Channel::echoes`].
pub fn echo_us(channel: &mut Channel<'_>) -> Result<Option<f64>> {
    let times = channel.echoes(ECHOES, Duration::from_millis(300))?;
    let times: Vec<f64> = times.iter().map(|t| t.as_secs_f64() * 1e6).collect();
    Ok((!times.is_empty()).then(|| median(&times)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The client connects to the server, which was measured as the one that connects.
    #[test]
    fn only_what_this_machines_server_accepts_is_offered() {
        let names = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        let offers = Offers {
            ciphers: names("chacha20-poly1305@openssh.com,aes128-gcm@openssh.com,aes256-ctr"),
            macs: names("hmac-sha2-256-etm@openssh.com,umac-128-etm@openssh.com"),
            is_strict: true,
        };
        let of = |text: &str| accepted(&offers, &config(text), Policy::Modern, "pc01");
        let found = of("port 22\nciphers aes256-ctr,aes128-gcm@openssh.com\nmacs umac-128-etm@openssh.com\n")
            .unwrap();
        assert_eq!(found.ciphers, ["aes128-gcm@openssh.com", "aes256-ctr"]);
        assert_eq!(found.macs, ["umac-128-etm@openssh.com"]);
        let why = of("ciphers aes128-cbc\nmacs hmac-sha1\n").unwrap_err().to_string();
        assert!(why.contains("this machine's ssh server accepts none of") && why.contains("pc01"), "{why}");
    }
}
