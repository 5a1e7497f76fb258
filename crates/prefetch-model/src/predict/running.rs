//! Which programs run, according to events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::clock::Clock;
use crate::program::ProgramId;
use crate::user_event::{Event, UserEvent};

/// A program without an event for this long counts as ended: its stop event was lost.
const FORGOTTEN_S: f64 = 3.0 * 86_400.0;

/// The longest step between two events, so that a clock jump ends nothing.
const LONGEST_STEP_S: f64 = 86_400.0;

/// The running programs with their start times.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Running {
    clock: Clock,
    since_s: BTreeMap<ProgramId, f64>,
}

impl Running {
    /// Applies an event. Returns whether it changed anything: a start of a running program and a stop of another do not.
    pub fn observe(&mut self, happened: &UserEvent) -> bool {
        let now_s = self.clock.advance_at_most(happened.at_s, LONGEST_STEP_S);
        self.since_s.retain(|_, since| now_s - *since <= FORGOTTEN_S);
        match happened.event {
            Event::Start(program) => self.since_s.insert(program, now_s).is_none(),
            Event::Stop(program) => self.since_s.remove(&program).is_some(),
            Event::Session => false,
        }
    }

    /// Whether a program runs.
    pub fn has(&self, program: ProgramId) -> bool {
        self.since_s.contains_key(&program)
    }

    /// All running programs, by id.
    pub fn all(&self) -> impl Iterator<Item = ProgramId> + '_ {
        self.since_s.keys().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(at_s: f64, event: Event) -> UserEvent {
        UserEvent { at_s, user: 1, event }
    }

    #[test]
    fn a_lost_stop_is_not_for_ever() {
        let (a, b) = (ProgramId(1), ProgramId(2));
        let mut running = Running::default();
        assert!(running.observe(&at(0.0, Event::Start(a))));
        assert!(!running.observe(&at(1.0, Event::Start(a))));
        assert!(!running.observe(&at(2.0, Event::Stop(b))));
        assert!(running.has(a));
        running.observe(&at(1e10, Event::Session));
        assert!(running.has(a), "a jump is one day");
        for day in 1..=3 {
            running.observe(&at(1e10 + f64::from(day) * 86_400.0, Event::Session));
        }
        assert!(!running.has(a));
    }
}
