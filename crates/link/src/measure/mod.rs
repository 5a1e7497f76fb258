//! Measures a link through the system's own ssh. The only part of this crate that starts processes.
//!
//! - [`ssh`]: command lines of ssh
//! - [`channel`]: a shell on an end, through ssh or on this machine, that sends, takes, echoes and prints counters (`ends.sh`)
//! - [`connect`](mod@connect): the first connection: facts about both ends, their offers and agreement
//! - [`bare`](mod@bare): the link without ssh; [`x11`]: the bytes of a real X session
//! - [`slices`]: bulk data and echoes through each cipher, alternating
//! - [`sessions`](mod@sessions): several sessions at once
//! - [`server`]: what this machine's own ssh server accepts
//! - `collect`: bounded output of a process; `at_once`: runs several closures at once
//! - [`idle`]: whether the far end has something to do
//!
//! Each cipher is a connection of its own, since ssh agrees on the cipher when it connects. All are open at the same time and alternate, so
//! background load affects every cipher equally, and only one sends at a time.

mod at_once;
pub mod bare;
pub mod channel;
mod collect;
pub mod connect;
pub mod idle;
pub mod server;
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
use crate::parse::config::Config;
use crate::plan::{self, Budget};
use crate::policy::{Offers, Policy};
use crate::suite::Suite;
use crate::throughput::CipherMeasurement;
pub use bare::Bare;
use channel::{Channel, Opening};
pub use connect::{Ends, outlived};
pub use sessions::Sessions;
pub use ssh::{Ssh, User};
pub use x11::X11;

/// What to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasureOptions {
    /// The far end, as `ssh` takes it.
    pub host: String,
    /// The security floor.
    pub policy: Policy,
    /// Sessions at once; `None`: 4, or none if a password must be typed for each.
    pub sessions: Option<usize>,
    /// The most time and bytes.
    pub budget: Budget,
    /// An X program that decides compression.
    pub x11: Option<x11::X11Command>,
    /// Measure these ciphers alone; empty: the most promising ones.
    pub only: Vec<Suite>,
    /// eke's own block for this host, which does not limit the choice.
    pub own: Option<OwnBlock>,
    /// Choose only what this configuration of this machine's ssh server accepts, because the far end will connect to it.
    pub server: Option<Config>,
}

/// The block for a host that an earlier `--write` wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnBlock {
    /// Its list of ciphers.
    pub ciphers: Vec<String>,
    /// Its list of MACs.
    pub macs: Vec<String>,
    /// ssh's system-wide configuration without it, as one text.
    pub rest: String,
}

impl MeasureOptions {
    /// The defaults for a host.
    pub fn new(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            policy: Policy::default(),
            sessions: None,
            budget: Budget::default(),
            x11: None,
            only: Vec::new(),
            own: None,
            server: None,
        }
    }
}

/// A cipher that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LeftOut {
    /// The cipher.
    pub suite: Suite,
    /// The reason.
    pub why: String,
}

/// The measurement of a link.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Link {
    /// The far end, as the user named it.
    pub host: String,
    /// Both ends, and their offers.
    pub ends: Ends,
    /// The measured ciphers, in the order of measuring.
    pub measured: Vec<CipherMeasurement>,
    /// The other ciphers.
    pub left_out: Vec<LeftOut>,
    /// The link without ssh.
    pub bare: Option<Bare>,
    /// Why the link without ssh was not measured.
    pub no_bare: Option<String>,
    /// Several sessions at once.
    pub sessions: Option<Sessions>,
    /// A real X session.
    pub x11: Option<X11>,
    /// The decision.
    pub decision: Decision,
    /// Bytes moved, in both directions together.
    pub bytes: u64,
    /// The time of the measurement, in seconds.
    pub seconds: f64,
}

/// The default number of sessions at once.
const SESSIONS: usize = 4;

