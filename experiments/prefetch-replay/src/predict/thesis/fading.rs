//! Fading means: old observations count less. Thesis, chapter 4.

use crate::predict::preload::CYCLE_S;

/// Seconds after which an observation counts half: a week.
pub const HALF_LIFE_S: f64 = 168.0 * 3600.0;

/// The weight of a new observation relative to those up to `passed_s` ago: 1 - exp(-λ·dt), λ = ln 2 / half-life.
pub fn weight(passed_s: f64) -> f64 {
    1.0 - (-std::f64::consts::LN_2 / HALF_LIFE_S * passed_s.max(0.0)).exp()
}

/// The Markov chain of two programs with fading means.
#[derive(Debug, Clone, PartialEq)]
pub struct FadingPair {
    /// The state: 1 if the first program runs, plus 2 if the second one does.
    pub state: usize,
    since_s: f64,
    learned: [Learned; 4],
    /// Cached results of [`Self::needs`]: they change only with the state.
    needs: [f64; 2],
}

/// What was learned about a state: fading sums, and the sum of their weights. Their quotient is a mean from the first
/// value on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Learned {
    at_s: f64,
    weights: f64,
    lasts_s: f64,
    goes: [f64; 4],
}

impl FadingPair {
    /// A pair that enters a state now.
    pub fn new(state: usize, now_s: f64) -> Self {
        let nothing = Learned { at_s: now_s, weights: 0.0, lasts_s: 0.0, goes: [0.0; 4] };
        Self { state, since_s: now_s, learned: [nothing; 4], needs: [0.0; 2] }
    }

    /// Enters another state.
    pub fn enter(&mut self, state: usize, now_s: f64) {
        if self.state == state {
            return;
        }
        let learned = &mut self.learned[self.state];
        let new = weight(now_s - learned.at_s);
        let fade = |old: f64, value: f64| (1.0 - new) * old + new * value;
        learned.weights = fade(learned.weights, 1.0);
        learned.lasts_s = fade(learned.lasts_s, (now_s - self.since_s).max(0.0));
        for (to, goes) in learned.goes.iter_mut().enumerate() {
            *goes = fade(*goes, f64::from(u8::from(to == state)));
        }
        learned.at_s = now_s;
        self.restart(state, now_s);
    }

    /// Enters a state without learning from the transition.
    pub fn restart(&mut self, state: usize, now_s: f64) {
        (self.state, self.since_s) = (state, now_s);
        self.needs = [0, 1].map(|member| self.needed(member));
    }

    /// The probability that a member (0 or 1) is needed within a cycle.
    pub fn needs(&self, member: usize) -> f64 {
        self.needs[member]
    }

    fn needed(&self, member: usize) -> f64 {
        let learned = &self.learned[self.state];
        if learned.weights <= 0.0 {
            return 0.0;
        }
        let lasts_s = (learned.lasts_s / learned.weights).max(f64::MIN_POSITIVE);
        let changes = 1.0 - (-(CYCLE_S as f64) / lasts_s).exp();
        (changes * (learned.goes[1 << member] + learned.goes[3]) / learned.weights).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_half_life_the_new_weighs_half() {
        assert!((weight(HALF_LIFE_S) - 0.5).abs() < 1e-12);
        assert!((weight(2.0 * HALF_LIFE_S) - 0.75).abs() < 1e-12);
        assert_eq!(weight(-5.0), 0.0);
    }

    #[test]
    fn means_fade_by_the_time_since_they_were_learned() {
        let week = HALF_LIFE_S;
        let mut pair = FadingPair::new(0, 0.0);
        pair.enter(1, week); // state 0 lasted a week and went to 1; learned after a week: weighs 1/2
        pair.enter(0, 1.5 * week);
        pair.enter(2, 2.0 * week); // lasted half a week, went to 2; a week later: weighs 1/2, what was before 1/4
        let learned = pair.learned[0];
        assert!((learned.weights - 0.75).abs() < 1e-12);
        assert!((learned.lasts_s / week - (0.25 * 1.0 + 0.5 * 0.5)).abs() < 1e-12);
        assert!((learned.goes[1] - 0.25).abs() < 1e-12 && (learned.goes[2] - 0.5).abs() < 1e-12);
        pair.enter(0, 2.5 * week);
        // On average it lasts 2/3 of a week and goes to 1 in a third of cases.
        let expected = (1.0 - (-20.0 * 1.5 / week).exp()) / 3.0;
        assert!((pair.needs(0) - expected).abs() < 1e-12);
    }

    #[test]
    fn needs_are_a_change_and_its_target() {
        let mut pair = FadingPair::new(0, 0.0);
        assert_eq!(pair.needs(0), 0.0);
        pair.enter(1, 40.0);
        pair.enter(0, 50.0);
        assert!((pair.needs(0) - (1.0 - (-0.5_f64).exp())).abs() < 1e-12);
        assert_eq!(pair.needs(1), 0.0);
    }
}
