//! The *box* (`box` is a keyword of Rust): a command in a control group with little memory.
//!
//! The kernel does not charge the RAM of zram's pool to a group, nor zswap's on cgroup v1. The box charges it in proportion to its share of
//! all swapped pages, by lowering its own limit ten times a second. A box over its budget for more than a second is killed, as the OOM killer
//! would do: lowering a limit of cgroup v1 never kills by itself.
//!
//! - [`charge`]: the box's share of the pool (pure)
//! - [`meter`]: budget, limit, and the time over budget (pure)
//! - [`report`]: the result of a run
//!
//! The group is removed at the end, after an error and after a signal. After `kill -9` of the supervisor the kernel kills the command, and the next
//! box or `eke down` removes the group ([`eke_apply::cgroup::sweep`]).

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

pub use report::{BoxReport, Scope, Stall, SwapTraffic};

/// The smallest budget: with less no program starts.
const LEAST: Bytes = Bytes::mib(1);

/// A command and its memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoxSpec {
    /// The budget: memory of its processes, and of their compressed swap.
    pub memory: Bytes,
    /// The program (searched in `PATH`) and its arguments.
    pub command: Vec<OsString>,
    /// May it use the machine's swap?
    pub swap: Swap,
    /// The swappiness of the group, 0 to 200; `None`: the machine's. cgroup v1 only.
    pub swappiness: Option<u32>,
    /// The destination of the command's standard output.
    pub output: Output,
}

/// May the box use swap?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Swap {
    /// Yes, all swap of the machine.
    #[default]
    Machines,
    /// No.
    Forbidden,
}

/// The destination of the command's standard output; standard error is always the supervisor's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Output {
    /// The supervisor's standard output.
    #[default]
    Inherit,
    /// The supervisor's standard error, so that its own output stays machine-readable.
    ToStderr,
    /// [`BoxReport::stdout`].
    Capture,
    /// This sink, while the command runs.
    Into(Sink),
}

/// The writing end of a pipe, or an open file, which can be read while the box runs. The command stops when a pipe is full. The reader gets end of
/// file when every copy of the sink is dropped.
#[derive(Debug, Clone)]
pub struct Sink(Arc<OwnedFd>);

impl Sink {
    /// Makes a sink of an open descriptor.
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

/// Why a box failed. A command that fails or is killed is no error but a [`BoxReport`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The specification is impossible.
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
    /// The command's end or its output could not be read.
    #[error("cannot wait for the command in the box: {0}")]
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
    /// `command` in `memory`, with the machine's swap and the supervisor's standard output.
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

/// Runs the command in a box until it ends. If `shutdown` is set (by a signal handler), the box is killed. Groups of dead supervisors are removed
/// first.
///
/// # Errors
/// Root or a delegated part of cgroup v2 is missing, or the kernel refuses; the box is killed and removed then.
pub fn run(root: &Root, spec: &BoxSpec, shutdown: &AtomicBool) -> Result<BoxReport, Error> {
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
        Ok(names) => Some(format!("removed groups that earlier boxes left: {}", names.join(", "))),
        Err(e) => Some(format!("cannot remove groups that earlier boxes left: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_boxes_are_refused_before_any_change() {
        let nothing: [&str; 0] = [];
        let too_swappy = BoxSpec { swappiness: Some(201), ..BoxSpec::new(Bytes::mib(64), ["true"]) };
        for spec in [BoxSpec::new(Bytes::mib(64), nothing), BoxSpec::new(Bytes(0), ["true"]), too_swappy] {
            let refused = run(&Root::at("/nonexistent"), &spec, &AtomicBool::new(false));
            assert!(matches!(refused, Err(Error::Spec(_))), "{refused:?}");
        }
    }

    #[test]
    fn the_error_on_a_machine_without_groups_names_what_is_missing() {
        let refused =
            run(&Root::at("/nonexistent"), &BoxSpec::new(Bytes::mib(64), ["true"]), &AtomicBool::new(false));
        assert!(refused.unwrap_err().to_string().contains("no memory controller"));
    }
}
