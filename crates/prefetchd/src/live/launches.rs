//! The fetches for programs that have just started.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::notice::Notice;
use crate::read::FetchReport;
use crate::request::{Priority, ReadRequest};
use crate::schedule::{Fetch, Scheduler};
use eke_prefetch_model::program::ProgramId;

/// The most launches read at once.
const MOST: usize = 4;
/// A fetch is stopped after this: the launch has ended, or has read its files itself.
const LONGEST: Duration = Duration::from_secs(60);
/// A program that is started again this soon has its files in memory.
const AGAIN: Duration = Duration::from_secs(10);
/// The most programs whose last start is remembered.
const MOST_REMEMBERED: usize = 256;

/// A launch with missing pages.
#[derive(Debug, Clone)]
pub(super) struct ColdLaunch {
    pub program: ProgramId,
    pub name: String,
    /// The process that the fetch is for: the first one, and when it has forked and exited, its child.
    pub pid: u32,
    pub exe: PathBuf,
    /// The starter's real user id.
    pub user: u32,
    /// The time of the exec, by CLOCK_MONOTONIC.
    pub executed: Duration,
    /// CPU time of this process until then.
    pub cpu: Duration,
}

/// A running fetch for a launch.
#[derive(Debug)]
struct LaunchFetch {
    fetch: Fetch,
    cold: ColdLaunch,
    /// When the probe found missing pages.
    began: Duration,
}

/// All running fetches.
#[derive(Debug, Default)]
pub(super) struct Launches {
    fetches: Vec<LaunchFetch>,
    last: Vec<(ProgramId, Duration)>,
}

/// A finished fetch.
#[derive(Debug)]
pub(super) struct FinishedFetch {
    pub program: ProgramId,
    pub report: FetchReport,
    /// CPU time of this process since the exec: for probing, choosing, recording and reading.
    pub cpu: Duration,
    /// The notice, if anything was read.
    pub notice: Option<Notice>,
}

/// CPU time of all threads of this process so far.
pub(super) fn cpu_so_far() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

impl Launches {
    /// Whether to fetch for this launch: there is room, and the program's last start is long enough ago. Counts the launch if so.
    pub fn is_due(&mut self, program: ProgramId, now: Duration) -> bool {
        self.last.retain(|(_, at)| now.saturating_sub(*at) < AGAIN);
        let is_due = self.fetches.len() < MOST
            && self.last.len() < MOST_REMEMBERED
            && !self.last.iter().any(|(id, _)| *id == program);
        self.last.extend(is_due.then_some((program, now)));
        is_due
    }

    /// Starts a fetch for a launch.
    ///
    /// # Errors
    /// The kernel's answer if no descriptor or thread is left.
    pub fn begin(
        &mut self,
        scheduler: &Scheduler,
        cold: ColdLaunch,
        requests: Vec<ReadRequest>,
        now: Duration,
    ) -> io::Result<()> {
        let fetch = scheduler.start(requests, Priority::AtExec)?;
        self.fetches.push(LaunchFetch { fetch, cold, began: now });
        Ok(())
    }

    /// Stops the fetch of an ended process, unless `heir` finds another process of the launch.
    pub fn ended(&mut self, pid: u32, heir: &dyn Fn(&ColdLaunch) -> Option<u32>) {
        for of in self.fetches.iter_mut().filter(|of| of.cold.pid == pid) {
            match heir(&of.cold) {
                Some(heir) => of.cold.pid = heir,
                None => of.fetch.stop(),
            }
        }
    }

    /// The fetches that have finished by now.
    pub fn poll(&mut self, now: Duration) -> Vec<FinishedFetch> {
        let is_late = |of: &&LaunchFetch| now.saturating_sub(of.cold.executed) > LONGEST;
        self.fetches.iter().filter(is_late).for_each(|of| of.fetch.stop());
        let all = std::mem::take(&mut self.fetches);
        let (over, running) = all.into_iter().partition::<Vec<_>, _>(|of| of.fetch.is_over());
        self.fetches = running;
        over.into_iter().map(|of| of.over(now)).collect()
    }

    /// Whether any fetch is running.
    pub fn is_busy(&self) -> bool {
        !self.fetches.is_empty()
    }
}

impl LaunchFetch {
    fn over(self, now: Duration) -> FinishedFetch {
        let Self { fetch, cold, began } = self;
        let report = fetch.report();
        let since = |at: Duration| at.saturating_sub(cold.executed).as_secs_f64();
        let (bytes, resident_bytes) = (report.fetched_bytes, report.resident_bytes);
        let notice = Notice::AtExec {
            program: cold.name,
            bytes,
            resident_bytes,
            probed_s: since(began),
            took_s: since(now),
        };
        let cpu = cpu_so_far().saturating_sub(cold.cpu);
        FinishedFetch { program: cold.program, notice: (bytes > 0).then_some(notice), report, cpu }
    }
}
