//! The thesis's baseline: the probability of a program is proportional to its number of starts.

use std::collections::BTreeMap;

use super::{Chance, Predictor, sort};
use eke_prefetch_model::predict::running::Running;
use eke_prefetch_model::program::ProgramId;
use eke_prefetch_model::user_event::{Event, UserEvent};

/// Counts starts. The probability of a program that does not run is its share of the starts of all programs that do not
/// run (thesis, section 6.3.2). It forgets nothing, and ignores users, time and horizon.
#[derive(Debug, Clone, Default)]
pub struct Naive {
    starts: BTreeMap<ProgramId, u64>,
    running: Running,
}

impl Predictor for Naive {
    fn name(&self) -> &'static str {
        "naive"
    }

    fn observe(&mut self, happened: &UserEvent) {
        self.running.observe(happened);
        if let Event::Start(program) = happened.event {
            *self.starts.entry(program).or_insert(0) += 1;
        }
    }

    fn chances(&mut self, _now_s: f64, _horizon_s: f64) -> Vec<Chance> {
        let idle: Vec<_> = self.starts.iter().filter(|(program, _)| !self.running.has(**program)).collect();
        let total: u64 = idle.iter().map(|(_, count)| **count).sum();
        let share = |count: u64| count as f64 / total as f64;
        let mut chances: Vec<_> =
            idle.iter().map(|(p, count)| Chance { program: **p, probability: share(**count) }).collect();
        sort(&mut chances);
        chances
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_among_those_that_do_not_run() {
        let mut naive = Naive::default();
        let (a, b, c) = (ProgramId(1), ProgramId(2), ProgramId(3));
        let start = Event::Start;
        let events = [start(a), start(b), Event::Stop(b), start(b), Event::Stop(b), start(c), Event::Stop(c)];
        for (at, event) in events.into_iter().enumerate() {
            naive.observe(&UserEvent { at_s: at as f64, user: 1, event });
        }
        let chances: Vec<_> = naive.chances(9.0, 60.0).iter().map(|c| (c.program, c.probability)).collect();
        assert_eq!(chances, [(b, 2.0 / 3.0), (c, 1.0 / 3.0)]);
    }
}
