//! The fetches for programs that have just started.

use std::io;
use std::time::Duration;

use super::notice::Notice;
use crate::read::Report;
use crate::request::{Priority, ReadRequest};
use crate::schedule::{Fetch, Scheduler};
use eke_prefetch_model::program::ProgramId;

/// Launches whose files are read at once.
const MOST: usize = 4;
/// After this a launch is over, or its files are read by now.
const LONGEST: Duration = Duration::from_secs(60);
/// A program that is started again so soon has its files in memory.
const AGAIN: Duration = Duration::from_secs(10);
/// Programs whose last start is remembered.
const MOST_REMEMBERED: usize = 256;

/// A launch that found something missing.
#[derive(Debug, Clone)]
pub(super) struct Cold {
    pub program: ProgramId,
    pub name: String,
    pub pid: u32,
    /// When it executed, by CLOCK_MONOTONIC.
    pub executed: Duration,
}

/// One whose files are read.
#[derive(Debug)]
struct Going {
    fetch: Fetch,
    cold: Cold,
    /// When it was known that something is missing.
    began: Duration,
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Launches {
    going: Vec<Going>,
    last: Vec<(ProgramId, Duration)>,
}

/// One that is over.
#[derive(Debug)]
pub(super) struct Over {
    pub program: ProgramId,
    pub report: Report,
    /// The notice, if something was read.
    pub notice: Option<Notice>,
}

impl Launches {
    /// Is there room for another, and is the last start of this program long enough ago? Counts this one.
    pub fn is_due(&mut self, program: ProgramId, now: Duration) -> bool {
        self.last.retain(|(_, at)| now.saturating_sub(*at) < AGAIN);
        let is_due = self.going.len() < MOST
            && self.last.len() < MOST_REMEMBERED
            && !self.last.iter().any(|(id, _)| *id == program);
        self.last.extend(is_due.then_some((program, now)));
        is_due
    }

    /// Begins to read for a launch.
    ///
    /// # Errors
    /// The kernel's answer if there is no descriptor or thread for it.
    pub fn begin(
        &mut self,
        scheduler: &Scheduler,
        cold: Cold,
        requests: Vec<ReadRequest>,
        now: Duration,
    ) -> io::Result<()> {
        let fetch = scheduler.start(requests, Priority::AtExec)?;
        self.going.push(Going { fetch, cold, began: now });
        Ok(())
    }

    /// A process ended: nobody waits for its files.
    pub fn ended(&mut self, pid: u32) {
        self.going.iter().filter(|going| going.cold.pid == pid).for_each(|going| going.fetch.stop());
    }

    /// Those that are over by now.
    pub fn poll(&mut self, now: Duration) -> Vec<Over> {
        let is_late = |going: &&Going| now.saturating_sub(going.cold.executed) > LONGEST;
        self.going.iter().filter(is_late).for_each(|going| going.fetch.stop());
        let all = std::mem::take(&mut self.going);
        let (over, going) = all.into_iter().partition::<Vec<_>, _>(|going| going.fetch.is_over());
        self.going = going;
        over.into_iter().map(|going| going.over(now)).collect()
    }

    /// Is something under way?
    pub fn is_busy(&self) -> bool {
        !self.going.is_empty()
    }
}

impl Going {
    fn over(self, now: Duration) -> Over {
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
        Over { program: cold.program, notice: (bytes > 0).then_some(notice), report }
    }
}
