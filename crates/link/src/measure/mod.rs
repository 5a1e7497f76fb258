//! Measures a link through the system's own ssh. The only part of this crate that starts processes.
//!
//! - [`ssh`]: how ssh is called
//! - [`channel`]: a shell on an end, through ssh or here, that sends, takes, echoes and says what it used (`ends.sh`)
//! - [`meet`](mod@meet): the first connection: what both ends are, offer and agree on
//! - [`bare`](mod@bare): the link itself, without ssh; [`x11`]: what a real X session moves
//! - [`slices`]: bulk and echoes through each cipher, in turn
//! - [`sessions`](mod@sessions): several at once
//!
//! Each cipher is a connection of its own, since ssh agrees on the cipher when it connects. All stand at the same time and are used in
//! turn, so that what else the machines do meets all of them alike, and never more than one sends.

mod at_once;
pub mod bare;
pub mod channel;
pub mod meet;
pub mod sessions;
pub mod slices;
pub mod ssh;
pub mod x11;

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::Serialize;

use crate::decide::{self, Decision};
use crate::error::{Error, Result};
use crate::evidence::Evidence;
use crate::figures::Measured;
use crate::plan::{self, Budget};
use crate::policy::{Offers, Policy};
use crate::suite::Suite;
pub use bare::Bare;
use channel::{Channel, Opening};
pub use meet::Met;
pub use sessions::Sessions;
pub use ssh::Ssh;
pub use x11::X11;

/// What is to be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Whom, as `ssh` takes it.
    pub host: String,
    /// The security floor.
    pub policy: Policy,
    /// How many at once; `None`: 4, and none where a password must be typed for each.
    pub sessions: Option<usize>,
    /// All that it may take.
    pub budget: Budget,
    /// A session to decide compression by.
    pub x11: Option<x11::Wanted>,
    /// Measure just these, whatever looks promising.
    pub only: Vec<Suite>,
}

impl Asked {
    /// As usual.
    pub fn new(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            policy: Policy::default(),
            sessions: None,
            budget: Budget::default(),
            x11: None,
            only: Vec::new(),
        }
    }
}

/// A cipher that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// Which.
    pub suite: Suite,
    /// Why.
    pub why: String,
}

/// A link and what was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Link {
    /// As it was asked for.
    pub host: String,
    /// Both ends, and what they offer.
    pub met: Met,
    /// What was measured, in the order of measuring.
    pub measured: Vec<Measured>,
    /// What was not.
    pub left_out: Vec<LeftOut>,
    /// The link itself, without ssh.
    pub bare: Option<Bare>,
    /// Why that was not measured.
    pub no_bare: Option<String>,
    /// Several at once.
    pub sessions: Option<Sessions>,
    /// What a real X session moved.
    pub x11: Option<X11>,
    /// What comes of it.
    pub decision: Decision,
    /// Bytes that were moved, both ways together.
    pub bytes: u64,
    /// How long it took.
    pub seconds: f64,
}

/// Sessions at once, if nothing is said.
const SESSIONS: usize = 4;