/// Measures a link and decides. `report` gets a line for each step.
///
/// # Errors
/// The host cannot be reached, offers nothing that is allowed, stalls, or a signal came.
pub fn run(
    ssh: &Ssh,
    options: &MeasureOptions,
    shutdown: &AtomicBool,
    report: &dyn Fn(&str),
) -> Result<Link> {
    Ssh::check(&options.host)?;
    report(&format!("connecting to {}", options.host));
    let ends = connect::connect(ssh, options, shutdown)?;
    let mut began = Instant::now();
    let (allowed, plan) = planned(options, &ends)?;
    let run = Measurement { ssh, options, may_ask: ends.was_interactive, shutdown, report };
    let mut opened = run.open_all(&plan.measured)?;
    if ends.was_interactive {
        // typing does not count
        began = Instant::now();
    }
    let end = began + options.budget.most_time();
    opened.channels.iter_mut().for_each(|(_, channel)| channel.end_by(end));
    let mut left_out: Vec<LeftOut> =
        plan.left_out.into_iter().map(|(suite, why)| LeftOut { suite, why: why.to_owned() }).collect();
    left_out.append(&mut opened.left_out);
    run.report_left("sending through each cipher, alternating", began);
    let slices = slices::measure(&mut opened.channels, &mut local(shutdown)?, &options.budget, began)?;
    let (bare, no_bare) = match run.bare(&mut opened.channels, &ends, &slices.measured, began) {
        Ok(bare) => (Some(bare), None),
        Err(why) => (None, Some(why)),
    };
    let sessions = run.several(opened.channels, &slices.measured, began)?;
    let evidence = Evidence {
        measured: &slices.measured,
        configured: ends.configured.as_ref(),
        sessions: sessions.as_ref(),
        bare: bare.as_ref(),
        allowed: &allowed,
    };
    let decision = decide::decide(&evidence).ok_or_else(|| Error::NoneMeasured(options.host.clone()))?;
    let seconds = began.elapsed().as_secs_f64();
    let fastest =
        slices.measured.iter().map(CipherMeasurement::rate).fold(bare.map_or(0.0, |b| b.rate()), f64::max);
    let x11 = options.x11.as_ref().map(|program| run.x11(program, &decision.chosen, fastest)).transpose()?;
    Ok(Link {
        host: options.host.clone(),
        bytes: slices.bytes + sessions.as_ref().map_or(0, |s| s.bytes) + bare.map_or(0, |b| b.bytes),
        seconds,
        ends,
        measured: slices.measured,
        left_out,
        bare,
        no_bare,
        sessions,
        x11,
        decision,
    })
}

/// The allowed ciphers, and the plan for them.
fn planned(options: &MeasureOptions, ends: &Ends) -> Result<(Vec<Suite>, plan::Plan)> {
    let offers = Offers { ciphers: ends.ciphers.clone(), macs: ends.macs.clone(), is_strict: ends.is_strict };
    let allowed = ends.policy.allowed(&offers);
    if allowed.is_empty() && !ends.excluded.is_empty() {
        return Err(Error::Excluded { host: options.host.clone(), excluded: ends.excluded.clone() });
    }
    if allowed.is_empty() {
        return Err(Error::NothingAllowed {
            host: options.host.clone(),
            software: ends.software.clone(),
            policy: ends.policy,
            offers: ends.offered.clone(),
        });
    }
    if !options.only.is_empty() {
        let only = plan::Plan { measured: options.only.clone(), left_out: Vec::new() };
        return Ok((allowed, only));
    }
    let most = if ends.was_interactive { plan::MOST_TYPED } else { plan::MOST_CIPHERS };
    let mut plan = plan::plan(&allowed, ends.in_use.as_ref(), most);
    plan.left_out.extend(ends.excluded.iter().map(|suite| (suite.clone(), connect::EXCLUDED)));
    Ok((allowed, plan))
}

/// A shell on this machine.
fn local(shutdown: &AtomicBool) -> Result<Channel<'_>> {
    let mut command = std::process::Command::new("sh");
    // eke itself may run under sshd
    command.env_remove("SSH_CONNECTION");
    Channel::open(command, Opening { name: "this machine", may_ask: false, shutdown })
}

