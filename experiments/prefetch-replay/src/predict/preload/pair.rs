//! The Markov chain of two programs and its predictions. Formulas of release 0.6.4, `src/state.c` and `src/prophet.c`.

/// The length of a cycle in seconds, preload's default.
pub const CYCLE_S: i64 = 20;

/// The bits of a pair's state: the first program runs, the second one runs.
pub const RUNS: [usize; 2] = [1, 2];

/// Two programs: which of them run, how long each of the four states lasts, and which state follows.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The state, 0 to 3: the sum of `RUNS` of those that run.
    pub state: usize,
    /// Mean seconds until each state was left, over all times.
    pub ttl_s: [f64; 4],
    /// How often a state was left for another one; on the diagonal, how often it was left in total.
    pub counts: [[u32; 4]; 4],
    /// Seconds in which both ran.
    pub both_s: i64,
    /// Time of the last state change, by preload's clock.
    pub changed_s: i64,
    /// Cached results of [`Self::begins`]: they change only with the state, but each cycle needs them for all pairs.
    begins: [Option<f64>; 2],
}

impl Pair {
    /// A pair whose second program was just found running. The first is known, and last changed at `first_changed_s`.
    /// If that was earlier, the pair makes one transition at once, from without the second program to with it.
    ///
    /// The original then checks the wrong time to see whether the second changed before now. It never did, because a
    /// new program changed now. So that defect has no effect, and is left out.
    pub fn with_new(first_runs: bool, first_changed_s: i64, now_s: i64) -> Self {
        let state = usize::from(first_runs) * RUNS[0];
        let mut pair = Self {
            state,
            ttl_s: [0.0; 4],
            counts: [[0; 4]; 4],
            both_s: 0,
            changed_s: now_s,
            begins: [None; 2],
        };
        if first_changed_s > 0 && first_changed_s < now_s {
            pair.changed_s = first_changed_s;
            pair.enter(state + RUNS[1], now_s);
        }
        pair.settle(state + RUNS[1], pair.changed_s);
        pair
    }

    /// Enters another state, at most once per clock time; as in the original, the first change counts.
    pub fn enter(&mut self, state: usize, now_s: i64) {
        if self.changed_s == now_s || self.state == state {
            return;
        }
        let left = self.state;
        self.counts[left][left] += 1;
        let dwell_s = (now_s - self.changed_s) as f64;
        self.ttl_s[left] += (dwell_s - self.ttl_s[left]) / f64::from(self.counts[left][left]);
        self.counts[left][state] += 1;
        self.settle(state, now_s);
    }

    /// Sets the state and its time without counting a transition.
    pub fn settle(&mut self, state: usize, changed_s: i64) {
        (self.state, self.changed_s) = (state, changed_s);
        self.begins = [0, 1].map(|member| self.beginning(member));
    }

    /// The probability that the state changes within one and a half cycles, times that of a state in which this member
    /// (0 or 1) runs. `None` if the member runs, if the state was never left, or if its mean time was at most a second
    /// (or negative, from the defect in loading).
    pub fn begins(&self, member: usize) -> Option<f64> {
        self.begins[member]
    }

    /// Whether it predicts a start of a member.
    pub fn bids(&self) -> bool {
        self.begins.iter().any(|begins| begins.is_some_and(|begins| begins > 0.0))
    }

    fn beginning(&self, member: usize) -> Option<f64> {
        let from = self.state;
        let left = self.counts[from][from];
        if from & RUNS[member] != 0 || left == 0 || self.ttl_s[from].is_nan() || self.ttl_s[from] <= 1.0 {
            return None;
        }
        let changes = 1.0 - (-1.5 * CYCLE_S as f64 / self.ttl_s[from]).exp();
        let to = f64::from(self.counts[from][RUNS[member]] + self.counts[from][3]);
        Some(changes * to / (f64::from(left) + 0.01))
    }
}

/// The correlation of two programs' run times: each ran for its share of `total_s` seconds, both together for `both_s`.
/// 0 if one never or always ran.
pub fn correlation(total_s: i64, first_s: i64, second_s: i64, both_s: i64) -> f64 {
    let (t, a, b) = (total_s as f64, first_s as f64, second_s as f64);
    let spread = a * b * (t - a) * (t - b);
    if spread > 0.0 { (t * both_s as f64 - a * b) / spread.sqrt() } else { 0.0 }
}

/// The contribution of a pair to the logarithm of the probability that its member does not start. It uses the absolute
/// value of the correlation, so programs that avoid each other predict each other, too.
pub fn lnprob(correlation: f64, begins: f64) -> f64 {
    (1.0 - (correlation.abs() * begins).min(1.0)).ln().max(-f64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_pair_of_a_known_program_makes_one_transition() {
        let pair = Pair::with_new(true, 30, 110);
        assert_eq!((pair.state, pair.changed_s), (3, 110));
        assert_eq!(pair.counts[1], [0, 1, 0, 1]);
        assert_eq!(pair.ttl_s, [0.0, 80.0, 0.0, 0.0]);
        let both_new = Pair::with_new(true, 110, 110);
        assert_eq!((both_new.state, both_new.counts), (3, [[0; 4]; 4]));
    }

    #[test]
    fn dwells_are_plain_means_and_departures_are_counted() {
        let mut pair = Pair::with_new(false, 10, 30);
        for (state, at) in [(0, 90), (1, 100), (0, 130), (2, 160), (3, 160)] {
            pair.enter(state, at);
        }
        assert_eq!(pair.state, 2, "the second change at one time is ignored");
        // State 0 was left after 20 s (to 2), 10 s (to 1) and 30 s (to 2); state 2 after 60 s, state 1 after 30 s.
        assert_eq!(pair.ttl_s, [20.0, 30.0, 60.0, 0.0]);
        assert_eq!(pair.counts, [[3, 1, 2, 0], [1, 1, 0, 0], [1, 0, 1, 0], [0; 4]]);
    }

    #[test]
    fn the_probability_is_of_a_change_and_its_target() {
        let mut pair = Pair::with_new(false, 10, 30);
        pair.enter(0, 90);
        // W = 1 departure from 0, to 2, after 20 s: (1 - exp(-30/20)) / 1.01.
        assert!((pair.begins(1).unwrap() - 0.776_870_1 / 1.01).abs() < 1e-6);
        assert_eq!(pair.begins(0), Some(0.0));
        pair.ttl_s[0] = -88.3;
        pair.settle(0, 90);
        assert_eq!(pair.begins(1), None, "garbage of a restart disables the state");
    }

    #[test]
    fn correlations_by_hand() {
        // 1000 s; a 400, b 500, both 300: (300000 - 200000) / sqrt(400·500·600·500) = 100000 / 244948.97.
        assert!((correlation(1000, 400, 500, 300) - 0.408_248_29).abs() < 1e-8);
        assert!((correlation(1000, 500, 500, 0) + 1.0).abs() < 1e-12);
        assert_eq!(
            [correlation(1000, 0, 500, 0), correlation(1000, 1000, 500, 500), correlation(0, 0, 0, 0)],
            [0.0; 3]
        );
        assert!((lnprob(-0.5, 0.5) - 0.75_f64.ln()).abs() < 1e-12, "avoiding counts as attracting");
        assert!(lnprob(1.0, 1.0).is_finite());
    }
}
