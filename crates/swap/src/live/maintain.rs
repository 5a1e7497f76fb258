//! What to recompress or write back and when; pure, with its state as data.
//!
//! A cycle marks idle pages, recompresses them, and writes back those that still do not compress:
//!
//! ```text
//! resting ──> mark ──(kernels that mark by age)────────> working: huge_idle, idle recompressed;
//!    ^          └──(those that mark only "all")─> aging ──^       huge_idle, huge written back
//!    └────────────────────────────────────────────────────────────┘
//! ```
//!
//! If pages must age, a device above 85 % fill first writes back incompressible pages, marked or not.
//!
//! One round at a time, 30 s apart; a kind is repeated while it frees or writes something. The gate ([`super::gate`]) must have been open for 30 s.
//! While it is closed nothing happens, and marks stay.

use std::collections::VecDeque;

use eke_model::units::Bytes;

use super::act::ActionOutcome;
use super::action::{Action, Age, PageKind};
use super::facts::{Device, Facts, MachineLoad};
use super::gate;
use super::grow::FULL;
use super::ledger::Ledger;

/// The pause between two rounds.
pub const BACKOFF_MS: u64 = 30_000;
/// The pause between two cycles.
pub const REST_MS: u64 = 600_000;
/// The size of a round: 2 to 128 MiB, in units of [`super::ledger::UNIT`].
pub const ROUND_UNITS: std::ops::RangeInclusive<u64> = 512..=32_768;
/// A round blocks the agent. After a longer one the size is halved, after one of less than half this time it is doubled.
const ROUND_MS: u64 = 1_000;
/// The most rounds of one kind in a cycle: swapping meanwhile can make every round seem useful.
const ROUNDS_OF_A_KIND: u32 = 64;
/// A page is idle after this time; less available memory shortens it.
const IDLE_S: std::ops::RangeInclusive<f64> = 120.0..=86_400.0;

/// The time of the tick (monotonic) and of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds.
    pub ms: u64,
    /// Days since 1970.
    pub day: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Recompress(PageKind, u32),
    WriteBack(PageKind),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Task {
    device: String,
    work: Work,
    rounds: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Resting { until_ms: u64 },
    Aging { until_ms: u64 },
    Working(VecDeque<Task>),
}

/// The state of maintenance in its cycle. The default may begin a cycle.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    phase: Phase,
    next_round_ms: u64,
    calm_since_ms: Option<u64>,
    round_units: u64,
    only_marks_all: bool,
    was_urgent: bool,
    unsupported: Vec<(String, Work)>,
    freed: Bytes,
    written: Bytes,
}

impl Default for State {
    fn default() -> Self {
        Self {
            phase: Phase::Resting { until_ms: 0 },
            next_round_ms: 0,
            calm_since_ms: None,
            round_units: *ROUND_UNITS.start(),
            only_marks_all: false,
            was_urgent: false,
            unsupported: Vec::new(),
            freed: Bytes(0),
            written: Bytes(0),
        }
    }
}

/// What to do, in order, and the state after it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// At most one round, or the marks that begin a cycle.
    pub actions: Vec<Action>,
    /// A message at the end of a useful cycle.
    pub message: Option<String>,
    /// The state for the next decision.
    pub state: State,
}

/// Decides. Pure: the same arguments give the same decision.
pub fn decide(facts: &Facts, load: &MachineLoad, ledger: &Ledger, state: &State, now: Now) -> Decision {
    let mut state = state.clone();
    if gate::closed_by(facts, load).is_some() {
        state.calm_since_ms = None;
        return Decision { state, ..Decision::default() };
    }
    let calm_since_ms = *state.calm_since_ms.get_or_insert(now.ms);
    if now.ms.saturating_sub(calm_since_ms) < gate::CALM_MS || now.ms < state.next_round_ms {
        return Decision { state, ..Decision::default() };
    }
    let left_units = ledger.left_units(now.day, facts.writeback_a_day);
    let actions = state.advance(facts, load, left_units, now.ms);
    let message = state.end_of_cycle(now.ms);
    Decision { actions, message, state }
}

impl State {
    /// Does a cycle run that may still free memory?
    pub fn is_busy(&self) -> bool {
        matches!(self.phase, Phase::Working(_))
    }

