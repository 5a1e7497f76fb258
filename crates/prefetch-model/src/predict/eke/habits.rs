//! One user's habits: nine experts predict the next program, each from fading counts in some context, and their mixture.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::circle::{Circle, place};
use super::fading_counts::FadingCounts;
use super::forecast::Context;
use super::mix::Mix;
use crate::program::ProgramId;

const DAY_S: f64 = 86_400.0;
const WEEK_S: f64 = 7.0 * DAY_S;

/// Bins of the day: hours.
const DAY_BINS: usize = 24;

/// Bins of the week: three hours each.
const WEEK_BINS: usize = 56;

/// The distinct positions in a session: the first start, the second ...; all later ones share the last.
const OPENINGS: usize = 8;

/// The most followers kept per program.
const FOLLOWERS: usize = 16;

/// Half-lives in starts: short, medium and long.
const SHORT: f64 = 5.0;
const MEDIUM: f64 = 60.0;
const LONG: f64 = 600.0;

/// Half-lives of the counts in a context.
const SLOW: f64 = 40.0;
const FAST: f64 = 4.0;

/// The number of experts, in the order of [`Habits::predictions`].
pub const EXPERTS: usize = 9;

/// What one user does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Habits {
    short: FadingCounts,
    medium: FadingCounts,
    long: FadingCounts,
    after: BTreeMap<ProgramId, FadingCounts>,
    after_fast: BTreeMap<ProgramId, FadingCounts>,
    after_next: BTreeMap<ProgramId, FadingCounts>,
    day: Circle,
    week: Circle,
    openings: Vec<FadingCounts>,
    mix: Mix,
    last: Option<ProgramId>,
    before: Option<ProgramId>,
    started: usize,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            short: FadingCounts::default(),
            medium: FadingCounts::default(),
            long: FadingCounts::default(),
            after: BTreeMap::new(),
            after_fast: BTreeMap::new(),
            after_next: BTreeMap::new(),
            day: Circle::new(DAY_BINS),
            week: Circle::new(WEEK_BINS),
            openings: vec![FadingCounts::default(); OPENINGS],
            mix: Mix::new(EXPERTS),
            last: None,
            before: None,
            started: 0,
        }
    }
}

impl Habits {
    /// A session began: nothing was started in it yet.
    pub fn begin(&mut self) {
        (self.last, self.before, self.started) = (None, None, 0);
    }

    /// Programs started since the session began, at most [`OPENINGS`] - 1.
    pub fn started(&self) -> usize {
        self.started.min(OPENINGS - 1)
    }

    /// The context for forecasts.
    pub fn context(&self, user: u32) -> Context {
        Context::new(user, self.last, self.started())
    }

    /// The experts' weights.
    pub fn weights(&self) -> &[f64] {
        self.mix.weights()
    }

    /// Each expert's prediction: for each candidate its share of being next, summing to 1. `candidates` are sorted by id; `all_users` has their
    /// shares over all users, the fallback for a user without history.
    pub fn predictions(&self, candidates: &[ProgramId], all_users: &[f64], now_s: f64) -> Vec<Vec<f64>> {
        let one = |row: Option<&FadingCounts>, base: &[f64]| shares(&rows(row), candidates, base);
        let long = one(Some(&self.long), all_users);
        let medium = one(Some(&self.medium), &long);
        let short = one(Some(&self.short), &medium);
        let after = one(self.last.and_then(|last| self.after.get(&last)), &medium);
        let after_fast = one(self.last.and_then(|last| self.after_fast.get(&last)), &after);
        let after_next = one(self.before.and_then(|before| self.after_next.get(&before)), &medium);
        let day = shares(&self.day.around(place(now_s, DAY_S)), candidates, &long);
        let week = shares(&self.week.around(place(now_s, WEEK_S)), candidates, &day);
        let opening = one(self.openings.get(self.started()), &medium);
        vec![long, medium, short, after, after_fast, after_next, day, week, opening]
    }

    /// The weighted mixture of the experts' predictions.
    pub fn mixed(&self, predictions: &[Vec<f64>], candidates: usize) -> Vec<f64> {
        let mut mixed = vec![0.0; candidates];
        for (weight, shares) in self.mix.weights().iter().zip(predictions) {
            mixed.iter_mut().zip(shares).for_each(|(sum, share)| *sum += weight * share);
        }
        mixed
    }

