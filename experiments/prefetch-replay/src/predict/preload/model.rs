//! preload's model: programs, pairs, and its own clock. Its input are scans, not events.

use std::collections::{BTreeMap, BTreeSet};

use super::pair::{Pair, RUNS, correlation, lnprob};
use eke_prefetch_model::program::ProgramId;

/// A program in preload's model.
#[derive(Debug, Clone)]
struct Exe {
    program: ProgramId,
    /// Accounted run time in seconds.
    ran_s: i64,
    /// When it last started or stopped, by preload's clock.
    changed_s: i64,
    /// Whether the last scan saw it.
    runs: bool,
}

/// The model.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// preload's clock: the seconds that it has run, not the wall clock.
    clock_s: i64,
    accounted_s: i64,
    exes: Vec<Exe>,
    places: BTreeMap<ProgramId, usize>,
    /// The pairs of each program with all earlier ones.
    pairs: Vec<Vec<Pair>>,
    changed: Vec<usize>,
    new: Vec<ProgramId>,
}

impl Model {
    /// Advances the clock.
    pub fn pass(&mut self, seconds: i64) {
        self.clock_s += seconds;
    }

    /// Takes a scan of running programs. New and changed programs wait for [`Self::update`].
    pub fn scan(&mut self, running: &BTreeSet<ProgramId>) {
        self.changed.clear();
        for (place, exe) in self.exes.iter_mut().enumerate() {
            let runs = running.contains(&exe.program);
            if exe.runs != runs {
                exe.runs = runs;
                self.changed.push(place);
            }
        }
        self.new = running.iter().filter(|program| !self.places.contains_key(program)).copied().collect();
    }

    /// Learns from the last scan, half a cycle later: new programs that `admit` accepts, then changes, then run times.
    pub fn update(&mut self, admit: impl Fn(ProgramId) -> bool) {
        for program in std::mem::take(&mut self.new).into_iter().filter(|program| admit(*program)) {
            self.add(program);
        }
        for place in std::mem::take(&mut self.changed) {
            self.exes[place].changed_s = self.clock_s;
            (0..self.exes.len()).filter(|other| *other != place).for_each(|other| self.settle(place, other));
        }
        self.account();
    }

    fn add(&mut self, program: ProgramId) {
        let now_s = self.clock_s;
        let with = self.exes.iter().map(|first| Pair::with_new(first.runs, first.changed_s, now_s));
        self.pairs.push(with.collect());
        self.places.insert(program, self.exes.len());
        self.exes.push(Exe { program, ran_s: 0, changed_s: now_s, runs: true });
    }

    /// Updates the state of the pair of two programs.
    fn settle(&mut self, one: usize, other: usize) {
        let (first, second) = (one.min(other), one.max(other));
        let state = self.state_of(first, second);
        self.pairs[second][first].enter(state, self.clock_s);
    }

    fn state_of(&self, first: usize, second: usize) -> usize {
        usize::from(self.exes[first].runs) * RUNS[0] + usize::from(self.exes[second].runs) * RUNS[1]
    }

    fn account(&mut self) {
        let period_s = self.clock_s - self.accounted_s;
        let running: Vec<usize> = (0..self.exes.len()).filter(|place| self.exes[*place].runs).collect();
        for (at, second) in running.iter().enumerate() {
            self.exes[*second].ran_s += period_s;
            for first in &running[..at] {
                let pair = &mut self.pairs[*second][*first];
                pair.both_s += if pair.state == 3 { period_s } else { 0 };
            }
        }
        self.accounted_s = self.clock_s;
    }

    /// Loads the model after a restart, when nothing runs. `changed_s` returns the time of the last change of a pair
    /// from the pair's number and the clock.
    pub fn load(&mut self, changed_s: impl Fn(u64, i64) -> i64) {
        let now_s = self.clock_s;
        self.accounted_s = now_s;
        (self.changed, self.new) = (Vec::new(), Vec::new());
        for exe in &mut self.exes {
            (exe.runs, exe.changed_s) = (false, now_s);
        }
        for (number, pair) in self.pairs.iter_mut().flatten().enumerate() {
            pair.settle(0, changed_s(number as u64, now_s));
        }
    }

