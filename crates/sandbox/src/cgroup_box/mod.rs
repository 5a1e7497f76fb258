//! The *box* (`box` is a word of Rust's): a command in a group of processes with little memory.
//!
//! What the kernel does not charge to a group, the box charges itself: the RAM that zram's pool takes for its pages (on
//! cgroup v1 also zswap's), in proportion to its share of all swapped pages. It does so by lowering its own limit, ten
//! times a second. A box that is over its budget for more than a second is killed, as the OOM killer would: lowering a
//! limit of cgroup v1 never kills by itself.
//!
//! - [`charge`]: what the pool owes to the box (pure)
//! - [`meter`]: budget, limit, and how long over it (pure)
//! - [`report`]: what a run shows
//!
//! Nothing stays behind: the group is removed at the end, after an error and after a signal; after `kill -9` of the
//! supervisor the command gets SIGKILL from the kernel, and the next box or `eke down` sweeps the group
//! ([`eke_apply::cgroup::sweep`]).

pub mod charge;
mod child;
pub mod meter;
pub mod report;
mod supervise;

use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use eke_apply::cgroup::{self, Group, GroupParent};
use eke_linux::Root;
use eke_model::units::Bytes;

pub use report::{Report, Scope, Stall, SwapTraffic};

/// The least budget: less does not even start a program.
const LEAST: Bytes = Bytes::mib(1);

/// What to run, and in how much memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxSpec {
    /// The memory of the machine that the box stands for: what its processes use, and the compressed swap that they use.
    pub memory: Bytes,
    /// The program (searched in `PATH`) and its arguments.
    pub command: Vec<OsString>,
    /// Whether it may use the machine's swap.
    pub swap: Swap,
    /// The swappiness of the group, 0 to 200; `None` leaves the machine's. cgroup v1 only.
    pub swappiness: Option<u32>,
    /// Where the command's standard output goes.
    pub output: Output,
}

/// May the box use swap?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Swap {
    /// As any process of the machine.
    #[default]
    Machines,
    /// Not at all, whatever the machine has.
    Forbidden,
}

/// Where the command's standard output goes; standard error is always the supervisor's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Output {
    /// To the supervisor's.
    #[default]
    Inherit,
    /// To the supervisor's standard error, so that its own output stays machine-readable.
    ToStderr,
    /// Into [`Report::stdout`].
    Capture,
    /// Into this, as it comes.
    Into(Sink),
}

/// The writing end of a pipe, or an open file: what a box writes there can be read while it runs. A pipe must be read,
/// or the command stops when it is full; the reader sees its end when every copy of the sink is dropped.
#[derive(Debug, Clone)]
pub struct Sink(Arc<OwnedFd>);

impl Sink {
    /// Of an open descriptor.
    pub fn new(fd: impl Into<OwnedFd>) -> Self {
        Self(Arc::new(fd.into()))
    }
}

impl PartialEq for Sink {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_raw_fd() == other.0.as_raw_fd()
    }
}

impl Eq for Sink {}

/// Why a box cannot be had. A command that fails or is killed is no error but a [`Report`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The specification asks for what cannot be.
    #[error("{0}")]
    Spec(String),
    /// The kernel refused.
    #[error(transparent)]
    Kernel(#[from] eke_linux::Error),
    /// The command could not be started.
    #[error("cannot start `{command}` in the box: {source}{}", not_found_hint(source))]
    Start {
        /// The program's name.
        command: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// The command's end or its output could not be had.
    #[error("lost sight of the command in the box: {0}")]
    Lost(#[source] std::io::Error),
}

fn not_found_hint(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::NotFound => "; is it spelled right and in PATH?",
        std::io::ErrorKind::PermissionDenied => "; is it executable?",
        _ => "",
    }
}

impl Error {
    /// Would root have been allowed to?
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Kernel(e) if e.is_permission())
    }
}

impl BoxSpec {
    /// `command` in `memory`, with the machine's swap, and its output to the supervisor's.
    pub fn new<S: Into<OsString>>(memory: Bytes, command: impl IntoIterator<Item = S>) -> Self {
        Self {
            memory,
            command: command.into_iter().map(Into::into).collect(),
            swap: Swap::default(),
            swappiness: None,
            output: Output::default(),
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self.command.is_empty() {
            return Err(Error::Spec("a box needs a command: eke box --memory 124M -- COMMAND".to_owned()));
        }
        if self.memory < LEAST {
            return Err(Error::Spec(format!(
                "a box of {} is too small for any program; give at least {LEAST}",
                self.memory
            )));
        }
        match self.swappiness {
            Some(s) if s > 200 => Err(Error::Spec(format!("a swappiness of {s} is not between 0 and 200"))),
            _ => Ok(()),
        }
    }
}

/// Runs the command in a box until it ends, or until `shutdown` is set (by a signal handler): then the box is killed.
/// Removes first what dead supervisors left.
///
/// # Errors
/// What it needs (root, or a delegated part of cgroup v2), or the kernel's refusal; the box is killed and removed then.
pub fn run(root: &Root, spec: &BoxSpec, shutdown: &AtomicBool) -> Result<Report, Error> {
    spec.check()?;
    let parent = GroupParent::find(root)?;
    let swept = cgroup::sweep(root);
    let group = Group::make(root, &parent, "box")?;
    group.limit(spec.memory)?;
    if spec.swap == Swap::Forbidden {
        group.forbid_swap(spec.memory)?;
    }
    if let Some(swappiness) = spec.swappiness {
        group.swappiness(swappiness)?;
    }
    let mut report = supervise::run(root, spec, &group, shutdown)?;
    group.remove()?;
    report.notes.extend(swept_note(swept));
    Ok(report)
}

fn swept_note(swept: eke_linux::error::Result<Vec<String>>) -> Option<String> {
    match swept {
        Ok(names) if names.is_empty() => None,
        Ok(names) => Some(format!("removed what earlier boxes left: {}", names.join(", "))),
        Err(e) => Some(format!("what earlier boxes left could not be removed: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_boxes_are_refused_before_anything_is_made() {
        let nothing: [&str; 0] = [];
        let too_swappy = BoxSpec { swappiness: Some(201), ..BoxSpec::new(Bytes::mib(64), ["true"]) };
        for spec in [BoxSpec::new(Bytes::mib(64), nothing), BoxSpec::new(Bytes(0), ["true"]), too_swappy] {
            let refused = run(&Root::at("/nonexistent"), &spec, &AtomicBool::new(false));
            assert!(matches!(refused, Err(Error::Spec(_))), "{refused:?}");
        }
    }

    #[test]
    fn a_machine_without_groups_says_what_it_needs() {
        let refused =
            run(&Root::at("/nonexistent"), &BoxSpec::new(Bytes::mib(64), ["true"]), &AtomicBool::new(false));
        assert!(refused.unwrap_err().to_string().contains("no memory controller"));
    }
}