/// Measures a link and decides. `tell` gets a line about what is under way.
///
/// # Errors
/// The host cannot be reached, offers nothing that is allowed, stalls, or a signal came.
pub fn run(ssh: &Ssh, asked: &Asked, shutdown: &AtomicBool, tell: &dyn Fn(&str)) -> Result<Link> {
    Ssh::check(&asked.host)?;
    tell(&format!("connecting to {}", asked.host));
    let met = meet::meet(ssh, asked, shutdown)?;
    let mut began = Instant::now();
    let (allowed, plan) = planned(asked, &met)?;
    let run = Run { ssh, asked, may_ask: met.was_asked, shutdown, tell };
    let mut opened = run.open_all(&plan.measured)?;
    if met.was_asked {
        // Typing takes its time, and is nobody's fault.
        began = Instant::now();
    }
    let mut left_out: Vec<LeftOut> =
        plan.left_out.into_iter().map(|(suite, why)| LeftOut { suite, why: why.to_owned() }).collect();
    left_out.append(&mut opened.left_out);
    run.tell_left("sending in turn through each cipher", began);
    let slices = slices::measure(&mut opened.channels, &mut local(shutdown)?, &asked.budget, began)?;
    let (bare, no_bare) = match run.bare(&mut opened.channels, &met, &slices.measured, began) {
        Ok(bare) => (Some(bare), None),
        Err(why) => (None, Some(why)),
    };
    let sessions = run.several(opened.channels, &slices.measured, began)?;
    let evidence = Evidence {
        measured: &slices.measured,
        configured: met.configured.as_ref(),
        sessions: sessions.as_ref(),
        bare: bare.as_ref(),
        allowed: &allowed,
    };
    let decision = decide::decide(&evidence).ok_or_else(|| Error::NoneMeasured(asked.host.clone()))?;
    let seconds = began.elapsed().as_secs_f64();
    let fastest = slices.measured.iter().map(Measured::rate).fold(bare.map_or(0.0, |b| b.rate()), f64::max);
    let x11 = asked.x11.as_ref().map(|wanted| run.x11(wanted, &decision.chosen, fastest)).transpose()?;
    Ok(Link {
        host: asked.host.clone(),
        bytes: slices.bytes + sessions.as_ref().map_or(0, |s| s.bytes) + bare.map_or(0, |b| b.bytes),
        seconds,
        met,
        measured: slices.measured,
        left_out,
        bare,
        no_bare,
        sessions,
        x11,
        decision,
    })
}

/// What is allowed, and what of it is measured.
fn planned(asked: &Asked, met: &Met) -> Result<(Vec<Suite>, plan::Plan)> {
    let offers = Offers { ciphers: met.ciphers.clone(), macs: met.macs.clone(), is_strict: met.is_strict };
    let allowed = met.policy.allowed(&offers);
    if allowed.is_empty() {
        return Err(Error::NothingAllowed {
            host: asked.host.clone(),
            software: met.software.clone(),
            policy: met.policy,
            offers: met.offered.clone(),
        });
    }
    if !asked.only.is_empty() {
        let only = plan::Plan { measured: asked.only.clone(), left_out: Vec::new() };
        return Ok((allowed, only));
    }
    let most = if met.was_asked { plan::MOST_TYPED } else { plan::MOST_CIPHERS };
    let plan = plan::plan(&allowed, met.in_use.as_ref(), most);
    Ok((allowed, plan))
}

/// A shell on this machine.
fn local(shutdown: &AtomicBool) -> Result<Channel<'_>> {
    let mut command = std::process::Command::new("sh");
    // eke may itself run below sshd
    command.env_remove("SSH_CONNECTION");
    Channel::open(command, Opening { name: "this machine", may_ask: false, shutdown })
}

struct Opened<'a> {
    channels: Vec<(Suite, Channel<'a>)>,
    left_out: Vec<LeftOut>,
}

/// What all connections after the first share.
struct Run<'a> {
    ssh: &'a Ssh,
    asked: &'a Asked,
    /// Somebody types a password for each.
    may_ask: bool,
    shutdown: &'a AtomicBool,
    tell: &'a dyn Fn(&str),
}

impl<'a> Run<'a> {
    /// What is under way, and how much of the time that all may take is left.
    fn tell_left(&self, doing: &str, began: Instant) {
        let left = self.asked.budget.time.saturating_sub(began.elapsed());
        (self.tell)(&format!("{doing}, at most {:.0} s left", left.as_secs_f64().ceil()));
    }

