//! The fetches for programs that have just started.

use std::collections::VecDeque;
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
/// The most launches that wait for that: a log-in starts many programs.
const MOST_WAITING: usize = 32;
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
    /// CPU time of this process until then, and while the launch waited for others.
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

/// A launch that waits until another one's fetch ends.
#[derive(Debug)]
struct WaitingLaunch {
    cold: ColdLaunch,
    requests: Vec<ReadRequest>,
    began: Duration,
    /// CPU time of this process when it began to wait.
    cpu: Duration,
}

/// All running fetches.
#[derive(Debug, Default)]
pub(super) struct Launches {
    fetches: Vec<LaunchFetch>,
    /// Launches without a fetch yet, the oldest first.
    waiting: VecDeque<WaitingLaunch>,
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
    /// Whether to fetch for this launch: the program's last start is long enough ago. Counts the launch if so.
    pub fn is_due(&mut self, program: ProgramId, now: Duration) -> bool {
        self.last.retain(|(_, at)| now.saturating_sub(*at) < AGAIN);
        let is_due = self.last.len() < MOST_REMEMBERED
            && self.waiting.len() < MOST_WAITING
            && !self.last.iter().any(|(id, _)| *id == program);
        self.last.extend(is_due.then_some((program, now)));
        is_due
    }

    /// Starts a fetch for a launch, now or when others have ended.
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
        self.waiting.push_back(WaitingLaunch { cold, requests, began: now, cpu: cpu_so_far() });
        self.begin_waiting(scheduler)
    }

    fn begin_waiting(&mut self, scheduler: &Scheduler) -> io::Result<()> {
        while self.fetches.len() < MOST {
            let Some(WaitingLaunch { mut cold, requests, began, cpu }) = self.waiting.pop_front() else {
                break;
            };
            // What others took meanwhile is not its cost.
            cold.cpu += cpu_so_far().saturating_sub(cpu);
            let mut fetch = scheduler.start(requests, Priority::AtExec)?;
            fetch.reads_for(cold.pid);
            self.fetches.push(LaunchFetch { fetch, cold, began });
        }
        Ok(())
    }

    /// Stops the fetch of an ended process, unless `heir` finds another process of the launch. Returns the programs whose fetches were not done: their next
    /// start is read, however soon it comes.
    pub fn ended(&mut self, pid: u32, heir: &dyn Fn(&ColdLaunch) -> Option<u32>) -> Vec<ProgramId> {
        let mut cut_short = Vec::new();
        for of in self.fetches.iter_mut().filter(|of| of.cold.pid == pid) {
            match heir(&of.cold) {
                Some(heir) => {
                    of.cold.pid = heir;
                    of.fetch.reads_for(heir);
                }
                None => {
                    cut_short.extend((!of.fetch.is_over()).then_some(of.cold.program));
                    of.fetch.stop();
                }
            }
        }
        self.waiting.retain_mut(|of| {
            let goes_on = if of.cold.pid == pid { heir(&of.cold) } else { Some(of.cold.pid) };
            of.cold.pid = goes_on.unwrap_or(pid);
            cut_short.extend(goes_on.is_none().then_some(of.cold.program));
            goes_on.is_some()
        });
        self.last.retain(|(program, _)| !cut_short.contains(program));
        cut_short
    }

    /// The fetches that have finished by now. Those that waited for that begin.
    ///
    /// # Errors
    /// As for [`Self::begin`].
    pub fn poll(&mut self, scheduler: &Scheduler, now: Duration) -> (Vec<FinishedFetch>, io::Result<()>) {
        let is_late = |cold: &ColdLaunch| now.saturating_sub(cold.executed) > LONGEST;
        self.fetches.iter().filter(|of| is_late(&of.cold)).for_each(|of| of.fetch.stop());
        self.waiting.retain(|of| !is_late(&of.cold));
        let all = std::mem::take(&mut self.fetches);
        let (over, running) = all.into_iter().partition::<Vec<_>, _>(|of| of.fetch.is_over());
        self.fetches = running;
        let over = over.into_iter().map(|of| of.over(now)).collect();
        (over, self.begin_waiting(scheduler))
    }

    /// Bytes that the running fetches have read.
    pub fn fetched_bytes(&self) -> u64 {
        self.fetches.iter().map(|of| of.fetch.report().fetched_bytes).sum()
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

#[cfg(test)]
mod tests {
    use eke_linux::Root;
    use eke_testkit::wait::wait_for;

    use super::*;
    use crate::schedule::Limits;

    const BY_OTHERS: Duration = Duration::from_millis(5);

    #[test]
    fn the_fifth_launch_is_read_when_another_one_is_done() {
        let dir = tempfile::tempdir().unwrap();
        let scheduler = Scheduler::new(Root::at(dir.path()), Limits::default());
        let mut launches = Launches::default();
        let cold = |n: u32| ColdLaunch {
            program: ProgramId(n.into()),
            name: String::new(),
            pid: n,
            exe: "/x".into(),
            user: 0,
            executed: Duration::ZERO,
            cpu: Duration::ZERO,
        };
        for n in 0..8 {
            assert!(launches.is_due(ProgramId(n.into()), Duration::ZERO));
            launches.begin(&scheduler, cold(n), Vec::new(), Duration::ZERO).unwrap();
        }
        assert!(!launches.is_due(ProgramId(7), Duration::ZERO), "it has just started");
        assert_eq!((launches.fetches.len(), launches.waiting.len()), (4, 4));
        assert_eq!(launches.ended(6, &|_| None), [ProgramId(6)]);
        assert_eq!(launches.ended(7, &|_| Some(70)), []);
        let waiting: Vec<u32> = launches.waiting.iter().map(|of| of.cold.pid).collect();
        assert_eq!(waiting, [4, 5, 70], "one has ended, and one goes on in its child");
        assert!(launches.is_due(ProgramId(6), Duration::ZERO), "it was not read");
        assert!(!launches.is_due(ProgramId(7), Duration::ZERO));
        let (mut over, mut cpu) = (Vec::new(), Duration::ZERO);
        let queued = cpu_so_far();
        while cpu_so_far() < queued + BY_OTHERS {}
        wait_for("all fetches", || {
            let (now_over, begun) = launches.poll(&scheduler, Duration::ZERO);
            begun.unwrap();
            over.extend(now_over.into_iter().map(|of| of.program.0));
            let fifth = launches.fetches.iter().find(|of| of.cold.pid == 4);
            cpu = fifth.map_or(cpu, |of| of.cold.cpu);
            over.len() == 7
        });
        assert!(cpu >= BY_OTHERS, "what others took while it waited is not its cost: {cpu:?}");
        over.sort_unstable();
        assert_eq!(over, [0, 1, 2, 3, 4, 5, 7]);
        assert!(!launches.is_busy());
        launches.waiting.push_back(WaitingLaunch {
            cold: cold(9),
            requests: Vec::new(),
            began: Duration::ZERO,
            cpu: Duration::ZERO,
        });
        assert!(
            launches.poll(&scheduler, LONGEST * 2).0.is_empty() && !launches.is_busy(),
            "it waited too long"
        );
    }
}
