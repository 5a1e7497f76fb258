//! Performs the guard's steps. Those that can be undone are in the journal first, so that after a crash the next agent or
//! `eke down` undoes them.

use eke_apply::journal::{self, record::Phase, replay::Entry};
use eke_apply::session::{AppliedStep, Session};
use eke_apply::{oom_count, process, revert};
use eke_linux::parse::process_status;
use eke_linux::{Error, Root};
use eke_model::process::ProcessId;
use eke_model::step::{PlannedStep, Reason, Step};
use rustix::process::Signal;

use crate::group::{UNIFIED, unified};
use crate::target::Target;

/// The owner of the guard's changes in the journal.
pub const OWNER: &str = "guard";

/// A group that is slowed may grow by this part of what it has meanwhile.
const MARGIN: u64 = 32;

/// Changes in force.
#[derive(Debug, Default)]
pub struct InForce {
    stopped: Vec<Change>,
    slowed: Vec<Change>,
}

/// A change of the guard's in the journal.
#[derive(Debug, Clone)]
struct Change {
    seq: u64,
    /// With the number it names the change: a new journal begins at 1 again.
    step: Step,
    /// It is undone, and the journal does not say so yet.
    is_undone: bool,
}

impl Change {
    /// Its entry, unless another eke has undone it.
    fn entry(&self, root: &Root) -> Result<Option<Entry>, Error> {
        let is_it = |e: &Entry| e.seq == self.seq && e.intent.owner == OWNER && e.intent.step == self.step;
        Ok(journal::entries(root)?.into_iter().find(is_it))
    }
}

/// The kernel keeps limits in pages, rounded down (page_counter_memparse, mm/page_counter.c).
fn in_whole_pages(bytes: u64) -> u64 {
    let page = rustix::param::page_size() as u64;
    bytes / page * page
}

impl InForce {
    /// What an earlier agent left, which was killed while something was stopped or slowed.
    ///
    /// # Errors
    /// The kernel's answer if the journal cannot be read.
    pub fn left_over(root: &Root) -> Result<Self, Error> {
        let own = journal::entries(root)?.into_iter().filter(|e| e.intent.owner == OWNER);
        let change = |e: Entry| Change { seq: e.seq, step: e.intent.step, is_undone: false };
        Ok(Self { stopped: own.map(change).collect(), slowed: Vec::new() })
    }

    /// Slows the target's group by `memory.high`: it has what it uses now and a little more, and reclaims its own memory before it gets
    /// more than that. Returns whether anything was changed: cgroup v1 has no such limit, and a lower one stays.
    ///
    /// # Errors
    /// The kernel's answer, or that another eke has the journal; nothing is changed then.
    pub fn slow(&mut self, root: &Root, target: &Target) -> Result<bool, Error> {
        let Some(group) = target.group.as_ref().map(|g| unified(root, g)) else { return Ok(false) };
        let number = |file: &str| {
            let text = root.read(format!("sys/fs/cgroup/{group}/{file}")).ok()?;
            // `max` is no number.
            Some(text.trim().parse::<u64>().unwrap_or(u64::MAX))
        };
        let (Some(high), Some(current)) = (number("memory.high"), number("memory.current")) else {
            return Ok(false);
        };
        // Not less than it uses when the kernel gets it: the writer, which is the agent, would reclaim the difference itself
        // (memory_high_write, mm/memcontrol.c).
        let limit = in_whole_pages(current.saturating_add(current / MARGIN));
        if high <= limit {
            return Ok(false);
        }
        let change = apply(root, Step::set_at("unit.memory.high", &group, limit))?;
        Ok(keep(&mut self.slowed, change))
    }

    /// Stops the target: its control group if it is a whole one (`cgroup.freeze`), which no fork escapes and no parent notices;
    /// else each process that is not stopped already, by its user or a debugger, who alone let it continue. Returns whether any
    /// was stopped.
    ///
    /// # Errors
    /// The kernel's answer, or that another eke has the journal; nothing is stopped then.
    pub fn stop(&mut self, root: &Root, target: &Target) -> Result<bool, Error> {
        let group = target.group.as_ref().map(|g| unified(root, g));
        let step = match group.filter(|g| root.exists(format!("sys/fs/cgroup/{g}/cgroup.freeze"))) {
            Some(group) => Step::set_at("unit.cgroup.freeze", &group, 1),
            None => {
                let running = target.processes.iter().filter(|process| !is_stopped(root, **process));
                Step::Stop { processes: running.copied().collect() }
            }
        };
        let change = apply(root, step)?;
        Ok(keep(&mut self.stopped, change))
    }

