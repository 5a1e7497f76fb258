//! The steps of a periodic daemon, derived from the times of events.

use eke_prefetch_model::predict::clock::LONGEST_STEP_S;

/// The times at which a daemon acts: multiples of its step. Its phase relative to the events is arbitrary.
#[derive(Debug, Clone, Copy)]
pub struct Steps {
    step_s: f64,
    /// The number of the next step; its time is this number times the step.
    next: Option<i64>,
}

impl Steps {
    /// A daemon with this step in seconds.
    pub fn new(step_s: f64) -> Self {
        Self { step_s, next: None }
    }

    /// Restarts at a time: the next step is the first one from then on.
    pub fn begin(&mut self, at_s: f64) {
        self.next = at_s.is_finite().then(|| (at_s / self.step_s).ceil() as i64);
    }

    /// The number of the next step up to a time; `None` if none is left. If the clock jumped back or by more than a
    /// week, it continues from there.
    pub fn due(&mut self, at_s: f64) -> Option<i64> {
        let ahead_s = at_s - self.next.map_or(f64::NAN, |next| next as f64 * self.step_s);
        if !(-2.0 * self.step_s..=LONGEST_STEP_S).contains(&ahead_s) {
            self.begin(at_s);
        }
        let due = self.next.filter(|next| *next as f64 * self.step_s <= at_s)?;
        self.next = Some(due + 1);
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_due_once_and_jumps_are_skipped() {
        let mut steps = Steps::new(10.0);
        let mut due = |at_s| std::iter::from_fn(|| steps.due(at_s)).collect::<Vec<_>>();
        assert_eq!(due(5.0), [] as [i64; 0]);
        assert_eq!(due(32.0), [1, 2, 3]);
        assert_eq!(due(32.0), [] as [i64; 0]);
        assert_eq!(due(4e12), [400_000_000_000]);
        assert_eq!(due(15.0), [] as [i64; 0]);
        assert_eq!(due(20.0), [2]);
        assert_eq!(due(f64::NAN), [] as [i64; 0]);
    }
}
