//! Weights that fade with time, and the clock that ages them.
//!
//! A weight `w` of time `s` is `w · 2^(-(t - s) / 30 days)` at time `t`. The store ages weights by a clock of its own. It follows the machine's clock
//! while the store is in use, but never goes back and never advances more than a week at once. So a jump of the machine's clock forgets a week at
//! most, and programs learned while the clock was years ahead do not outweigh all others for years. A machine without a battery-backed clock starts
//! each boot in 1970; the time before its clock is set counts, and nothing is forgotten.

/// The half-life of weights in seconds.
pub const HALF_LIFE_S: f64 = 30.0 * 86_400.0;
/// The clock's longest step in seconds.
pub const LONGEST_STEP_S: i64 = 7 * 86_400;

/// The store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clock {
    /// The machine's time at the last reading, in seconds since 1970.
    pub machine_s: i64,
    /// The machine's latest time before it went back, if it did and has not jumped ahead since.
    pub before_s: Option<i64>,
    /// The store's own time in seconds.
    pub own_s: i64,
}

impl Clock {
    /// The clock after reading `now_s` from the machine.
    #[must_use]
    pub fn at(self, now_s: i64) -> Self {
        let Self { machine_s, before_s, own_s } = self;
        let latest_s = before_s.map_or(machine_s, |before_s| before_s.max(machine_s));
        let (step, before_s) = match now_s.saturating_sub(machine_s) {
            ..0 => (0, Some(latest_s)),
            step @ 0..=LONGEST_STEP_S => (step, before_s),
            _ => (now_s.saturating_sub(latest_s).clamp(0, LONGEST_STEP_S), None),
        };
        Self { machine_s: now_s, before_s, own_s: own_s.saturating_add(step) }
    }
}

/// The weight at `to_s` of a weight of `from_s`, both in seconds of the store's clock.
pub fn aged(weight: f64, from_s: i64, to_s: i64) -> f64 {
    let sound = if weight.is_finite() { weight.max(0.0) } else { 0.0 };
    sound * (-(to_s.saturating_sub(from_s).max(0) as f64) / HALF_LIFE_S).exp2()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY: i64 = 86_400;

    #[test]
    fn half_of_a_weight_is_left_after_a_month() {
        assert_eq!(aged(8.0, 0, 30 * DAY), 4.0);
        assert_eq!(aged(8.0, 0, 90 * DAY), 1.0);
        assert_eq!(aged(8.0, 5, 0), 8.0);
        assert_eq!(aged(f64::NAN, 0, 1), 0.0);
        assert_eq!(aged(1.0, i64::MIN, i64::MAX), 0.0);
    }

    const START: Clock = Clock { machine_s: 1_700_000_000, before_s: None, own_s: 0 };

    #[test]
    fn a_clock_jump_costs_a_week_at_most() {
        let ahead = START.at(START.machine_s + 3650 * DAY);
        assert_eq!(ahead.own_s, LONGEST_STEP_S);
        let back = ahead.at(START.machine_s + 60);
        assert_eq!(back.own_s, LONGEST_STEP_S);
        assert_eq!(back.at(START.machine_s + 60 + DAY).own_s, LONGEST_STEP_S + DAY);
        assert_eq!(START.at(i64::MIN).at(i64::MAX).own_s, LONGEST_STEP_S);
    }

    #[test]
    fn a_machine_that_boots_in_1970_forgets_nothing() {
        let mut clock = START;
        for boot in 1..100 {
            clock = clock.at(0).at(30).at(10).at(40).at(START.machine_s + boot * DAY);
        }
        // each boot's minute in 1970 counts too
        assert_eq!(clock.own_s, 99 * (DAY + 60));
    }

    proptest! {
        #[test]
        fn it_follows_a_sound_clock_and_never_goes_back(steps in proptest::collection::vec(0..LONGEST_STEP_S, 0..20), jump: i64) {
            let mut clock = START;
            for step in &steps {
                clock = clock.at(clock.machine_s + step);
            }
            prop_assert_eq!(clock.own_s, steps.iter().sum::<i64>());
            let jumped = clock.at(jump);
            prop_assert!(jumped.own_s >= clock.own_s && jumped.own_s - clock.own_s <= LONGEST_STEP_S);
        }
    }
}