    /// Lets what is stopped continue.
    ///
    /// # Errors
    /// The kernel's answer; it is tried again by the next call.
    pub fn go_on(&mut self, root: &Root) -> Result<(), Error> {
        undo(root, &mut self.stopped)
    }

    /// Lifts the limit of what is slowed.
    ///
    /// # Errors
    /// As in [`Self::go_on`].
    pub fn release(&mut self, root: &Root) -> Result<(), Error> {
        undo(root, &mut self.slowed)
    }

    /// The groups that are slowed, relative to their hierarchy.
    pub fn slowed_groups(&self) -> Vec<&str> {
        let mut groups = Vec::new();
        for change in &self.slowed {
            if let Step::Set { target, .. } = &change.step {
                groups.push(target.strip_prefix(UNIFIED).unwrap_or(target));
            }
        }
        groups
    }

    /// Whether nothing is stopped or slowed.
    pub fn is_empty(&self) -> bool {
        self.stopped.is_empty() && self.slowed.is_empty()
    }
}

/// Ends a target, by SIGKILL if `now`, else by SIGTERM. If it `is_first`, systemd hears why.
///
/// # Errors
/// The kernel's answer for the first process that it refused.
pub fn end(root: &Root, target: &Target, now: bool, is_first: bool) -> Result<(), Error> {
    // What cannot be counted ends as any other process.
    let counted = service(root, target)
        .filter(|_| is_first)
        .map(|group| oom_count::count(root, group, target.processes.len()));
    let signal = if now { Signal::KILL } else { Signal::TERM };
    let reached = process::signal_all(root, &target.processes, signal);
    match counted {
        Some(Ok(before)) if !matches!(reached, Ok(1..)) => {
            oom_count::take_back(root, &before).and(reached.map(drop))
        }
        _ => reached.map(drop),
    }
}

/// Ends processes at once.
///
/// # Errors
/// As in [`end`].
pub fn kill(root: &Root, processes: &[ProcessId]) -> Result<(), Error> {
    process::signal_all(root, processes, Signal::KILL).map(drop)
}

/// The group of a service that is ended as a whole. systemd counts nothing where it has other hierarchies, too.
fn service<'t>(root: &Root, target: &'t Target) -> Option<&'t str> {
    let group = target.group.as_deref()?;
    (group.ends_with(".service") && root.exists("sys/fs/cgroup/cgroup.controllers")).then_some(group)
}

/// The reason has no name of the program: every user sees the journal's reasons in `eke dash`. The agent's log has it.
fn apply(root: &Root, step: Step) -> Result<Option<Change>, Error> {
    let reason = Reason::new("a program in it grows while memory is short");
    match Session::try_open(root, OWNER)?.apply(&PlannedStep { step: step.clone(), reason })? {
        AppliedStep::Made { seq, .. } => Ok(Some(Change { seq, step, is_undone: false })),
        AppliedStep::AlreadySo | AppliedStep::GroupEnded => Ok(None),
    }
}

fn keep(changes: &mut Vec<Change>, change: Option<Change>) -> bool {
    let is_made = change.is_some();
    changes.extend(change);
    is_made
}

/// Undoes the changes. Nothing waits for another eke that has the journal (`eke plan` measures for seconds): the journal's entries are
/// closed by a later call then.
fn undo(root: &Root, changes: &mut Vec<Change>) -> Result<(), Error> {
    if changes.is_empty() {
        return Ok(());
    }
    let mut session = match Session::try_open(root, OWNER) {
        Err(e) if e.is_locked() => return undo_unrecorded(root, changes),
        opened => opened?,
    };
    while let Some(change) = changes.last() {
        match change.entry(root)? {
            Some(entry) if change.is_undone => session.journal().note(entry.seq, Phase::Reverted)?,
            Some(entry) => session.undo(entry.seq)?,
            None => {}
        }
        changes.pop();
    }
    Ok(())
}

fn undo_unrecorded(root: &Root, changes: &mut [Change]) -> Result<(), Error> {
    for change in changes.iter_mut().rev().filter(|change| !change.is_undone) {
        if let Some(entry) = change.entry(root)? {
            revert::effect(root, &entry)?;
        }
        change.is_undone = true;
    }
    Ok(())
}

/// Whether it is stopped by a signal or traced. One that has ended is not, and needs nothing.
fn is_stopped(root: &Root, process: ProcessId) -> bool {
    let text = root.read(format!("proc/{}/status", process.pid)).unwrap_or_default();
    process_status::parse(&text).is_stopped()
}