    /// The logarithm of the probability that each program does not start within a cycle and a half; `None` for running
    /// programs.
    pub fn lnprobs(&self) -> Vec<(ProgramId, Option<f64>)> {
        let mut sums = vec![0.0; self.exes.len()];
        for (second, row) in self.pairs.iter().enumerate() {
            for (first, pair) in row.iter().enumerate().filter(|(_, pair)| pair.bids()) {
                let rho = self.correlation(first, second, pair);
                for (member, place) in [first, second].into_iter().enumerate() {
                    sums[place] += pair.begins(member).map_or(0.0, |begins| lnprob(rho, begins));
                }
            }
        }
        let sums = self.exes.iter().zip(sums);
        sums.map(|(exe, sum)| (exe.program, (!exe.runs).then_some(sum.max(-f64::MAX)))).collect()
    }

    fn correlation(&self, first: usize, second: usize, pair: &Pair) -> f64 {
        correlation(self.clock_s, self.exes[first].ran_s, self.exes[second].ran_s, pair.both_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ProgramId = ProgramId(1);
    const B: ProgramId = ProgramId(2);

    /// One cycle: a scan, and the update half a cycle later.
    fn cycle(model: &mut Model, running: &[ProgramId]) {
        model.pass(10);
        model.scan(&running.iter().copied().collect());
        model.pass(10);
        model.update(|_| true);
    }

    fn lnprob(model: &Model, program: ProgramId) -> Option<f64> {
        model.lnprobs().into_iter().find(|entry| entry.0 == program).and_then(|entry| entry.1)
    }

    #[test]
    fn a_model_by_hand() {
        let mut model = Model::default();
        let both = [A, B];
        for running in [&both[..1], &both, &both, &both[..1], &both[..1]] {
            cycle(&mut model, running);
        }
        // The clock is at 100 s. A always ran, so the correlation is 0.
        assert_eq!((lnprob(&model, A), lnprob(&model, B)), (None, Some(0.0)));
        for running in [&both[..0], &both[..0], &both[..1]] {
            cycle(&mut model, running);
        }
        // At 160 s: A ran 120, B 40, both 40: rho = (160·40 - 120·40) / sqrt(120·40·40·120) = 1/3.
        // State "A only" was left once after 20 s (at 40 for both) and once after 40 s (80 to 120, for none): mean 30 s, and half of it for B.
        let begins = (1.0 - (-1.0_f64).exp()) / 2.01;
        let expected = (1.0 - begins / 3.0).ln();
        assert!((lnprob(&model, B).unwrap() - expected).abs() < 1e-12, "{:?}, {expected}", lnprob(&model, B));
    }

    #[test]
    fn small_programs_are_not_admitted_and_checked_again() {
        let mut model = Model::default();
        model.scan(&[A].into_iter().collect());
        model.update(|_| false);
        assert!(model.lnprobs().is_empty());
        cycle(&mut model, &[A]);
        assert_eq!(model.lnprobs(), [(A, None)]);
    }

    #[test]
    fn garbage_at_a_restart_disables_a_state_until_it_is_averaged_out() {
        let learned = |changed_s: fn(u64, i64) -> i64| {
            let mut model = Model::default();
            for running in [&[A][..], &[A, B], &[A], &[]] {
                cycle(&mut model, running);
            }
            model.load(changed_s);
            for running in [&[][..], &[A], &[A, B], &[A], &[]] {
                cycle(&mut model, running);
            }
            lnprob(&model, A).unwrap()
        };
        assert!(learned(|_, now_s| now_s) < 0.0);
        assert_eq!(learned(|_, _| 20_000), 0.0, "a change in the future makes a mean below 0");
    }
}
