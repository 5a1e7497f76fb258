//! Means that fade: what was seen long ago counts less. Thesis, chapter 4.

/// Seconds after which what was seen counts half: a week.
pub const HALF_LIFE_S: f64 = 168.0 * 3600.0;

/// The weight of what is seen now beside what was seen up to `passed_s` ago: 1 - exp(-λ·dt), λ = ln 2 / half-life.
pub fn weight(passed_s: f64) -> f64 {
    1.0 - (-std::f64::consts::LN_2 / HALF_LIFE_S * passed_s.max(0.0)).exp()
}

/// The Markov chain of two programs, whose figures fade.
#[derive(Debug, Clone, PartialEq)]
pub struct FadingPair {
    /// The state: 1 if the first program runs, plus 2 if the second one does.
    pub state: usize,
    since_s: f64,
    /// Seconds that a state lasts.
    lasts_s: [f64; 4],
    /// The probability that a state is left for another.
    goes: [[f64; 4]; 4],
    /// When a state was left last, and so its figures were learned.
    learned_s: [Option<f64>; 4],
}

impl FadingPair {
    /// A pair that is in a state from now on.
    pub fn new(state: usize, now_s: f64) -> Self {
        Self { state, since_s: now_s, lasts_s: [0.0; 4], goes: [[0.0; 4]; 4], learned_s: [None; 4] }
    }

    /// Goes to another state. The first figures of a state are taken as they are: there is nothing to fade.
    pub fn enter(&mut self, state: usize, now_s: f64) {
        let left = self.state;
        if left == state {
            return;
        }
        let new = self.learned_s[left].map_or(1.0, |learned| weight(now_s - learned));
        self.lasts_s[left] += new * ((now_s - self.since_s).max(0.0) - self.lasts_s[left]);
        for (to, goes) in self.goes[left].iter_mut().enumerate() {
            *goes += new * (f64::from(u8::from(to == state)) - *goes);
        }
        self.learned_s[left] = Some(now_s);
        self.restart(state, now_s);
    }

    /// Is in a state from now on; how it came there taught nothing.
    pub fn restart(&mut self, state: usize, now_s: f64) {
        (self.state, self.since_s) = (state, now_s);
    }

    /// The probability that a member (0 or 1) is needed within `within_s`.
    pub fn needs(&self, member: usize, within_s: f64) -> f64 {
        let from = self.state;
        if self.learned_s[from].is_none() {
            return 0.0;
        }
        let changes = 1.0 - (-within_s / self.lasts_s[from].max(f64::MIN_POSITIVE)).exp();
        (changes * (self.goes[from][1 << member] + self.goes[from][3])).clamp(0.0, 1.0)
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
        pair.enter(1, 100.0); // state 0 lasted 100 s, went to 1
        pair.enter(0, week); // state 1 lasted a week less 100 s
        pair.enter(2, week + 100.0); // state 0 lasted 100 s again, learned a week ago: goes half to 1, half to 2
        assert!((pair.lasts_s[0] - 100.0).abs() < 1e-9);
        assert!((pair.goes[0][1] - 0.5).abs() < 1e-12 && (pair.goes[0][2] - 0.5).abs() < 1e-12);
        pair.enter(0, week + 300.0);
        pair.enter(2, 2.0 * week + 100.0); // half a week less 200 s, weighed by half
        assert!((pair.lasts_s[0] - (50.0 + (week - 200.0) / 2.0)).abs() < 1e-6);
        assert!((pair.goes[0][2] - 0.75).abs() < 1e-12);
    }

    #[test]
    fn needs_are_a_change_and_where_to() {
        let mut pair = FadingPair::new(0, 0.0);
        assert_eq!(pair.needs(0, 20.0), 0.0);
        pair.enter(1, 40.0);
        pair.enter(0, 50.0);
        assert!((pair.needs(0, 20.0) - (1.0 - (-0.5_f64).exp())).abs() < 1e-12);
        assert_eq!(pair.needs(1, 20.0), 0.0);
    }
}