    /// One connection for each cipher. One that fails is left out as long as another stands: firewalls that count connections are
    /// common.
    fn open_all(&self, suites: &[Suite]) -> Result<Opened<'a>> {
        let host = &self.asked.host;
        if self.may_ask {
            (self.tell)(&format!(
                "ssh will ask {} more times, once for each cipher; with a key in place it does not (ssh-copy-id {host})",
                suites.len()
            ));
        }
        let began = Instant::now();
        let mut opened = Opened { channels: Vec::new(), left_out: Vec::new() };
        let mut failure = None;
        for (number, suite) in suites.iter().enumerate() {
            let mut leave_out = |why: String| opened.left_out.push(LeftOut { suite: suite.clone(), why });
            let is_late = !self.may_ask && began.elapsed() > self.asked.budget.time.mul_f64(0.4);
            if is_late && opened.channels.len() > 1 {
                leave_out("connecting takes long, and no time was left".to_owned());
                continue;
            }
            (self.tell)(&format!("connecting with {suite}, {} of {}", number + 1, suites.len()));
            match open(self.ssh, host, Some(suite), &["-T"], self.may_ask, self.shutdown) {
                Ok(channel) => opened.channels.push((suite.clone(), channel)),
                Err(Error::Interrupted) => return Err(Error::Interrupted),
                Err(e) => {
                    leave_out(e.to_string());
                    failure = failure.or(Some(e));
                }
            }
        }
        match failure {
            Some(e) if opened.channels.is_empty() => Err(e),
            _ => Ok(opened),
        }
    }

    /// The link itself, if eke is there.
    ///
    /// # Errors
    /// Why it was not measured, in words.
    fn bare(
        &self,
        channels: &mut [(Suite, Channel<'a>)],
        met: &Met,
        measured: &[Measured],
        began: Instant,
    ) -> Result<Bare, String> {
        let is_there = met.there.tools.iter().any(|tool| tool == "eke");
        let far = met.there.connection.filter(|_| !met.has_proxy).map(|(_, own)| own);
        let (Some(far), Some((_, channel))) = (far, channels.first_mut()) else {
            return Err("there is a proxy or a jump host between".to_owned());
        };
        if !is_there {
            return Err("it takes eke on the far end too".to_owned());
        }
        self.tell_left("the link without ssh", began);
        let left = self.asked.budget.time.saturating_sub(began.elapsed());
        let rate = measured.iter().map(Measured::rate).fold(0.0, f64::max);
        bare::bare(channel, far, plan::bare_bytes(rate * 1e6, left, &self.asked.budget))
    }

    /// An X session in the chosen cipher.
    fn x11(&self, wanted: &x11::Wanted, suite: &Suite, link_mb_per_s: f64) -> Result<X11> {
        (self.tell)(&format!("running `{}` there twice, {} s each", wanted.command, wanted.time.as_secs()));
        let host = &self.asked.host;
        let mut there = open(self.ssh, host, Some(suite), &["-T"], self.may_ask, self.shutdown)?;
        let mut here = local(self.shutdown)?;
        let (ssh, shutdown) = (self.ssh, self.shutdown);
        let mut stage = x11::Stage { ssh, host, suite, here: &mut here, there: &mut there, shutdown };
        x11::measure(&mut stage, wanted, link_mb_per_s)
    }

    /// Several at once, in the fastest that was measured.
    fn several(
        &self,
        mut channels: Vec<(Suite, Channel<'a>)>,
        measured: &[Measured],
        began: Instant,
    ) -> Result<Option<Sessions>> {
        let count = self.asked.sessions.unwrap_or(if self.may_ask { 1 } else { SESSIONS });
        let best = (0..measured.len()).max_by(|a, b| measured[*a].rate().total_cmp(&measured[*b].rate()));
        let Some(best) = best.filter(|_| count > 1) else { return Ok(None) };
        self.tell_left(&format!("{count} sessions at once"), began);
        let rate = measured[best].to_here.rate();
        let (suite, first) = channels.swap_remove(best);
        sessions::Several { run: self, suite: &suite, count, rate, began }.measure(first).map(Some)
    }
}

fn open<'a>(
    ssh: &Ssh,
    host: &str,
    suite: Option<&Suite>,
    extra: &[&str],
    may_ask: bool,
    shutdown: &'a AtomicBool,
) -> Result<Channel<'a>> {
    let opening = Opening { name: host, may_ask: may_ask && ssh.may_ask, shutdown };
    Channel::open(ssh.connection(host, suite, extra, "exec sh"), opening)
}
