//! The next change of one disk's governor. Pure.
//!
//! - [`watching`]: counts good and bad windows, lowers and raises; [`judging`]: measures the effect of a change

mod judging;
mod watching;

use std::collections::{BTreeSet, VecDeque};

use eke_model::units::{Bytes, Nanos};

use super::observe::Observation;
use super::rules::Rules;
use super::tuned_knob::TunedKnob;
use judging::{Fruitless, Judging};
use watching::Raised;

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
    /// Lowers nothing.
    Resting { until_s: f64 },
}

/// The governor of one disk.
#[derive(Debug, Clone)]
pub struct Governor {
    rules: Rules,
    knobs: Vec<TunedKnob>,
    /// The knobs' floors at the start; a change that costs too much raises one until the next pause ends.
    floors: Vec<u64>,
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
    raised: Option<Raised>,
    fruitless: Option<Fruitless>,
    /// The knobs that have no further effect, until the next pause ends.
    exhausted: BTreeSet<usize>,
}

impl Governor {
    /// Starts with the knobs that it may change, in the order of trying.
    pub fn new(rules: Rules, knobs: Vec<TunedKnob>) -> Self {
        Self {
            rules,
            floors: knobs.iter().map(|knob| knob.floor).collect(),
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
    pub fn give_up_knob(&mut self, at: usize) {
        if let Some(now) = self.knobs.get(at).map(|knob| knob.now) {
            self.start_knob_at(at, now);
            (self.knobs[at].floor, self.floors[at]) = (now, now);
        }
        self.next_knob();
    }

    /// Takes a value that somebody set before the first change for the knob's start.
    pub fn start_knob_at(&mut self, at: usize, value: u64) {
        let Some(knob) = self.knobs.get_mut(at) else { return };
        (knob.start, knob.now, knob.floor) = (value, value, knob.floor.min(value));
        self.floors[at] = self.floors[at].min(value);
        self.fruitless = None;
        self.phase = Phase::Watching;
        self.begin_anew();
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
        let knob = self.knobs.get_mut(change.knob)?;
        let value = change.value.max(knob.floor).min(knob.start);
        let is_new = value != knob.now;
        knob.now = value;
        is_new.then_some(Change { value, ..change })
    }

    fn whole(&mut self, now_s: f64, window: &Observation) -> Option<Change> {
        match self.phase.clone() {
            Phase::Resting { until_s } if now_s >= until_s => {
                self.end_rest();
                None
            }
            Phase::Resting { .. } | Phase::Watching => self.watch(now_s, window),
            Phase::Judging(judging) => self.judge(now_s, window, *judging),
        }
    }

    fn end_rest(&mut self) {
        self.recent.clear();
        self.exhausted.clear();
        self.knobs.iter_mut().zip(&self.floors).for_each(|(knob, floor)| knob.floor = *floor);
        self.phase = Phase::Watching;
        self.begin_anew();
    }

    fn rest(&mut self, now_s: f64) {
        self.phase = Phase::Resting { until_s: now_s + self.rules.give_up_s };
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

    /// Can it be lowered, and has not shown that this does not help?
    fn is_open(&self, at: usize) -> bool {
        !self.exhausted.contains(&at) && self.knobs.get(at).is_some_and(TunedKnob::can_lower)
    }

    /// Goes on with the next open knob, if there is one.
    fn next_knob(&mut self) {
        self.fruitless = None;
        let count = self.knobs.len();
        let mut others = (1..count).map(|i| (self.at + i) % count);
        if let Some(at) = others.find(|at| self.is_open(*at)) {
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
