//! Which hosts are measured: those that the user names, or all clients of this LTSP server; one after the other, or several at once.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use eke_link::measure::x11::X11Command;
use eke_link::measure::{self, MeasureOptions, Ssh, idle, server};
use eke_link::parse::config::Config;
use eke_link::plan::Budget;
use eke_link::{Error, advice};
use eke_present::exit::{Failure, Outcome, Status};

use super::super::Context;
use super::super::program::LTSP;
use super::{caller, files};
use crate::args::link::Link;
use crate::documents::link::{Host, Link as Document};

/// Clients of a lab at once: each gets a share of this machine's CPUs and network, so more would measure each other.
const LAB_AT_ONCE: usize = 3;
/// A client of a lab is measured for a short time and with few bytes, since somebody may sit down at it.
const LAB_BUDGET: Budget = Budget { time: Duration::from_secs(10), bytes: 60_000_000 };

/// The hosts of a measurement.
pub struct Hosts {
    /// By the names that ssh takes.
    pub names: Vec<String>,
    /// How many at once.
    at_once: usize,
    /// Nobody named them: those that are busy are left alone.
    is_lab: bool,
    /// The configuration of this machine's ssh server, if they will connect to it.
    server: Option<Config>,
}

impl Hosts {
    /// The hosts that the user names; with --ltsp and without a name all clients of this server.
    ///
    /// # Errors
    /// `eke-ltsp` cannot be executed, or knows no client. With --ltsp the configuration of this machine's ssh server cannot be read.
    pub fn chosen(context: &Context, options: &Link) -> Outcome<Self> {
        let is_lab = options.hosts.is_empty();
        let names = if is_lab { clients(context)? } else { options.hosts.clone() };
        let at_once = options.at_once.map_or(if is_lab { LAB_AT_ONCE } else { 1 }, |n| n as usize);
        let server = options.ltsp.then(server::own).transpose().map_err(super::failure)?;
        Ok(Self { names, at_once, is_lab, server })
    }

    /// Measures all of them. The document has them in their order; the errors are of those that could not be measured.
    ///
    /// # Errors
    /// A signal came.
    pub fn measure(
        &self,
        context: &Context,
        ssh: &Ssh,
        options: &Link,
        stop: &AtomicBool,
    ) -> Result<(Document, Vec<Error>), Error> {
        let results: Vec<Mutex<Option<Result<measure::Link, Error>>>> =
            self.names.iter().map(|_| Mutex::new(None)).collect();
        let next = AtomicUsize::new(0);
        // Two at once cannot ask on one terminal.
        let ssh = Ssh { may_ask: ssh.may_ask && self.at_once == 1, ..ssh.clone() };
        std::thread::scope(|scope| {
            for _ in 0..self.at_once.min(self.names.len()) {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let (Some(name), Some(slot)) = (self.names.get(at), results.get(at)) else { return };
                        let measured = self.one(context, &ssh, options, name, stop);
                        let measured =
                            measured.map_err(|e| if options.ltsp { e.of_ltsp_client() } else { e });
                        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(measured);
                    }
                });
            }
        });
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let results =
            results.into_iter().filter_map(|r| r.into_inner().unwrap_or_else(PoisonError::into_inner));
        Ok(document(&self.names, results))
    }

    fn one(
        &self,
        context: &Context,
        ssh: &Ssh,
        options: &Link,
        host: &str,
        stop: &AtomicBool,
    ) -> Result<measure::Link, Error> {
        if self.is_lab {
            idle::check(ssh, host, stop)?;
        }
        let time = Duration::from_secs(options.x11_seconds);
        let mut asked = MeasureOptions {
            policy: options.policy,
            sessions: options.sessions.map(|n| n as usize),
            own: files::own_block(context, ssh, host),
            server: self.server.clone(),
            x11: options.x11.clone().map(|command| X11Command { command, time }),
            ..MeasureOptions::new(host)
        };
        if self.is_lab {
            asked.budget = LAB_BUDGET;
            asked.sessions = asked.sessions.or(Some(1));
        }
        let is_several = self.names.len() > 1;
        measure::run(ssh, &asked, stop, &|line| {
            caller::progress(context.json, is_several.then_some(host), line);
        })
    }
}

fn document(
    names: &[String],
    results: impl Iterator<Item = Result<measure::Link, Error>>,
) -> (Document, Vec<Error>) {
    let (mut document, mut failures) = (Document::default(), Vec::new());
    for (name, result) in names.iter().zip(results) {
        let mut host = Host { host: name.clone(), link: None, advice: Vec::new(), error: None };
        match result {
            Ok(link) => {
                host.advice = advice::advice(&link);
                host.link = Some(Box::new(link));
            }
            Err(e) => {
                host.error = Some(e.to_string());
                failures.push(e);
            }
        }
        document.hosts.push(host);
    }
    (document, failures)
}

/// The addresses of this server's clients, as `eke-ltsp` knows them.
fn clients(context: &Context) -> Outcome<Vec<String>> {
    let mut command = LTSP.command(context)?;
    let output = command.arg("addresses").stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(Failure::new(Status::Failed, "the clients of this LTSP server cannot be listed"));
    }
    let names: Vec<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    if !names.is_empty() {
        return Ok(names);
    }
    let none = "no client of this LTSP server is known here, so there is none to measure";
    Err(Failure::new(Status::Failed, none).hint(
        "clients are known by dnsmasq's leases and by sections [HARDWARE ADDRESS] in ltsp.conf; or name them: eke link --ltsp 192.168.67.21",
    ))
}
