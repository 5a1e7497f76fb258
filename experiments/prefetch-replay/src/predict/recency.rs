//! What was used last is used next.

use super::{Chance, Predictor};
use eke_prefetch_model::happened::{Event, Happened};
use eke_prefetch_model::predict::running::Running;
use eke_prefetch_model::program::ProgramId;

/// The longest list that is kept.
const LENGTH: usize = 2000;

/// The list of programs by their last start. The probability is 1/(2 + place), by the rule that all later places together are about as
/// likely as those before: only the order is known. The horizon does not change what it says.
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

    fn observe(&mut self, happened: &Happened) {
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
    fn the_last_that_does_not_run_comes_first() {
        let mut recency = Recency::default();
        let (a, b, c) = (ProgramId(1), ProgramId(2), ProgramId(3));
        let events = [Event::Start(b), Event::Stop(b), Event::Start(a), Event::Stop(a), Event::Start(c)];
        for (at, event) in events.into_iter().enumerate() {
            recency.observe(&Happened { at_s: at as f64, user: 1, event });
        }
        let order: Vec<_> = recency.chances(9.0, 60.0).iter().map(|chance| chance.program).collect();
        assert_eq!(order, [a, b]);
    }
}
