//! Performs the guard's steps. Those that can be undone are in the journal first, so that after a crash the next agent or
//! `eke down` undoes them.

use eke_apply::process;
use eke_apply::session::{AppliedStep, Session};
use eke_linux::{Error, Root};
use eke_model::step::{PlannedStep, Reason, Step};
use rustix::process::Signal;

use crate::target::Target;

/// The owner of the guard's changes in the journal.
pub const OWNER: &str = "guard";

/// A slowed group keeps this share of its present memory without being throttled.
const HIGH_SHARE_PERCENT: u64 = 95;

/// Changes in force, by their numbers in the journal.
#[derive(Debug, Default)]
pub struct InForce {
    stopped: Vec<u64>,
    slowed: Vec<u64>,
}

/// What a slow step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slowed {
    /// The group is throttled.
    Yes,
    /// This kernel has no `memory.high` for it (cgroup v1).
    NoSuchLimit,
}

/// Undoes what an earlier agent left, which was killed while something was stopped or slowed.
///
/// # Errors
/// The kernel's answer, or that another eke has the journal.
pub fn undo_left_over(root: &Root) -> Result<(), Error> {
    Session::try_open(root, OWNER)?.undo_own()
}

impl InForce {
    /// Slows the target's group by `memory.high`.
    ///
    /// # Errors
    /// The kernel's answer; nothing is changed then.
    pub fn slow(&mut self, root: &Root, target: &Target) -> Result<Slowed, Error> {
        let Some(group) = target.group.as_ref().map(|g| unified(root, g)) else {
            return Ok(Slowed::NoSuchLimit);
        };
        let dir = format!("sys/fs/cgroup/{group}");
        let (false, Ok(current)) =
            (!root.exists(format!("{dir}/memory.high")), root.read(format!("{dir}/memory.current")))
        else {
            return Ok(Slowed::NoSuchLimit);
        };
        let bytes: u64 = current.trim().parse().unwrap_or(u64::MAX) / 100 * HIGH_SHARE_PERCENT;
        let high = bytes / root.page_size().bytes() * root.page_size().bytes();
        let step = Step::set_at("unit.memory.high", &group, high);
        self.slowed.extend(apply(root, step)?);
        Ok(Slowed::Yes)
    }

    /// Stops the target: its control group if it is a whole one (`cgroup.freeze`), which no fork escapes and no parent notices;
    /// else each process.
    ///
    /// # Errors
    /// The kernel's answer; nothing is stopped then.
    pub fn stop(&mut self, root: &Root, target: &Target) -> Result<(), Error> {
        let group = target.group.as_ref().map(|g| unified(root, g));
        let step = match group.filter(|g| root.exists(format!("sys/fs/cgroup/{g}/cgroup.freeze"))) {
            Some(group) => Step::set_at("unit.cgroup.freeze", &group, 1),
            None => Step::Stop { processes: target.processes.clone() },
        };
        self.stopped.extend(apply(root, step)?);
        Ok(())
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

    /// Whether nothing is stopped or slowed.
    pub fn is_empty(&self) -> bool {
        self.stopped.is_empty() && self.slowed.is_empty()
    }
}

/// Ends the target, by SIGKILL if `now`, else by SIGTERM.
///
/// # Errors
/// The kernel's answer for the first process that it refused.
pub fn end(root: &Root, target: &Target, now: bool) -> Result<(), Error> {
    let signal = if now { Signal::KILL } else { Signal::TERM };
    process::signal_all(root, &target.processes, signal).map(drop)
}

/// The reason has no name of the program: every user sees the journal's reasons in `eke dash`. The agent's log, which is root's, has it.
fn apply(root: &Root, step: Step) -> Result<Option<u64>, Error> {
    let reason = Reason::new("a program in it grows while memory is short");
    match Session::try_open(root, OWNER)?.apply(&PlannedStep { step, reason })? {
        AppliedStep::Made { seq, .. } => Ok(Some(seq)),
        AppliedStep::AlreadySo | AppliedStep::GroupEnded => Ok(None),
    }
}

fn undo(root: &Root, changes: &mut Vec<u64>) -> Result<(), Error> {
    if changes.is_empty() {
        return Ok(());
    }
    let mut session = Session::try_open(root, OWNER)?;
    while let Some(seq) = changes.last() {
        session.undo(*seq)?;
        changes.pop();
    }
    Ok(())
}

/// The group's path below `/sys/fs/cgroup`: a hybrid machine has the unified hierarchy in a directory of its own.
fn unified(root: &Root, group: &str) -> String {
    if root.exists("sys/fs/cgroup/cgroup.controllers") {
        group.to_owned()
    } else {
        format!("unified/{group}")
    }
}
