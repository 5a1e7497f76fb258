//! The next change of one disk's governor. Pure.

use std::collections::{BTreeSet, VecDeque};

use eke_model::units::{Bytes, Nanos};

use super::observe::{Observation, Quality};
use super::rules::Rules;
use super::throughput::{Retention, Throughput};
use super::tuned_knob::TunedKnob;

/// The kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// Reads starve.
    Lower,
    /// Reads have met the target for long, or nobody has read for long.
    Raise,
    /// It had no effect, it cost the disk too much of its throughput, or reads got worse after a raise.
    TakeBack,
    /// No knob had an effect: undo the last changes and pause.
    GiveUp,
}

/// A change to be made: at most one per window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The index of the knob.
    pub knob: usize,
    /// Its new value.
    pub value: u64,
    /// Its kind.
    pub kind: ChangeKind,
    /// The change and its reason, as a sentence with numbers.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq)]
enum Phase {
    /// Counts good and bad windows.
    Watching,
    /// Measures the effect of a change, without the first window.
    Judging(Box<Judging>),
    /// Changes nothing.
    Resting { until_s: f64 },
}

#[derive(Debug, Clone, PartialEq)]
struct Judging {
    before: Observation,
    moved_before: Throughput,
    from: u64,
    after: Observation,
    moved_after: Throughput,
    windows: u32,
}

/// The governor of one disk.
#[derive(Debug, Clone)]
pub struct Governor {
    rules: Rules,
    knobs: Vec<TunedKnob>,
    at: usize,
    phase: Phase,
    /// A window that is not long enough yet.
    pending: Observation,
    /// The last whole windows.
    recent: VecDeque<Observation>,
    bad: u32,
    good: u32,
    idle: u32,
    /// Good windows in a row before the next raise.
    good_row: u32,
    /// The value before the last raise, and the windows since.
    raised: Option<(u64, u32)>,
    without_effect: u32,
    /// The knob's value before the first of its last changes without effect.
    fruitless: Option<u64>,
    /// The knobs that have no further effect, until the next pause ends.
    exhausted: BTreeSet<usize>,
}

impl Governor {
    /// Starts with the knobs that it may change, in the order of trying.
    pub fn new(rules: Rules, knobs: Vec<TunedKnob>) -> Self {
        Self {
            rules,
            knobs,
            at: 0,
            phase: Phase::Watching,
            pending: Observation::default(),
            recent: VecDeque::new(),
            bad: 0,
            good: 0,
            idle: 0,
            good_row: rules.good_row,
            raised: None,
            without_effect: 0,
            fruitless: None,
            exhausted: BTreeSet::new(),
        }
    }

    /// The knobs that it may change.
    pub fn knobs(&self) -> &[TunedKnob] {
        &self.knobs
    }

    /// Its thresholds.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The end of its pause, by the clock of [`Governor::observe`]; `None`: it does not pause.
    pub fn rests_until_s(&self) -> Option<f64> {
        if let Phase::Resting { until_s } = self.phase { Some(until_s) } else { None }
    }

    /// Never changes this knob again: somebody else set it.
    pub fn give_up_knob(&mut self, knob: usize) {
        if let Some(knob) = self.knobs.get_mut(knob) {
            (knob.floor, knob.start) = (knob.now, knob.now);
        }
        self.phase = Phase::Watching;
        self.begin_anew();
        self.next_knob();
    }

    /// Adds the observation since the last call, at `now_s` of any monotonic clock. Returns a change, which counts as made.
    pub fn observe(&mut self, now_s: f64, latest: &Observation) -> Option<Change> {
        let window_s = self.knobs.get(self.at)?.window_s.max(self.rules.window_s);
        self.pending.add(latest);
        if !self.pending.is_whole(&self.rules, window_s) {
            return None;
        }
        let window = std::mem::take(&mut self.pending);
        let change = self.whole(now_s, &window)?;
        self.knobs.get_mut(change.knob)?.now = change.value;
        Some(change)
    }

    fn whole(&mut self, now_s: f64, window: &Observation) -> Option<Change> {
        match self.phase.clone() {
            Phase::Resting { until_s } if now_s < until_s => None,
            Phase::Resting { .. } => {
                self.recent.clear();
                self.exhausted.clear();
                self.phase = Phase::Watching;
                self.begin_anew();
                None
            }
            Phase::Watching => self.watch(window),
            Phase::Judging(judging) => self.judge(now_s, window, *judging),
        }
    }

    fn remember(&mut self, window: &Observation) {
        self.recent.push_back(*window);
        if self.recent.len() > self.rules.judged_by_at_most as usize {
            self.recent.pop_front();
        }
    }