    /// A program started; `given` has each expert's prediction for it, if it was a candidate.
    pub fn learn(&mut self, program: ProgramId, now_s: f64, given: Option<&[f64]>) {
        if let Some(given) = given {
            self.mix.learn(given);
        }
        self.short.add(program, SHORT, FOLLOWERS);
        self.medium.add(program, MEDIUM, usize::MAX);
        self.long.add(program, LONG, usize::MAX);
        if let Some(last) = self.last {
            self.after.entry(last).or_default().add(program, SLOW, FOLLOWERS);
            self.after_fast.entry(last).or_default().add(program, FAST, FOLLOWERS);
        }
        if let Some(before) = self.before {
            self.after_next.entry(before).or_default().add(program, SLOW, FOLLOWERS);
        }
        self.day.add(place(now_s, DAY_S), program, LONG);
        self.week.add(place(now_s, WEEK_S), program, LONG);
        let opening = self.started();
        self.openings[opening].add(program, SLOW, FOLLOWERS);
        (self.before, self.last, self.started) = (self.last, Some(program), self.started.saturating_add(1));
    }

    /// Forgets a program.
    pub fn forget(&mut self, program: ProgramId) {
        for rows in [&mut self.after, &mut self.after_fast, &mut self.after_next] {
            rows.remove(&program);
            rows.values_mut().for_each(|row| row.forget(program));
            rows.retain(|_, row| !row.is_empty());
        }
        [&mut self.short, &mut self.medium, &mut self.long].into_iter().for_each(|row| row.forget(program));
        self.openings.iter_mut().for_each(|row| row.forget(program));
        [&mut self.day, &mut self.week].into_iter().for_each(|circle| circle.forget(program));
        self.last = self.last.filter(|last| *last != program);
        self.before = self.before.filter(|before| *before != program);
    }

    /// A program goes on under another id.
    pub fn rename(&mut self, old: ProgramId, new: ProgramId) {
        for rows in [&mut self.after, &mut self.after_fast, &mut self.after_next] {
            // The old version has the longer history.
            let row = rows.remove(&old);
            row.map(|row| rows.insert(new, row));
            rows.values_mut().for_each(|row| row.rename(old, new));
        }
        [&mut self.short, &mut self.medium, &mut self.long].into_iter().for_each(|row| row.rename(old, new));
        self.openings.iter_mut().for_each(|row| row.rename(old, new));
        [&mut self.day, &mut self.week].into_iter().for_each(|circle| circle.rename(old, new));
        let renamed = |program: ProgramId| if program == old { new } else { program };
        (self.last, self.before) = (self.last.map(renamed), self.before.map(renamed));
    }

    /// The programs that were started, by id.
    pub fn programs(&self) -> impl Iterator<Item = ProgramId> + '_ {
        self.long.programs()
    }

    /// Resets invalid numbers.
    pub fn sanitize(&mut self) {
        self.short.sanitize(FOLLOWERS);
        [&mut self.medium, &mut self.long].into_iter().for_each(|row| row.sanitize(usize::MAX));
        for rows in [&mut self.after, &mut self.after_fast, &mut self.after_next] {
            rows.values_mut().for_each(|row| row.sanitize(FOLLOWERS));
        }
        self.openings.resize_with(OPENINGS, FadingCounts::default);
        self.openings.iter_mut().for_each(|row| row.sanitize(FOLLOWERS));
        self.day.sanitize(DAY_BINS);
        self.week.sanitize(WEEK_BINS);
        self.mix.sanitize(EXPERTS);
    }
}

fn rows(row: Option<&FadingCounts>) -> Vec<(f64, &FadingCounts)> {
    row.map(|row| (1.0, row)).into_iter().collect()
}

/// The candidates' shares in the weighted rows. The unseen part falls to `base`, in proportion to the number of distinct programs in the context
/// (escape by method C of PPM: Moffat, 1990), and entirely if the context is empty.
fn shares(rows: &[(f64, &FadingCounts)], candidates: &[ProgramId], base: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; candidates.len()];
    rows.iter().for_each(|(weight, row)| row.add_to(candidates, *weight, &mut sums));
    let total: f64 = sums.iter().sum();
    let kinds = sums.iter().filter(|sum| **sum > 0.0).count() as f64;
    let escape = kinds.min(total).max(0.5);
    sums.iter().zip(base).map(|(sum, base)| (sum + escape * base) / (total + escape)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_sum_to_one_and_predict_the_follower() {
        let mut habits = Habits::default();
        let programs = [1, 2, 3].map(ProgramId);
        (0..30).for_each(|i| habits.learn(programs[i % 3], i as f64 * 100.0, None));
        let predictions = habits.predictions(&programs, &[1.0 / 3.0; 3], 3000.0);
        assert_eq!(predictions.len(), EXPERTS);
        for shares in &predictions {
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
        }
        // The last was 3, so 1 follows.
        assert!(predictions[3][0] > 0.85, "{:?}", predictions[3]);
        habits.forget(programs[0]);
        assert_eq!(habits.predictions(&programs[..1], &[1.0], 3000.0)[3], [1.0]);
        assert_eq!(habits.programs().collect::<Vec<_>>(), programs[1..]);
    }
}
