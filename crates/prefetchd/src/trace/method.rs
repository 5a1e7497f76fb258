//! The interface of all tracing methods.

use std::fmt::Debug;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use eke_prefetch_model::learn::{LaunchId, TraceEvent};

/// A tracing method that is not available, or a step that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{tried}: {answer}")]
pub struct TraceError {
    /// What was attempted.
    pub tried: String,
    /// The answer of the kernel or of another component.
    pub answer: String,
}

impl TraceError {
    /// Pairs an attempt with its answer.
    pub fn new(tried: impl Into<String>, answer: impl ToString) -> Self {
        Self { tried: tried.into(), answer: answer.to_string() }
    }
}

/// A tracing method.
pub trait Trace: Debug {
    /// Waits for events, for at most `at_most`. Only execs end the wait early.
    fn wait(&mut self, at_most: Duration);

    /// Passes the events since the last call to `each`, in order.
    fn read(&mut self, each: &mut dyn FnMut(TraceEvent));

    /// Starts recording the pages that this process and its future children touch. The next read also reports earlier pages, as far as they are
    /// mapped. Returns the children that it has started since its exec and that run its program: they belong to the launch, also if the process has
    /// ended.
    ///
    /// # Errors
    /// The kernel's answer; the launch cannot be recorded.
    fn learn(&mut self, launch: LaunchId, pid: u32) -> Result<Vec<u32>, TraceError>;

    /// Moves a process that has executed a program, and the children that it has started since, into a launch or out of all.
    fn assign(&mut self, pid: u32, launch: Option<LaunchId>);

    /// Whether processes had more children than were examined since the last call, so that some are not in their launches.
    fn has_lost_children(&mut self) -> bool;

    /// Whether it reports uses of pages that are in memory already. Otherwise a launch's pages are those that entered memory.
    fn sees_uses(&self) -> bool {
        true
    }

    /// The count of others' reads, if this method has one.
    fn others_reads(&self) -> Option<Arc<dyn OthersReads>> {
        None
    }

    /// Stops reporting events of a launch.
    fn forget(&mut self, launch: LaunchId);

    /// Readable after an urgent event; `None` if the method only polls.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
}

/// Counts others' reads of disks: those of all processes but this one and the ones that it reads for with their children. It counts while there are such.
pub trait OthersReads: Debug + Send + Sync {
    /// This process reads for that one from now on.
    fn leave_out(&self, pid: u32);

    /// No longer.
    fn take_back(&self, pid: u32);

    /// Others' reads of these devices so far. Only differences mean anything.
    fn so_far(&self, devices: &[u64]) -> u64;
}
