//! The loop: sample, decide, change.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use eke_apply::state;
use eke_linux::Root;
use eke_model::config::IoSettings;
use eke_model::snapshot::{IoDisk, IoState};
use eke_model::units::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use serde::Serialize;

use super::hand::{Hand, NotSet};
use super::knobs;
use super::latencies::Latencies;
use crate::Histogram;
use crate::class::Operation;
use crate::figures::{Device, Window};
use crate::governor::{Change, Governor, Observation, Rules};
use crate::sense::{Refused, Windows};
use crate::target;

/// The agent is told at least so often.
const TELL: Duration = Duration::from_secs(10);

/// What it is told to do.
#[derive(Debug, Clone)]
pub struct Options {
    /// `[io]`.
    pub settings: IoSettings,
    /// Only this disk.
    pub only: Option<String>,
    /// The time between two samples.
    pub every: Duration,
    /// Say in `/run/eke` how it goes, for the agent.
    pub tells_agent: bool,
}

/// Why it does not go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// poll(2) failed.
    #[error("cannot wait: {0}")]
    Wait(#[source] Errno),
    /// What an earlier one left cannot be undone, or what this one did.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// Latencies cannot be measured any more.
    #[error(transparent)]
    Sense(#[from] Refused),
}

/// Something worth a line.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum Said {
    /// It is watching.
    Ready {
        /// `bpf` or `stat`.
        source: String,
    },
    /// The governor changed a knob.
    Changed {
        /// Of which disk.
        disk: String,
        /// What, and why.
        what: String,
    },
    /// Something is not as it should be.
    Trouble {
        /// A sentence.
        what: String,
    },
}

struct Process<'a> {
    root: &'a Root,
    options: &'a Options,
    hand: Hand,
    governors: BTreeMap<String, Governor>,
    state: IoState,
    /// Of all disks, since the agent was told last.
    reads: Histogram,
    latencies: Latencies,
    told: Option<Instant>,
    begun: Instant,
    troubles: BTreeSet<String>,
    say: &'a mut dyn FnMut(Said),
}

/// Runs until `shutdown` is readable; everything is as it was then.
///
/// # Errors
/// See [`Error`]. What could not be undone stands in the journal.
pub fn run(
    root: &Root,
    options: &Options,
    windows: &mut dyn Windows,
    shutdown: BorrowedFd<'_>,
    say: &mut dyn FnMut(Said),
) -> Result<(), Error> {
    let mut process = Process::new(root, options, say)?;
    let source = windows.window()?.source;
    process.state.source.clone_from(&source);
    (process.say)(Said::Ready { source });
    process.tell();
    let ended = loop {
        if is_readable(shutdown, options.every)? {
            break Ok(());
        }
        match windows.window() {
            Ok(window) => process.sample(&window),
            Err(refused) => break Err(refused.into()),
        }
    };
    process.hand.open()?;
    ended
}

/// Waits; `true`: it is to end.
fn is_readable(fd: BorrowedFd<'_>, at_most: Duration) -> Result<bool, Error> {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    let time = Timespec::try_from(at_most).unwrap_or_default();
    match poll(&mut fds, Some(&time)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(e) => Err(Error::Wait(e)),
    }
}

impl<'a> Process<'a> {
    fn new(root: &'a Root, options: &'a Options, say: &'a mut dyn FnMut(Said)) -> Result<Self, Error> {
        Ok(Self {
            root,
            options,
            hand: Hand::new(root)?,
            governors: BTreeMap::new(),
            reads: Histogram::default(),
            latencies: Latencies::default(),
            state: IoState { pid: std::process::id(), ..IoState::default() },
            told: None,
            begun: Instant::now(),
            troubles: BTreeSet::new(),
            say,
        })
    }

    fn sample(&mut self, window: &Window) {
        window.gone.iter().for_each(|name| drop(self.governors.remove(name)));
        self.latencies.pass(window.seconds);
        for device in window.devices.iter().filter(|device| !is_in_memory(device)) {
            self.reads.merge(&device.awaited_reads().whole);
            self.latencies.add(device);
        }
        let devices = window.devices.iter().filter(|device| self.is_governed(device));
        for device in devices.collect::<Vec<_>>() {
            self.govern(device, window.seconds);
        }
        if self.told.is_none_or(|told| told.elapsed() >= TELL) {
            self.tell();
        }
    }

    /// Skips disks in memory, which have no queue to govern, and disks that nobody writes to.
    fn is_governed(&self, device: &Device) -> bool {
        let is_meant = self.options.only.as_ref().is_none_or(|only| *only == device.name);
        let is_written = !device.of(Operation::Write).whole.is_empty();
        is_meant && !is_in_memory(device) && (is_written || self.governors.contains_key(&device.name))
    }

    fn govern(&mut self, device: &Device, seconds: f64) {
        let now_s = self.begun.elapsed().as_secs_f64();
        let governor = self.governors.entry(device.name.clone()).or_insert_with(|| {
            let target = target::of(self.root, &device.name, self.options.settings.read_target_ms);
            Governor::new(Rules::new(target), knobs::of(self.root, &device.name))
        });
        let before = governor.knobs().to_vec();
        let Some(change) = governor.observe(now_s, &Observation::of(device, seconds)) else { return };
        let Some(knob) = before.get(change.knob) else { return };
        match self.hand.set(knob, change.value, &change.text) {
            Ok(()) => self.report_change(&device.name, &change),
            Err(NotSet::Later(e)) => {
                // as if it had not been decided: it will be again
                *governor = Governor::new(*governor.rules(), before);
                self.trouble(e.to_string());
            }
            Err(why) => {
                governor.give_up_knob(change.knob);
                self.trouble(format!("{}: {why}", device.name));
            }
        }
    }

    fn report_change(&mut self, disk: &str, change: &Change) {
        self.state.changes += 1;
        self.state.last = Some(format!("{disk}: {}", change.text));
        (self.say)(Said::Changed { disk: disk.to_owned(), what: change.text.clone() });
        self.tell();
    }

    /// Once each.
    fn trouble(&mut self, what: String) {
        if self.troubles.insert(what.clone()) {
            (self.say)(Said::Trouble { what });
        }
    }

    fn tell(&mut self) {
        self.told = Some(Instant::now());
        if !self.options.tells_agent {
            return;
        }
        self.state.up_s = self.begun.elapsed().as_secs();
        let reads = std::mem::take(&mut self.reads);
        let within = |share| reads.quantile_ns(share).map(|ns| Nanos(ns as u64));
        (self.state.reads_p50, self.state.reads_p99) = (within(0.5), within(0.99));
        (self.state.latencies, self.state.late_ms) = self.latencies.take();
        self.state.disks =
            self.governors.iter().map(|(name, governor)| disk(name, governor, self.begun)).collect();
        if let Err(e) = state::save(self.root, state::IO, &self.state) {
            self.trouble(e.to_string());
        }
    }
}

fn is_in_memory(device: &Device) -> bool {
    ["zram", "ram"].iter().any(|kind| device.name.starts_with(kind))
}

fn disk(name: &str, governor: &Governor, begun: Instant) -> IoDisk {
    let changed = governor.knobs().iter().filter(|knob| knob.now != knob.start);
    let rests = governor.rests_until_s().map(|until| until - begun.elapsed().as_secs_f64());
    IoDisk {
        name: name.to_owned(),
        target: governor.rules().target,
        changed: changed.map(|knob| format!("{} {} (was {})", knob.name, knob.now, knob.start)).collect(),
        rests_s: rests.filter(|s| *s > 0.0).map(|s| s as u64),
    }
}
