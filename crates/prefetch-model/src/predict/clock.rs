//! A clock for predictors that never runs backwards and never jumps.

use serde::{Deserialize, Serialize};

/// The longest step between two events. A longer one is a clock that was set or a machine that was off; neither is a reason to forget.
pub const LONGEST_STEP_S: f64 = 7.0 * 86_400.0;

/// Seconds of learning: the sum of the steps between events, each from 0 to [`LONGEST_STEP_S`].
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Clock {
    /// Seconds counted so far.
    counted_s: f64,
    /// Wall-clock time of the last event.
    seen_s: Option<f64>,
}

impl Clock {
    /// Advances to the time of an event and returns the seconds counted. A time that is not finite changes nothing.
    pub fn advance(&mut self, at_s: f64) -> f64 {
        self.advance_at_most(at_s, LONGEST_STEP_S)
    }

    /// The same with another longest step.
    pub fn advance_at_most(&mut self, at_s: f64, longest_s: f64) -> f64 {
        if at_s.is_finite() {
            let step_s = self.seen_s.map_or(0.0, |seen| at_s - seen);
            self.counted_s += step_s.clamp(0.0, longest_s);
            self.seen_s = Some(at_s);
        }
        self.counted_s
    }

    /// Seconds counted so far.
    pub fn counted_s(&self) -> f64 {
        self.counted_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_neither_runs_back_nor_leaps() {
        let mut clock = Clock::default();
        let counted: Vec<f64> = [1000.0, 1010.0, 5.0, 6.0, 4e12, f64::NAN, f64::INFINITY, 4e12 + 1.0]
            .map(|at| clock.advance(at))
            .into();
        let week = LONGEST_STEP_S;
        assert_eq!(counted, [0.0, 10.0, 10.0, 11.0, 11.0 + week, 11.0 + week, 11.0 + week, 12.0 + week]);
    }
}
