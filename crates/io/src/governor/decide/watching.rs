//! Counts good and bad windows, lowers and raises.

use super::judging::Judging;
use super::{Change, ChangeKind, Governor, Phase, rate};
use crate::governor::observe::{Observation, Quality};

/// The last raise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Raised {
    knob: usize,
    from: u64,
    /// The windows since.
    windows: u32,
}

impl Governor {
    pub(super) fn watch(&mut self, now_s: f64, window: &Observation) -> Option<Change> {
        let quality = window.quality(&self.rules);
        self.remember(window);
        self.count(quality, window);
        if let Some(change) = self.raise_went_wrong(quality, window) {
            return Some(change);
        }
        let may_lower = self.phase == Phase::Watching;
        if may_lower && self.bad >= self.rules.bad_row && window.writers_lead(&self.rules) {
            return self.lower(now_s, window);
        }
        if self.good >= self.good_row {
            return self.raise();
        }
        if self.idle >= self.rules.idle_row { self.raise_for_writers() } else { None }
    }

    fn count(&mut self, quality: Quality, window: &Observation) {
        let is_far = window.times_too_long(self.rules.target) >= self.rules.at_once
            && window.reads.count >= self.rules.at_once_reads;
        // anything else breaks a row, also an unknown window
        self.bad = match quality {
            Quality::Bad if is_far => self.rules.bad_row,
            Quality::Bad => self.bad + 1,
            _ => 0,
        };
        self.good = match quality {
            Quality::Good | Quality::FewGood => self.good + 1,
            // no read contradicts it
            Quality::Idle => self.good,
            _ => 0,
        };
        self.idle = match quality {
            Quality::Idle => self.idle + 1,
            Quality::FewGood => self.idle,
            _ => 0,
        };
    }

    /// Bad windows beside writers soon after a raise are its fault. Undoes it; the next raise waits twice as long.
    fn raise_went_wrong(&mut self, quality: Quality, window: &Observation) -> Option<Change> {
        let Raised { knob: at, from, windows } = self.raised?;
        let next = Raised { knob: at, from, windows: windows + 1 };
        self.raised = (windows < self.rules.good_row).then_some(next);
        if quality != Quality::Bad || !window.writers_lead(&self.rules) {
            return None;
        }
        self.good_row = self.good_row.saturating_mul(2).min(self.rules.good_row * 128);
        self.begin_anew();
        let knob = self.knobs.get(at)?;
        let text = format!(
            "{} back from {} to {from}: {} right after the raise",
            knob.name,
            knob.now,
            self.reads(window)
        );
        Some(Change { knob: at, value: from, kind: ChangeKind::TakeBack, text })
    }

    /// Pauses where no knob is open.
    fn lower(&mut self, now_s: f64, window: &Observation) -> Option<Change> {
        if !self.is_open(self.at) {
            self.next_knob();
        }
        if !self.is_open(self.at) {
            self.rest(now_s);
            return None;
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
        let least_per_s = self.rules.least_written * window.written_per_s();
        // idle windows before a burst are no measure of what it moves
        let busy = self.recent.iter().filter(|window| window.has_writers(least_per_s));
        let moved = busy.map(|window| window.moved_per_s(self.rules.seek)).collect();
        let judging = Judging::new(self.at, knob.now, before, moved, least_per_s);
        self.phase = Phase::Judging(Box::new(judging));
        self.begin_anew();
        Some(Change { knob: self.at, value, kind: ChangeKind::Lower, text })
    }

    fn raise(&mut self) -> Option<Change> {
        self.good = 0;
        let why =
            format!("reads have been answered within {} for {} windows", self.rules.target, self.good_row);
        let (from, change) = self.higher(&why)?;
        self.raised = Some(Raised { knob: change.knob, from, windows: 0 });
        Some(change)
    }

    /// Nobody reads, so nobody gains by writers that wait. Bad windows after it are the returning reader's, not the raise's.
    fn raise_for_writers(&mut self) -> Option<Change> {
        self.idle = 0;
        let idle_s = f64::from(self.rules.idle_row) * self.rules.longest_s;
        let (_, change) = self.higher(&format!("nobody has read for {idle_s:.0} s"))?;
        self.raised = None;
        Some(change)
    }

    /// The next higher value, with the present one.
    fn higher(&mut self, why: &str) -> Option<(u64, Change)> {
        // raise the knob first that was lowered last: next_knob() goes upwards and begins anew
        let mut last_first = (0..=self.at).rev().chain((self.at + 1..self.knobs.len()).rev());
        let at = last_first.find(|at| self.knobs[*at].higher().is_some())?;
        (self.at, self.fruitless) = (at, None);
        let knob = &self.knobs[at];
        let (from, value) = (knob.now, knob.higher()?);
        let text = format!("{} from {from} to {value}: {why}", knob.name);
        if value == knob.start {
            self.good_row = self.rules.good_row;
        }
        Some((from, Change { knob: at, value, kind: ChangeKind::Raise, text }))
    }
}
