//! How often programs start within a horizon after a log-in or a program's start, in any order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::program::ProgramId;

/// Half-life, in occurrences of the context.
const HALF_LIFE: f64 = 30.0;

/// The most programs per context.
const LIMIT: usize = 24;

/// Counts below this are dropped.
const NOTHING: f64 = 0.02;

/// The prior: the probability without the context counts as this many occurrences.
const PRIOR: f64 = 3.0;

/// One context: how often it occurred, and how often each program started within the horizon; both fade.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ContextCounts {
    times: f64,
    counts: BTreeMap<ProgramId, f64>,
}

impl ContextCounts {
    /// The context occurred, and these programs started within the horizon.
    pub fn learn(&mut self, started: impl Iterator<Item = ProgramId>) {
        let fade = (-1.0 / HALF_LIFE).exp2();
        self.times = self.times * fade + 1.0;
        self.counts.values_mut().for_each(|count| *count *= fade);
        started.for_each(|program| *self.counts.entry(program).or_insert(0.0) += 1.0);
        self.counts.retain(|_, count| *count >= NOTHING);
        while self.counts.len() > LIMIT {
            let least = self.counts.iter().min_by(|a, b| a.1.total_cmp(b.1)).map(|(program, _)| *program);
            least.and_then(|program| self.counts.remove(&program));
        }
    }

    /// The probability that a program starts; `without` is the probability without the context.
    pub fn probability(&self, program: ProgramId, without: f64) -> f64 {
        let count = self.counts.get(&program).copied().unwrap_or(0.0);
        ((count + PRIOR * without) / (self.times + PRIOR)).clamp(0.0, 1.0)
    }

    /// Forgets a program.
    pub fn forget(&mut self, program: ProgramId) {
        self.counts.remove(&program);
    }

    /// A program goes on under another id.
    pub fn rename(&mut self, old: ProgramId, new: ProgramId) {
        if let Some(count) = self.counts.remove(&old) {
            *self.counts.entry(new).or_insert(0.0) += count;
        }
    }

    /// Whether a stored state is valid.
    pub fn is_sound(&self) -> bool {
        let sound = |number: f64| number.is_finite() && number >= 0.0;
        sound(self.times) && self.counts.len() <= LIMIT && self.counts.values().all(|count| sound(*count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_times_with_a_prior() {
        let (a, b) = (ProgramId(1), ProgramId(2));
        let mut within = ContextCounts::default();
        assert_eq!(within.probability(a, 0.25), 0.25);
        within.learn([a, b].into_iter());
        within.learn([a].into_iter());
        let fade = (-1.0_f64 / 30.0).exp2();
        assert!((within.probability(a, 0.2) - (1.0 + fade + 0.6) / (4.0 + fade)).abs() < 1e-12);
        assert!((within.probability(b, 0.2) - (fade + 0.6) / (4.0 + fade)).abs() < 1e-12);
        (0..10_000).for_each(|i| within.learn([ProgramId(i)].into_iter()));
        assert!(within.is_sound());
    }
}
