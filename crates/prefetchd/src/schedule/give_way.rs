//! Whether reading ahead continues: others come first.
//!
//! The signals are others' I/O on the disk, and memory. `/proc/pressure/io` does not serve: a single busy reader raises it, and that may be ours.

use std::collections::VecDeque;
use std::time::Duration;

use super::limits::Limits;
use super::others_io::OthersIo;
use crate::read::FetchEnd;
use eke_prefetch_model::cost::DiskCost;

/// The window of samples. One request of others in it does not count as need; two do, or one with another in flight.
const WINDOW: Duration = Duration::from_millis(100);
/// OthersTracker need the disk if they use this share of its time.
const NEED: f64 = 0.1;
const NEED_REQUESTS: u64 = 2;
/// Refaults of others within the window, while the kernel reclaims file pages, that show harm: our pages evict theirs.
const HARM_BYTES: u64 = 256 << 10;
/// Harm ends reading while less than this many times the reserve is available, and else makes it wait.
const AMPLE: u64 = 2;

/// One sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sample {
    /// The time of the sample, from any fixed start.
    pub at: Duration,
    /// OthersTracker' I/O since the previous sample.
    pub others: OthersIo,
    /// Available memory.
    pub available_bytes: u64,
    /// Bytes of file pages in use that others refaulted since the previous sample (workingset_activate_file, without ours).
    pub refaulted_bytes: u64,
    /// Bytes that the kernel reclaimed since the previous sample (pgsteal).
    pub reclaimed_bytes: u64,
}

/// Why reading waits or stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// OthersTracker use the disk.
    Disk,
    /// Available memory is below the reserve.
    Memory,
    /// Our pages, or another reader's, evict pages that others use.
    Harm,
    /// The disk was busy, or memory was short, for too long.
    Patience,
}

impl From<Cause> for FetchEnd {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Harm => Self::Harm,
            Cause::Disk | Cause::Memory | Cause::Patience => Self::Patience,
        }
    }
}

/// The decision for the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateDecision {
    /// Read.
    Go,
    /// Pause.
    Wait(Cause),
    /// End the fetch.
    Stop(Cause),
}

/// Decides sample by sample.
#[derive(Debug, Clone)]
pub struct GiveWay {
    limits: Limits,
    cost: DiskCost,
    recent: VecDeque<Sample>,
    /// Start of the current quiet time; `None` while others need the disk or memory.
    quiet_since: Option<Duration>,
    waiting: Option<Cause>,
    waited: Duration,
    before: Duration,
}

impl GiveWay {
    /// Starts at `at` in the quiet state.
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

    /// Decides after a sample.
    pub fn sample(&mut self, sample: Sample) -> GateDecision {
        self.after(sample, false)
    }

    /// Whether others' I/O is low perhaps only because ours slows it. Then observe for a moment without our reads.
    pub fn is_unsure(&self) -> bool {
        self.waiting.is_none() && self.recent.iter().any(|sample| sample.others.requests > 0)
    }

    /// Decides after a sample without our reads.
    pub fn sample_alone(&mut self, sample: Sample) -> GateDecision {
        self.after(sample, true)
    }

    fn after(&mut self, sample: Sample, alone: bool) -> GateDecision {
        let since = sample.at.saturating_sub(self.before);
        self.before = sample.at;
        self.recent.push_back(sample);
        self.recent.retain(|old| sample.at.saturating_sub(old.at) < WINDOW);
        if self.waiting.is_some() {
            self.waited += since;
        }
        if self.harms() && !self.is_ample(&sample) {
            return GateDecision::Stop(Cause::Harm);
        }
        match self.in_the_way(&sample, since, alone) {
            Some(cause) => self.wait(cause),
            None => self.go_on(sample.at),
        }
    }

    fn wait(&mut self, cause: Cause) -> GateDecision {
        self.quiet_since = None;
        // Short memory evicts pages that were read, so waiting for memory leads to a restart even if the disk is busy too.
        let cause = if self.waiting == Some(Cause::Memory) { Cause::Memory } else { cause };
        self.waiting = Some(cause);
        self.patient(cause)
    }

    fn go_on(&mut self, at: Duration) -> GateDecision {
        let since = *self.quiet_since.get_or_insert(at);
        match self.waiting {
            Some(cause) if at.saturating_sub(since) < self.limits.quiet => self.patient(cause),
            _ => {
                self.waiting = None;
                GateDecision::Go
            }
        }
    }

    fn patient(&self, cause: Cause) -> GateDecision {
        if self.waited > self.limits.longest_wait {
            GateDecision::Stop(Cause::Patience)
        } else {
            GateDecision::Wait(cause)
        }
    }

    fn in_the_way(&self, sample: &Sample, since: Duration, alone: bool) -> Option<Cause> {
        if sample.available_bytes < self.limits.reserve_bytes {
            return Some(Cause::Memory);
        }
        if self.harms() {
            return Some(Cause::Harm);
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

    /// The time that the window's samples cover, from the sample before the first.
    fn span(&self) -> Duration {
        let first = self.recent.front().map_or(self.before, |sample| sample.at);
        let steps = self.recent.len().saturating_sub(1).max(1) as u32;
        let between = self.before.saturating_sub(first);
        between + between / steps
    }

    /// With this much memory, what is evicted may be another reader's doing: waiting shows it.
    fn is_ample(&self, sample: &Sample) -> bool {
        sample.available_bytes >= self.limits.reserve_bytes.saturating_mul(AMPLE)
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