    fn advance(&mut self, facts: &Facts, load: &MachineLoad, left_units: u64, now_ms: u64) -> Vec<Action> {
        match &self.phase {
            Phase::Resting { until_ms } | Phase::Aging { until_ms } if now_ms < *until_ms => Vec::new(),
            Phase::Resting { .. } => self.begin(facts, load, left_units, now_ms),
            Phase::Aging { .. } => {
                self.phase = Phase::Working(self.tasks(facts));
                self.round(facts, left_units, now_ms)
            }
            Phase::Working(_) => self.round(facts, left_units, now_ms),
        }
    }

    /// Begins a cycle. If pages must age first, a nearly full device cannot wait: its incompressible pages are written back now, and a cycle with marks
    /// follows.
    fn begin(&mut self, facts: &Facts, load: &MachineLoad, left_units: u64, now_ms: u64) -> Vec<Action> {
        let urgent = self.urgent(facts);
        self.was_urgent = self.only_marks_all && !self.was_urgent && !urgent.is_empty();
        if self.was_urgent {
            self.phase = Phase::Working(urgent);
            return self.round(facts, left_units, now_ms);
        }
        self.mark(facts, idle_age_s(load), now_ms)
    }

    fn urgent(&self, facts: &Facts) -> VecDeque<Task> {
        let full =
            |t: &Task| facts.devices.iter().any(|d| d.name == t.device && d.huge_pages > 0 && fill(d) > FULL);
        self.tasks(facts)
            .into_iter()
            .filter(|t| t.work == Work::WriteBack(PageKind::Huge) && full(t))
            .collect()
    }

    fn mark(&mut self, facts: &Facts, age_s: u64, now_ms: u64) -> Vec<Action> {
        let tasks = self.tasks(facts);
        let marked = |d: &&Device| d.idle && tasks.iter().any(|t| t.device == d.name);
        let age = if self.only_marks_all { Age::All } else { Age::Seconds(age_s) };
        let marks = facts
            .devices
            .iter()
            .filter(marked)
            .map(|d| Action::MarkIdle { device: d.name.clone(), age })
            .collect();
        self.phase = match age {
            _ if tasks.is_empty() => Phase::Resting { until_ms: now_ms + REST_MS },
            Age::All => Phase::Aging { until_ms: now_ms + age_s * 1_000 },
            Age::Seconds(_) => Phase::Working(tasks),
        };
        marks
    }

    /// All tasks that the devices and settings allow, in order. Recompression frees memory without wear, so it comes first.
    fn tasks(&self, facts: &Facts) -> VecDeque<Task> {
        let own = || facts.devices.iter().filter(|d| d.own);
        let recompress = own().filter(|_| facts.recompress).flat_map(|d| {
            let kinds = if d.idle { &[PageKind::HugeIdle, PageKind::Idle][..] } else { &[] };
            kinds
                .iter()
                .flat_map(move |k| d.recompress_priorities.iter().map(move |p| (d, Work::Recompress(*k, *p))))
        });
        let write_back = own().filter(|d| d.writeback && facts.writeback_a_day.0 > 0).flat_map(|d| {
            let kinds = if d.idle { &[PageKind::HugeIdle, PageKind::Huge][..] } else { &[PageKind::Huge] };
            kinds.iter().map(move |k| (d, Work::WriteBack(*k)))
        });
        let all =
            recompress.chain(write_back).map(|(d, work)| Task { device: d.name.clone(), work, rounds: 0 });
        all.filter(|t| !self.unsupported.contains(&(t.device.clone(), t.work))).collect()
    }

    /// The next useful round; without one the cycle ends.
    fn round(&mut self, facts: &Facts, left_units: u64, now_ms: u64) -> Vec<Action> {
        let Phase::Working(tasks) = &mut self.phase else { return Vec::new() };
        while let Some(task) = tasks.front_mut() {
            let device = facts.devices.iter().find(|d| d.name == task.device);
            if let Some(action) =
                device.and_then(|d| action(facts, d, task.work, self.round_units, left_units))
            {
                task.rounds += 1;
                self.next_round_ms = now_ms + BACKOFF_MS;
                return vec![action];
            }
            tasks.pop_front();
        }
        Vec::new()
    }

