//! preload's model: programs, pairs, its own clock. Fed with what a scan saw; knows no events.

use std::collections::{BTreeMap, BTreeSet};

use super::pair::{Pair, RUNS, correlation, lnprob};
use crate::program::ProgramId;

/// A program as preload knows it.
#[derive(Debug, Clone)]
struct Exe {
    program: ProgramId,
    /// Seconds that it ran, as accounted.
    ran_s: i64,
    /// When it began or ended last, in preload's clock.
    changed_s: i64,
    /// Did the last scan see it?
    runs: bool,
}

/// The model.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// preload's clock, in seconds that it ran: not the wall clock.
    clock_s: i64,
    accounted_s: i64,
    exes: Vec<Exe>,
    places: BTreeMap<ProgramId, usize>,
    /// The pairs of a program with each that was known before it.
    pairs: Vec<Vec<Pair>>,
    changed: Vec<usize>,
    new: Vec<ProgramId>,
}

impl Model {
    /// Lets the clock go on.
    pub fn pass(&mut self, seconds: i64) {
        self.clock_s += seconds;
    }

    /// A scan saw these running. Who is new or has changed waits for [`Self::update`].
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

    /// Takes the last scan into the model, half a cycle later: new programs that `admit` lets in, then changes, then the account of time.
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

    /// Brings the state of the pair of two programs up to date.
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

    /// Loads the model as from its file after a restart, when nothing runs. `changed_s` gives the time that each pair is then held to have
    /// changed at: by its number, and the clock.
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

    /// The logarithm of the probability that each program does not start within a cycle and a half; none for those that run.
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
        let told = self.exes.iter().zip(sums);
        told.map(|(exe, sum)| (exe.program, (!exe.runs).then_some(sum.max(-f64::MAX)))).collect()
    }

    fn correlation(&self, first: usize, second: usize, pair: &Pair) -> f64 {
        correlation(self.clock_s, self.exes[first].ran_s, self.exes[second].ran_s, pair.both_s)
    }

    /// Is it known?
    pub fn knows(&self, program: ProgramId) -> bool {
        self.places.contains_key(&program)
    }
}