struct Opened<'a> {
    channels: Vec<(Suite, Channel<'a>)>,
    left_out: Vec<LeftOut>,
}

/// The common arguments of all connections after the first.
struct Measurement<'a> {
    ssh: &'a Ssh,
    options: &'a MeasureOptions,
    /// A password is typed for each.
    may_ask: bool,
    shutdown: &'a AtomicBool,
    report: &'a dyn Fn(&str),
}

impl<'a> Measurement<'a> {
    /// Reports the step and the time that is left.
    fn report_left(&self, doing: &str, began: Instant) {
        let left = self.options.budget.time.saturating_sub(began.elapsed());
        (self.report)(&format!("{doing}, at most {:.0} s left", left.as_secs_f64().ceil()));
    }

    /// Opens one connection for each cipher. A cipher whose connection fails is left out if another one is open: firewalls that count
    /// connections are common.
    fn open_all(&self, suites: &[Suite]) -> Result<Opened<'a>> {
        let host = &self.options.host;
        if self.may_ask {
            (self.report)(&format!(
                "ssh will ask {} more times, once for each cipher; with a key in place it does not (ssh-copy-id {host})",
                suites.len()
            ));
        }
        let began = Instant::now();
        let mut opened = Opened { channels: Vec::new(), left_out: Vec::new() };
        let mut failure = None;
        for (number, suite) in suites.iter().enumerate() {
            let mut leave_out = |why: String| opened.left_out.push(LeftOut { suite: suite.clone(), why });
            let is_late = !self.may_ask && began.elapsed() > self.options.budget.time.mul_f64(0.4);
            if is_late && opened.channels.len() > 1 {
                leave_out("connecting took so long that no time was left".to_owned());
                continue;
            }
            (self.report)(&format!("connecting with {suite}, {} of {}", number + 1, suites.len()));
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

    /// The link without ssh, if eke is on the far end.
    ///
    /// # Errors
    /// The reason why it was not measured, as a sentence.
    fn bare(
        &self,
        channels: &mut [(Suite, Channel<'a>)],
        ends: &Ends,
        measured: &[CipherMeasurement],
        began: Instant,
    ) -> Result<Bare, String> {
        let far = bare::far_address(ends)?;
        let (_, channel) = channels.first_mut().ok_or("no connection is open")?;
        self.report_left("the link without ssh", began);
        let left = self.options.budget.time.saturating_sub(began.elapsed());
        let rate = measured.iter().map(CipherMeasurement::rate).fold(0.0, f64::max);
        let end = began + self.options.budget.most_time();
        bare::bare(channel, far, plan::bare_bytes(rate * 1e6, left, &self.options.budget), end)
    }

    /// An X session in the chosen cipher.
    fn x11(&self, program: &x11::X11Command, suite: &Suite, link_mb_per_s: f64) -> Result<X11> {
        (self.report)(&format!(
            "running `{}` there twice, {} s each",
            program.command,
            program.time.as_secs()
        ));
        let host = &self.options.host;
        let mut there = open(self.ssh, host, Some(suite), &["-T"], self.may_ask, self.shutdown)?;
        let mut here = local(self.shutdown)?;
        let (ssh, shutdown) = (self.ssh, self.shutdown);
        let mut ends = x11::X11Ends { ssh, host, suite, here: &mut here, there: &mut there, shutdown };
        x11::measure(&mut ends, program, link_mb_per_s)
    }

    /// Several sessions at once, in the fastest measured cipher.
    fn several(
        &self,
        mut channels: Vec<(Suite, Channel<'a>)>,
        measured: &[CipherMeasurement],
        began: Instant,
    ) -> Result<Option<Sessions>> {
        let count = self.options.sessions.unwrap_or(if self.may_ask { 1 } else { SESSIONS });
        let best = (0..measured.len()).max_by(|a, b| measured[*a].rate().total_cmp(&measured[*b].rate()));
        let Some(best) = best.filter(|_| count > 1) else { return Ok(None) };
        self.report_left(&format!("{count} sessions at once"), began);
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
