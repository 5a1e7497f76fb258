//! The model of the thesis behind preload (B. Esfahbod, 2006), chapters 3 to 5: means that fade with a half-life of a
//! week, no correlation, and predictions of programs rather than maps.
//!
//! A cycle scans the running programs, predicts, learns from the scan, and sleeps. The probability of a start is that
//! the program does not run and that any of its pairs needs it within a cycle: 1 - Π (1 - P). A map is needed if any
//! program that uses it starts, which is the common choice by probability.
//!
//! Fading sums and their weights start at zero; divided by the sum of weights, they are means from the first value on.
//! (Without the division they would be near 0 for weeks.) A session that begins while no program runs follows a boot:
//! states are set anew, and nothing is learned from the time between.

mod fading;

use std::collections::{BTreeMap, BTreeSet};

pub use fading::{FadingPair, HALF_LIFE_S, weight};

use super::preload::{CYCLE_S, Steps};
use super::{Chance, Predictor, sort};
use eke_prefetch_model::predict::clock::Clock;
use eke_prefetch_model::predict::running::Running;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_model::user_event::{Event, UserEvent};

/// The thesis's model.
#[derive(Debug, Clone)]
pub struct Thesis {
    programs: Vec<ProgramId>,
    places: BTreeMap<ProgramId, usize>,
    /// The pairs of each program with all earlier ones.
    pairs: Vec<Vec<FadingPair>>,
    /// The result of the last scan, and the part that the pairs have learned.
    seen: BTreeSet<ProgramId>,
    taught: BTreeSet<ProgramId>,
    steps: Steps,
    running: Running,
    clock: Clock,
}

impl Default for Thesis {
    fn default() -> Self {
        Self {
            programs: Vec::new(),
            places: BTreeMap::new(),
            pairs: Vec::new(),
            seen: BTreeSet::new(),
            taught: BTreeSet::new(),
            steps: Steps::new(CYCLE_S as f64),
            running: Running::default(),
            clock: Clock::default(),
        }
    }
}

impl Thesis {
    /// Scans as often as due. A scan is learned after its prediction, that is, before the next scan.
    fn advance(&mut self, to_s: f64) {
        while let Some(step) = self.steps.due(to_s) {
            self.train();
            self.clock.advance(step as f64 * CYCLE_S as f64);
            self.seen = self.running.all().collect();
        }
    }

    fn train(&mut self) {
        let now_s = self.clock.counted_s();
        let changed: Vec<ProgramId> = self.seen.symmetric_difference(&self.taught).copied().collect();
        self.taught.clone_from(&self.seen);
        for program in changed {
            match self.places.get(&program) {
                Some(place) => self.teach(*place, now_s),
                None => self.add(program, now_s),
            }
        }
    }

    /// Updates all pairs of a program that started or stopped.
    fn teach(&mut self, place: usize, now_s: f64) {
        for other in (0..self.programs.len()).filter(|other| *other != place) {
            let (first, second) = (place.min(other), place.max(other));
            let state = state(&self.seen, self.programs[first], self.programs[second]);
            self.pairs[second][first].enter(state, now_s);
        }
    }

    fn add(&mut self, program: ProgramId, now_s: f64) {
        let with =
            self.programs.iter().map(|first| FadingPair::new(state(&self.seen, *first, program), now_s));
        self.pairs.push(with.collect());
        self.places.insert(program, self.programs.len());
        self.programs.push(program);
    }

    fn restart(&mut self, at_s: f64) {
        self.clock.advance(at_s);
        self.seen.clear();
        self.taught.clear();
        let now_s = self.clock.counted_s();
        self.pairs.iter_mut().flatten().for_each(|pair| pair.restart(0, now_s));
        self.steps.begin(at_s);
    }
}

fn state(running: &BTreeSet<ProgramId>, first: ProgramId, second: ProgramId) -> usize {
    usize::from(running.contains(&first)) + 2 * usize::from(running.contains(&second))
}

impl Predictor for Thesis {
    fn name(&self) -> &'static str {
        "thesis"
    }

    fn observe(&mut self, happened: &UserEvent) {
        if happened.event == Event::Session && self.running.all().next().is_none() {
            self.restart(happened.at_s);
        } else {
            self.advance(happened.at_s);
        }
        self.running.observe(happened);
    }

    /// Uses the last scan; its horizon is always one cycle.
    fn chances(&mut self, now_s: f64, _horizon_s: f64) -> Vec<Chance> {
        self.advance(now_s);
        let mut not_needed = vec![1.0; self.programs.len()];
        for (second, row) in self.pairs.iter().enumerate() {
            for (first, pair) in row.iter().enumerate() {
                not_needed[first] *= 1.0 - pair.needs(0);
                not_needed[second] *= 1.0 - pair.needs(1);
            }
        }
        let all = self.programs.iter().zip(not_needed);
        let idle = all.filter(|(program, _)| !self.seen.contains(program));
        let mut chances: Vec<Chance> =
            idle.map(|(program, not)| Chance { program: *program, probability: 1.0 - not }).collect();
        sort(&mut chances);
        chances
    }

    fn cycle_s(&self) -> Option<f64> {
        Some(CYCLE_S as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_followed_once_is_expected_again() {
        let mut thesis = Thesis::default();
        let (a, b) = (ProgramId(1), ProgramId(2));
        for round in 0..3 {
            let from = f64::from(round) * 1000.0;
            for (after, event) in [
                (5.0, Event::Start(a)),
                (105.0, Event::Start(b)),
                (505.0, Event::Stop(b)),
                (605.0, Event::Stop(a)),
            ] {
                thesis.observe(&UserEvent { at_s: from + after, user: 1, event });
            }
        }
        thesis.observe(&UserEvent { at_s: 3005.0, user: 1, event: Event::Start(a) });
        let chances = thesis.chances(3060.0, 60.0);
        // b followed a after 100 s: within 20 s with 1 - exp(-20/100), as often as a's ending did not come first.
        assert_eq!(chances.len(), 1);
        assert!(
            chances[0].program == b && chances[0].probability > 0.05 && chances[0].probability < 0.2,
            "{chances:?}"
        );
    }
}
