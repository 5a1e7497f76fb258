//! Which events a person sees: new ones, no repetition within a day, few in ten minutes. Pure.

use std::collections::VecDeque;

use eke_model::snapshot::Event;

/// Most notifications in [`WINDOW_S`]. More at a time are not read.
const MOST: usize = 3;
const WINDOW_S: u64 = 600;
/// The same sentence is shown again after a day.
const AGAIN_S: u64 = 86_400;
/// Sentences remembered: more than the agent keeps.
const REMEMBERED: usize = 64;

/// What was shown.
#[derive(Debug, Default)]
pub struct Limit {
    /// The newest event of earlier calls of the program, which it has shown.
    before_s: u64,
    shown: VecDeque<(u64, String)>,
    times: VecDeque<u64>,
    held_back: usize,
}

impl Limit {
    /// Shows only events after `before_s` (seconds since 1970).
    pub fn after(before_s: u64) -> Self {
        Self { before_s, ..Self::default() }
    }

    /// The text to show at `now_s`, if it is to be shown.
    pub fn admit(&mut self, event: &Event, now_s: u64) -> Option<String> {
        self.forget_the_future(now_s);
        let at_s = event.unix_s.min(now_s);
        let repeats = |(at, text): &(u64, String)| *text == event.text && at_s < at + AGAIN_S;
        if event.unix_s <= self.before_s || self.shown.iter().any(repeats) {
            return None;
        }
        if self.shown.len() == REMEMBERED {
            self.shown.pop_front();
        }
        self.shown.push_back((at_s, event.text.clone()));
        self.times.retain(|at| now_s < at + WINDOW_S);
        if self.times.len() >= MOST {
            self.held_back += 1;
            return None;
        }
        self.times.push_back(now_s);
        let more = match std::mem::take(&mut self.held_back) {
            0 => String::new(),
            n => format!(" Not shown since: {n} more; `eke status` lists them."),
        };
        Some(format!("{}{more}", event.named()))
    }

    /// Times after now are of a clock that was ahead. They would keep everything back until then.
    fn forget_the_future(&mut self, now_s: u64) {
        if self.before_s > now_s {
            self.before_s = 0;
        }
        self.shown.retain(|(at, _)| *at <= now_s);
        self.times.retain(|at| *at <= now_s);
    }
}

#[cfg(test)]
mod tests {
    use eke_model::snapshot::Program;

    use super::*;

    fn event(unix_s: u64, text: &str) -> Event {
        Event { unix_s, text: text.into(), important: true, ..Event::default() }
    }

    #[test]
    fn the_program_stands_first_if_the_agent_names_it() {
        let of = |name: Option<&str>| {
            let program = Some(Program { uid: 1000, name: name.map(Into::into) });
            let ended = Event { program, ..event(7, "Ended: process 7 of user 1000") };
            Limit::default().admit(&ended, 8).unwrap()
        };
        assert_eq!(of(Some("leak")), "\"leak\": Ended: process 7 of user 1000");
        assert_eq!(of(None), "Ended: process 7 of user 1000", "another user's");
    }

    #[test]
    fn a_sentence_is_shown_once_a_day() {
        let mut limit = Limit::after(99);
        let mut shown = |at, text| limit.admit(&event(at, text), at).is_some();
        assert!(!shown(99, "old"), "an earlier call has shown it");
        assert!(shown(100, "a") && !shown(100, "a") && !shown(86_499, "a") && shown(86_500, "a"));
    }

    #[test]
    fn a_flood_becomes_three_and_a_number() {
        let mut limit = Limit::default();
        let shown: Vec<_> =
            (1..=10).filter_map(|n| limit.admit(&event(n, &format!("event {n}")), n)).collect();
        assert_eq!(shown, ["event 1", "event 2", "event 3"]);
        let next = limit.admit(&event(700, "event 11"), 700).unwrap();
        assert_eq!(next, "event 11 Not shown since: 7 more; `eke status` lists them.");
        assert_eq!(limit.admit(&event(701, "event 12"), 701).as_deref(), Some("event 12"));
    }

    #[test]
    fn a_clock_that_was_ahead_keeps_nothing_back() {
        let ahead = 4_000_000_000;
        let mut limit = Limit::after(ahead);
        for n in 0..5 {
            limit.admit(&event(ahead + n, &format!("event {n}")), ahead + n);
        }
        assert!(limit.admit(&event(100, "event 1"), 100).is_some(), "the clock is right again");
        assert!(limit.admit(&event(101, "event 1"), 101).is_none());
        assert!(limit.admit(&event(ahead, "event 2"), 102).is_some(), "the agent keeps it");
        assert!(limit.admit(&event(ahead, "event 2"), 103).is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let mut limit = Limit::default();
        for n in 1..10_000 {
            limit.admit(&event(n, &format!("event {n}")), n);
        }
        assert!(limit.shown.len() <= REMEMBERED && limit.times.len() <= MOST);
    }
}
