//! When the next choice of reads ahead is due. Pure.

use std::time::Duration;

use eke_prefetch_model::choose::Occasion;

/// A launch has the CPU and the disk to itself for this long. The choice compares up to 12 programs, where one at exec has a single one, and reading ahead
/// would wait for the disk anyway.
const AFTER_START: Duration = Duration::from_secs(3);

/// How often a choice goes on in a row. A CPU may be too slow for all programs each time.
const MOST_IN_A_ROW: u32 = 8;

/// The next choice; times are of CLOCK_MONOTONIC.
#[derive(Debug, Default)]
pub(super) struct Due {
    next: Option<(Occasion, Duration)>,
    /// How often the last one went on since something happened.
    in_a_row: u32,
}

impl Due {
    /// A session began: its programs start at once.
    pub fn session(&mut self, now: Duration) {
        *self = Self { next: Some((Occasion::Session, now)), in_a_row: 0 };
    }

    /// A program started. Further starts do not put the choice off.
    pub fn start(&mut self, now: Duration) {
        self.in_a_row = 0;
        self.next = self.next.or(Some((Occasion::Ahead, now + AFTER_START)));
    }

    /// Something else changed what would be chosen.
    pub fn change(&mut self, now: Duration) {
        self.next = self.next.or(Some((Occasion::Ahead, now)));
    }

    /// A choice was cut off, and goes on.
    pub fn go_on(&mut self, occasion: Occasion, now: Duration) {
        if self.in_a_row < MOST_IN_A_ROW {
            self.in_a_row += 1;
            self.next = self.next.or(Some((occasion, now)));
        }
    }

    /// Whether it is due.
    pub fn is_due(&self, now: Duration) -> bool {
        self.next.is_some_and(|(_, at)| now >= at)
    }

    /// Its occasion, once.
    pub fn take(&mut self) -> Option<Occasion> {
        self.next.take().map(|(occasion, _)| occasion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_waits_until_the_launch_has_begun_well_and_a_session_does_not() {
        let s = Duration::from_secs;
        let mut due = Due::default();
        assert!(!due.is_due(s(100)));
        due.start(s(100));
        due.start(s(102));
        assert_eq!((due.is_due(s(102)), due.is_due(s(103))), (false, true), "the first start counts");
        due.session(s(102));
        assert!(due.is_due(s(102)));
        assert_eq!((due.take(), due.take()), (Some(Occasion::Session), None));
        due.change(s(110));
        due.start(s(110));
        assert!(due.is_due(s(110)));
    }

    #[test]
    fn a_choice_that_was_cut_off_goes_on_for_its_occasion_and_not_for_ever() {
        let mut due = Due::default();
        let cut_off = |due: &mut Due| {
            due.go_on(Occasion::Session, Duration::ZERO);
            due.take()
        };
        for _ in 0..2 {
            let times = (0..100).filter(|_| cut_off(&mut due) == Some(Occasion::Session)).count();
            assert_eq!(times, MOST_IN_A_ROW as usize);
            due.start(Duration::ZERO);
            due.take();
        }
    }
}