    /// Notes the outcome of an action; returns a message at the end of a useful cycle.
    pub fn note(&mut self, action: &Action, outcome: &ActionOutcome, now_ms: u64) -> Option<String> {
        match (action, outcome) {
            (Action::MarkIdle { age: Age::Seconds(_), .. }, ActionOutcome::Unsupported) => {
                self.only_marks_all = true;
                self.phase = Phase::Resting { until_ms: now_ms };
            }
            (Action::MarkIdle { .. }, ActionOutcome::Done { .. }) => {}
            (Action::MarkIdle { .. }, _) => self.phase = Phase::Resting { until_ms: now_ms + REST_MS },
            _ => self.note_round(outcome),
        }
        self.end_of_cycle(now_ms)
    }

    fn note_round(&mut self, outcome: &ActionOutcome) {
        let Phase::Working(tasks) = &mut self.phase else { return };
        let worn_out = tasks.front().is_some_and(|t| t.rounds >= ROUNDS_OF_A_KIND);
        match outcome {
            ActionOutcome::Done { freed, written, took_ms } => {
                self.freed = self.freed + *freed;
                self.written = self.written + *written;
                self.round_units = paced(self.round_units, *took_ms);
                if worn_out || freed.0 + written.0 == 0 {
                    tasks.pop_front();
                }
            }
            ActionOutcome::Later if !worn_out => {}
            ActionOutcome::Later => drop(tasks.pop_front()),
            ActionOutcome::Unsupported => {
                self.unsupported.extend(tasks.pop_front().map(|t| (t.device, t.work)))
            }
            ActionOutcome::Failed(_) => {
                let failed = tasks.pop_front().map(|t| t.device);
                tasks.retain(|t| Some(&t.device) != failed.as_ref());
            }
        }
    }

    fn end_of_cycle(&mut self, now_ms: u64) -> Option<String> {
        if !matches!(&self.phase, Phase::Working(tasks) if tasks.is_empty()) {
            return None;
        }
        let rest_ms = if self.was_urgent { 0 } else { REST_MS };
        self.phase = Phase::Resting { until_ms: now_ms + rest_ms };
        let (freed, written) = (std::mem::take(&mut self.freed), std::mem::take(&mut self.written));
        (freed.0 + written.0 > 0).then(|| {
            format!("Maintenance of the compressed swap freed {freed} of memory; {written} went to the writeback device.")
        })
    }
}

/// The next round of `work`; `None` if it would be useless or is not allowed.
fn action(facts: &Facts, device: &Device, work: Work, round_units: u64, left_units: u64) -> Option<Action> {
    let units = round_units.min(most_units(device));
    let page_units = facts.page_units.max(1);
    let name = device.name.clone();
    match work {
        Work::Recompress(PageKind::HugeIdle | PageKind::Huge, _) | Work::WriteBack(_)
            if device.huge_pages == 0 =>
        {
            None
        }
        Work::Recompress(kind, priority) => {
            Some(Action::Recompress { device: name, kind, priority, max_pages: units / page_units })
        }
        // pages in use are loaded from a disk at its speed: only if the space is needed
        Work::WriteBack(PageKind::Huge) if fill(device) <= FULL => None,
        Work::WriteBack(kind) => {
            // The kernel counts whole pages down and stops at exactly 0: any other limit wraps and is none.
            let limit_units = units.min(left_units) / page_units * page_units;
            (limit_units > 0).then_some(Action::WriteBack { device: name, kind, limit_units })
        }
    }
}

fn fill(device: &Device) -> f64 {
    if device.size.0 > 0 { device.used.0 as f64 / device.size.0 as f64 } else { 0.0 }
}

/// The largest round, which grows with the device's fill.
pub(super) fn most_units(device: &Device) -> u64 {
    let (least, most) = (*ROUND_UNITS.start(), *ROUND_UNITS.end());
    least + ((most - least) as f64 * fill(device).clamp(0.0, 1.0)) as u64
}

pub(super) fn paced(units: u64, took_ms: u64) -> u64 {
    let next = match took_ms {
        ms if ms > ROUND_MS => units / 2,
        ms if ms < ROUND_MS / 2 => units * 2,
        _ => units,
    };
    next.clamp(*ROUND_UNITS.start(), *ROUND_UNITS.end())
}

/// ChromeOS' curve (zram_idle.cc): a day with all memory available, two minutes with none, exponential in between.
fn idle_age_s(load: &MachineLoad) -> u64 {
    let in_use = 1.0 - load.available_share.clamp(0.0, 1.0);
    let (least, most) = (*IDLE_S.start(), *IDLE_S.end());
    ((most - least) * (-5.0 * in_use).exp() + least) as u64
}

#[cfg(test)]
mod tests;
