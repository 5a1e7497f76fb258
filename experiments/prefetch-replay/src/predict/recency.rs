//! Predicts the most recently used programs.

use super::{Chance, Predictor};
use eke_prefetch_model::predict::running::Running;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_model::user_event::{Event, UserEvent};

/// Maximum length of the list.
const LENGTH: usize = 2000;

/// The programs by their last start. The probability at `rank` is 1/(2 + rank): only the order is known, so all later
/// ranks together are about as likely as all earlier ones. It ignores the horizon.
#[derive(Debug, Clone, Default)]
pub struct Recency {
    /// The latest first.
    list: Vec<ProgramId>,
    running: Running,
}

impl Predictor for Recency {
    fn name(&self) -> &'static str {
        "recency"
    }

    fn observe(&mut self, happened: &UserEvent) {
        self.running.observe(happened);
        if let Event::Start(program) = happened.event {
            self.list.retain(|have| *have != program);
            self.list.insert(0, program);
            self.list.truncate(LENGTH);
        }
    }

    fn chances(&mut self, _now_s: f64, _horizon_s: f64) -> Vec<Chance> {
        let idle = self.list.iter().filter(|program| !self.running.has(**program));
        idle.enumerate()
            .map(|(at, program)| Chance { program: *program, probability: 1.0 / (2.0 + at as f64) })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_program_that_does_not_run_comes_first() {
        let mut recency = Recency::default();
        let (a, b, c) = (ProgramId(1), ProgramId(2), ProgramId(3));
        let events = [Event::Start(b), Event::Stop(b), Event::Start(a), Event::Stop(a), Event::Start(c)];
        for (at, event) in events.into_iter().enumerate() {
            recency.observe(&UserEvent { at_s: at as f64, user: 1, event });
        }
        let order: Vec<_> = recency.chances(9.0, 60.0).iter().map(|chance| chance.program).collect();
        assert_eq!(order, [a, b]);
    }
}