    fn begin_anew(&mut self) {
        (self.bad, self.good, self.idle, self.raised) = (0, 0, 0, None);
    }

    fn watch(&mut self, window: &Observation) -> Option<Change> {
        let quality = window.quality(&self.rules);
        self.remember(window);
        // anything else breaks a row, also an unknown window
        self.bad = match quality {
            Quality::Bad if window.times_too_long(self.rules.target) >= self.rules.at_once => {
                self.rules.bad_row
            }
            Quality::Bad => self.bad + 1,
            _ => 0,
        };
        self.good = match quality {
            Quality::Good => self.good + 1,
            // no read contradicts it
            Quality::Idle => self.good,
            _ => 0,
        };
        self.idle = if quality == Quality::Idle { self.idle + 1 } else { 0 };
        if let Some(change) = self.raise_went_wrong(quality, window) {
            return Some(change);
        }
        if self.bad >= self.rules.bad_row && window.written_share() > self.rules.writers {
            return self.lower();
        }
        if self.good >= self.good_row {
            return self.raise();
        }
        if self.idle >= self.rules.idle_row { self.raise_for_writers() } else { None }
    }

    /// Bad windows soon after a raise are its fault. Undoes it; the next raise waits twice as long.
    fn raise_went_wrong(&mut self, quality: Quality, window: &Observation) -> Option<Change> {
        let (from, windows) = self.raised?;
        self.raised = (windows < self.rules.good_row).then_some((from, windows + 1));
        if quality != Quality::Bad {
            return None;
        }
        self.good_row = self.good_row.saturating_mul(2).min(self.rules.good_row * 128);
        self.begin_anew();
        let knob = self.knobs.get(self.at)?;
        let text = format!(
            "{} back from {} to {from}: {} right after the raise",
            knob.name,
            knob.now,
            self.reads(window)
        );
        Some(Change { knob: self.at, value: from, kind: ChangeKind::TakeBack, text })
    }

    fn lower(&mut self) -> Option<Change> {
        if !self.knobs.get(self.at)?.can_lower() {
            self.next_knob();
        }
        // more than the bad row: after the worst windows of many, the next are better by chance
        let mut before = Observation::default();
        self.recent.iter().rev().take(self.rules.judged_by as usize).for_each(|window| before.add(window));
        let knob = self.knobs.get(self.at)?;
        let value = knob.lower(before.times_too_long(self.rules.target))?;
        let text = format!(
            "{} from {} to {value}: {}, while {}/s are written",
            knob.name,
            knob.now,
            self.reads(&before),
            rate(before.written_per_s())
        );
        self.phase = Phase::Judging(Box::new(Judging {
            before,
            moved_before: self.recent.iter().map(|window| window.moved_per_s(self.rules.seek)).collect(),
            from: knob.now,
            after: Observation::default(),
            moved_after: Throughput::default(),
            windows: 0,
        }));
        self.begin_anew();
        Some(Change { knob: self.at, value, kind: ChangeKind::Lower, text })
    }

    fn raise(&mut self) -> Option<Change> {
        self.good = 0;
        let why =
            format!("reads have been answered within {} for {} windows", self.rules.target, self.good_row);
        let (from, change) = self.higher(&why)?;
        self.raised = Some((from, 0));
        Some(change)
    }

    /// Nobody reads, so nobody gains by writers that wait. Bad windows after it are the returning reader's, not the raise's.
    fn raise_for_writers(&mut self) -> Option<Change> {
        self.idle = 0;
        let idle_s = f64::from(self.rules.idle_row) * self.rules.longest_s;
        self.higher(&format!("nobody has read for {idle_s:.0} s")).map(|(_, change)| change)
    }

    /// The next higher value, with the present one.
    fn higher(&mut self, why: &str) -> Option<(u64, Change)> {
        // raise the knob first that was lowered last
        let at = (0..=self.at).rev().find(|at| self.knobs[*at].higher().is_some())?;
        self.at = at;
        let knob = &self.knobs[at];
        let (from, value) = (knob.now, knob.higher()?);
        let text = format!("{} from {from} to {value}: {why}", knob.name);
        if value == knob.start {
            self.good_row = self.rules.good_row;
        }
        Some((from, Change { knob: at, value, kind: ChangeKind::Raise, text }))
    }

