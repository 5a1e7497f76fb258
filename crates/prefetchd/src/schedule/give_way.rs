//! Whether reading ahead goes on: others come first.
//!
//! The signals are others' own I/O on the disk and memory. Not the pressure of `/proc/pressure/io`: one busy reader, which may be
//! this one, drives that up.

use std::collections::VecDeque;
use std::time::Duration;

use super::limits::Limits;
use super::others_io::Did;
use crate::read::Ended;
use eke_prefetch_model::cost::DiskCost;

/// Samples of this window count together: one request of others is not yet a need; two are, or one with another under way.
const WINDOW: Duration = Duration::from_millis(100);
/// Others who take this share of the disk's time need it.
const NEED: f64 = 0.1;
const NEED_REQUESTS: u64 = 2;
/// What others bring back within the window while the kernel takes file pages away: what we bring in pushes out what they use.
const HARM_BYTES: u64 = 256 << 10;

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// When, since any fixed time.
    pub at: Duration,
    /// What others did on the disk since the sample before.
    pub others: Did,
    /// Available memory.
    pub available_bytes: u64,
    /// Of files' pages, what others brought back since the sample before, soon after it was taken away (workingset_refault_file
    /// without ours).
    pub refaulted_bytes: u64,
    /// What the kernel took away since the sample before (pgsteal).
    pub reclaimed_bytes: u64,
}

/// Why it waits or stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Others use the disk.
    Disk,
    /// Less memory is available than is to be left.
    Memory,
    /// What was brought in pushes out what others use.
    Harm,
    /// Others used the disk, or memory was short, for longer than anything is waited for.
    Patience,
}

impl From<Cause> for Ended {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Harm => Self::Harm,
            Cause::Disk | Cause::Memory | Cause::Patience => Self::Patience,
        }
    }
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Read.
    Go,
    /// Read nothing for now.
    Wait(Cause),
    /// Read nothing any more.
    Stop(Cause),
}

/// Decides sample by sample.
#[derive(Debug, Clone)]
pub struct GiveWay {
    limits: Limits,
    cost: DiskCost,
    recent: VecDeque<Sample>,
    /// Since when nothing was in the way; `None` while something is.
    quiet_since: Option<Duration>,
    waiting: Option<Cause>,
    waited: Duration,
    before: Duration,
}

impl GiveWay {
    /// Begins at a time at which nothing is known: it goes on until something is in the way.
    pub fn new(limits: Limits, cost: DiskCost, at: Duration) -> Self {
        Self {
            limits,
            cost,
            recent: VecDeque::new(),
            quiet_since: Some(at),
            waiting: None,
            waited: Duration::ZERO,
            before: at,
        }
    }

    /// What to do after this sample.
    pub fn sample(&mut self, sample: Sample) -> Verdict {
        self.after(sample, false)
    }

    /// Others did something of late, and yet too little: is it little because we are in their way? Then it is to be listened for a
    /// moment, with nothing of ours under way.
    pub fn is_unsure(&self) -> bool {
        self.waiting.is_none() && self.recent.iter().any(|sample| sample.others.requests > 0)
    }

    /// What to do after a sample that ends such a moment.
    pub fn listened(&mut self, sample: Sample) -> Verdict {
        self.after(sample, true)
    }

    fn after(&mut self, sample: Sample, alone: bool) -> Verdict {
        let since = sample.at.saturating_sub(self.before);
        self.before = sample.at;
        self.recent.push_back(sample);
        self.recent.retain(|old| sample.at.saturating_sub(old.at) < WINDOW);
        if self.waiting.is_some() {
            self.waited += since;
        }
        if self.harms() {
            return Verdict::Stop(Cause::Harm);
        }
        match self.in_the_way(&sample, since, alone) {
            Some(cause) => self.wait(cause),
            None => self.go_on(sample.at),
        }
    }

    fn wait(&mut self, cause: Cause) -> Verdict {
        self.quiet_since = None;
        // Short memory has pages dropped that were brought: who waited for that begins anew.
        let cause = if self.waiting == Some(Cause::Memory) { Cause::Memory } else { cause };
        self.waiting = Some(cause);
        self.patient(cause)
    }

    fn go_on(&mut self, at: Duration) -> Verdict {
        let since = *self.quiet_since.get_or_insert(at);
        match self.waiting {
            Some(cause) if at.saturating_sub(since) < self.limits.quiet => self.patient(cause),
            _ => {
                self.waiting = None;
                Verdict::Go
            }
        }
    }

    fn patient(&self, cause: Cause) -> Verdict {
        if self.waited > self.limits.longest_wait {
            Verdict::Stop(Cause::Patience)
        } else {
            Verdict::Wait(cause)
        }
    }

    fn in_the_way(&self, sample: &Sample, since: Duration, alone: bool) -> Option<Cause> {
        if sample.available_bytes < self.limits.reserve_bytes {
            return Some(Cause::Memory);
        }
        let share = |requests, bytes, span: Duration| {
            self.cost.seconds(requests, bytes) / span.as_secs_f64().max(1e-3)
        };
        if alone
            && sample.others.requests > 0
            && share(sample.others.requests, sample.others.bytes, since) >= NEED
        {
            return Some(Cause::Disk);
        }
        let all = self.recent.iter().map(|sample| sample.others);
        let (requests, bytes) = all.fold((0, 0), |(r, b), did| (r + did.requests, b + did.bytes));
        let share = share(requests, bytes, self.span().max(since));
        let waits = sample.others.in_flight > 0 && (requests > 0 || self.waiting.is_some());
        (requests >= NEED_REQUESTS && share >= NEED || waits).then_some(Cause::Disk)
    }

    /// What the samples in the window stand for: from the sample before the first.
    fn span(&self) -> Duration {
        let first = self.recent.front().map_or(self.before, |sample| sample.at);
        let steps = self.recent.len().saturating_sub(1).max(1) as u32;
        let between = self.before.saturating_sub(first);
        between + between / steps
    }

    fn harms(&self) -> bool {
        let refaulted: u64 = self.recent.iter().map(|sample| sample.refaulted_bytes).sum();
        let reclaimed: u64 = self.recent.iter().map(|sample| sample.reclaimed_bytes).sum();
        reclaimed > 0 && refaulted >= HARM_BYTES
    }
}

#[cfg(test)]
#[path = "give_way_tests.rs"]
mod tests;
