//! Measures the effect of a change, and takes it back if it had none or cost too much.

use super::{Change, ChangeKind, Governor, Phase, rate};
use crate::governor::observe::Observation;
use crate::governor::rules::Rules;
use crate::governor::throughput::{Retention, Throughput};

/// A change under judgement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judging {
    knob: usize,
    from: u64,
    before: Observation,
    moved_before: Throughput,
    /// Windows with less written per second have no writers, and tell nothing of the change.
    least_per_s: f64,
    after: Observation,
    moved_after: Throughput,
    windows: u32,
}

/// A knob's last changes without effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fruitless {
    knob: usize,
    /// Its value before the first of them.
    from: u64,
    changes: u32,
}

impl Judging {
    pub(super) fn new(
        knob: usize,
        from: u64,
        before: Observation,
        moved_before: Throughput,
        least_per_s: f64,
    ) -> Self {
        let (after, moved_after) = (Observation::default(), Throughput::default());
        Self { knob, from, before, moved_before, least_per_s, after, moved_after, windows: 0 }
    }

    /// Adds a window, except the first after the change.
    fn add(&mut self, window: &Observation, rules: &Rules) {
        self.windows += 1;
        if self.windows > 1 && window.has_writers(self.least_per_s) {
            self.after.add(window);
            self.moved_after.push(window.moved_per_s(rules.seek));
        }
    }

    /// Whether the disk keeps its throughput; `None`: more windows are needed. If the writer has ended, nothing says that it lost any.
    fn kept(&self, rules: &Rules) -> Option<Retention> {
        let is_last = self.windows > rules.judged_by_at_most;
        if self.moved_after.windows() < rules.judged_by as usize {
            return is_last.then_some(Retention::Enough);
        }
        let kept = self.moved_after.keep(rules.keep, &self.moved_before);
        (kept != Retention::Unsure || is_last).then_some(kept)
    }
}

impl Governor {
    pub(super) fn judge(&mut self, now_s: f64, window: &Observation, mut judging: Judging) -> Option<Change> {
        if judging.windows > 0 {
            self.remember(window);
        }
        judging.add(window, &self.rules);
        let Some(kept) = judging.kept(&self.rules) else {
            self.phase = Phase::Judging(Box::new(judging));
            return None;
        };
        self.phase = Phase::Watching;
        self.begin_anew();
        if kept != Retention::Enough {
            return self.take_back(&judging);
        }
        if judging.after.reads.is_empty() && !judging.after.waits {
            // nobody read, so the effect is unknown
            return None;
        }
        if self.has_gained(&judging.before, &judging.after) {
            self.fruitless = None;
            return None;
        }
        self.note_fruitless(now_s, &judging)
    }

    fn has_gained(&self, before: &Observation, after: &Observation) -> bool {
        let less =
            |a: Option<f64>, b: Option<f64>| a.zip(b).is_some_and(|(a, b)| b <= a * (1.0 - self.rules.gain));
        // if no read completed before, every completion is a gain
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
        let (at, from) = (judging.knob, judging.from);
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

    /// Counts a change without effect; after some, or at the floor, the knob is left.
    fn note_fruitless(&mut self, now_s: f64, judging: &Judging) -> Option<Change> {
        let at = judging.knob;
        let earlier = self.fruitless.filter(|earlier| earlier.knob == at);
        let (from, changes) = earlier.map_or((judging.from, 1), |of| (of.from, of.changes + 1));
        self.fruitless = Some(Fruitless { knob: at, from, changes });
        let is_exhausted = changes >= self.rules.without_effect || !self.knobs.get(at)?.can_lower();
        if is_exhausted { self.undo_fruitless(now_s, at, from, judging) } else { None }
    }

    /// Restores the knob's last value that helped, and goes on with the next knob; after the last one, pauses.
    fn undo_fruitless(&mut self, now_s: f64, at: usize, value: u64, judging: &Judging) -> Option<Change> {
        let knob = self.knobs.get(at)?;
        let (name, from) = (knob.name, knob.now);
        self.exhausted.insert(at);
        self.next_knob();
        let reads = format!(
            "reads are no better ({}; before, {})",
            self.reads(&judging.after),
            self.reads(&judging.before)
        );
        let change = |kind, text| Change { knob: at, value, kind, text };
        if self.is_open(self.at) {
            return Some(change(
                ChangeKind::TakeBack,
                format!("{name} back from {from} to {value}: {reads}"),
            ));
        }
        self.rest(now_s);
        let pause_min = self.rules.give_up_s / 60.0;
        let text =
            format!("{name} back from {from} to {value}, and a pause of {pause_min:.0} minutes: {reads}");
        Some(change(ChangeKind::GiveUp, text))
    }
}
