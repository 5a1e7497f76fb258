//! What all ways of tracing have in common.

use std::fmt::Debug;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use eke_prefetch_model::learn::{LaunchId, Seen};

/// A way of tracing that cannot be had, or a step of it that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{tried}: {answer}")]
pub struct Refused {
    /// What was tried.
    pub tried: String,
    /// What the kernel, or who else, answered.
    pub answer: String,
}

impl Refused {
    /// This was tried, that was answered.
    pub fn new(tried: impl Into<String>, answer: impl ToString) -> Self {
        Self { tried: tried.into(), answer: answer.to_string() }
    }
}

/// One way of tracing.
pub trait Trace: Debug {
    /// Waits until something was seen, at most so long. What is not urgent (all but execs) waits for the end of the time.
    fn wait(&mut self, at_most: Duration);

    /// Tells what was seen since, in its order.
    fn read(&mut self, each: &mut dyn FnMut(Seen));

    /// From now on tells of the pages that this process and its children to be touch; of what it touched before, as far as it is
    /// mapped, with the next read.
    ///
    /// # Errors
    /// What the kernel answered: the launch cannot be learned.
    fn learn(&mut self, launch: LaunchId, pid: u32) -> Result<(), Refused>;

    /// A launch is over; no more of its events are reported.
    fn forget(&mut self, launch: LaunchId);

    /// Readable when something urgent was seen; `None` where there is nothing to wait for but time.
    fn fd(&self) -> Option<BorrowedFd<'_>>;
}