    fn judge(&mut self, now_s: f64, window: &Observation, mut judging: Judging) -> Option<Change> {
        if judging.windows > 0 {
            judging.after.add(window);
            judging.moved_after.push(window.moved_per_s(self.rules.seek));
            self.remember(window);
        }
        let kept = judging.moved_after.keep(self.rules.keep, &judging.moved_before);
        let is_unsure = kept == Retention::Unsure && judging.windows < self.rules.judged_by_at_most;
        if judging.windows < self.rules.judged_by || is_unsure {
            judging.windows += 1;
            self.phase = Phase::Judging(Box::new(judging));
            return None;
        }
        self.phase = Phase::Watching;
        self.begin_anew();
        if kept != Retention::Enough {
            return self.take_back(&judging);
        }
        let Judging { before, from, after, .. } = judging;
        if self.has_gained(&before, &after) {
            (self.without_effect, self.fruitless) = (0, None);
            return None;
        }
        self.without_effect += 1;
        self.fruitless = self.fruitless.or(Some(from));
        let is_at_floor = !self.knobs.get(self.at)?.can_lower();
        let is_exhausted = is_at_floor || self.without_effect >= self.rules.without_effect;
        if is_exhausted { self.undo_fruitless(now_s, &before, &after) } else { None }
    }

    fn has_gained(&self, before: &Observation, after: &Observation) -> bool {
        let less =
            |a: Option<f64>, b: Option<f64>| a.zip(b).is_some_and(|(a, b)| b <= a * (1.0 - self.rules.gain));
        // if no read completed before, every completion is a gain; if none completes now, the effect is unknown
        let answered = before.reads.is_empty() && !after.reads.is_empty();
        let target = self.rules.target;
        // a shorter tail while more reads miss is chance
        let as_many = after.missed(target) <= before.missed(target);
        answered
            || less(before.missed(target), after.missed(target))
            || (as_many && less(before.p99_ns(), after.p99_ns()))
    }

    fn take_back(&mut self, judging: &Judging) -> Option<Change> {
        let keep = 100.0 * self.rules.keep;
        let (at, from) = (self.at, judging.from);
        let knob = self.knobs.get_mut(at)?;
        let text = format!(
            "{} back from {} to {from}: {}/s are read and written beside seeks, less than {keep:.0} % of the {}/s before",
            knob.name,
            knob.now,
            rate(judging.moved_after.mean()),
            rate(judging.moved_before.mean())
        );
        // a lower value costs too much
        knob.floor = from;
        self.next_knob();
        Some(Change { knob: at, value: from, kind: ChangeKind::TakeBack, text })
    }

    /// Restores the knob's last value that helped, and goes on with the next knob; after the last one, pauses.
    fn undo_fruitless(&mut self, now_s: f64, before: &Observation, after: &Observation) -> Option<Change> {
        let (at, value) = (self.at, self.fruitless.take()?);
        let knob = self.knobs.get_mut(at)?;
        let (name, from) = (knob.name, knob.now);
        knob.now = value;
        self.exhausted.insert(at);
        self.next_knob();
        let reads = format!("reads are no better ({}; before, {})", self.reads(after), self.reads(before));
        let change = |kind, text| Change { knob: at, value, kind, text };
        if self.at != at {
            return Some(change(
                ChangeKind::TakeBack,
                format!("{name} back from {from} to {value}: {reads}"),
            ));
        }
        self.phase = Phase::Resting { until_s: now_s + self.rules.give_up_s };
        let pause_min = self.rules.give_up_s / 60.0;
        let text =
            format!("{name} back from {from} to {value}, and a pause of {pause_min:.0} minutes: {reads}");
        Some(change(ChangeKind::GiveUp, text))
    }

    /// Goes on with the next knob that can be lowered and has not shown that it does not help, if there is one.
    fn next_knob(&mut self) {
        (self.without_effect, self.fruitless) = (0, None);
        let count = self.knobs.len();
        let mut others = (1..count).map(|i| (self.at + i) % count);
        let is_open = |at: &usize| !self.exhausted.contains(at) && self.knobs[*at].can_lower();
        if let Some(at) = others.find(is_open) {
            self.at = at;
        }
    }

    fn reads(&self, of: &Observation) -> String {
        match (of.missed(self.rules.target), of.p99_ns()) {
            (Some(missed), Some(p99)) => format!(
                "{:.0} % of reads took longer than {} (99 of 100 within {})",
                100.0 * missed,
                self.rules.target,
                Nanos(p99 as u64)
            ),
            _ => format!("reads wait and none was answered in {:.1} s", of.seconds),
        }
    }
}

fn rate(bytes_per_s: f64) -> Bytes {
    Bytes(bytes_per_s as u64)
}

#[cfg(test)]
mod tests;
