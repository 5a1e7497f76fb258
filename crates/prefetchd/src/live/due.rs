//! When the next choice of reads ahead is due. Pure.

use std::time::Duration;

use eke_prefetch_model::choose::Occasion;

/// A launch has the CPU and the disk to itself for this long. The choice compares up to 12 programs, where one at exec has a single one, and reading ahead
/// would wait for the disk anyway.
const AFTER_START: Duration = Duration::from_secs(3);

/// The next choice; times are of CLOCK_MONOTONIC.
#[derive(Debug, Default)]
pub(super) struct Due(Option<(Occasion, Duration)>);

impl Due {
    /// A session began: its programs start at once.
    pub fn session(&mut self, now: Duration) {
        self.0 = Some((Occasion::Session, now));
    }

    /// A program started. Further starts do not put the choice off.
    pub fn start(&mut self, now: Duration) {
        self.0 = self.0.or(Some((Occasion::Ahead, now + AFTER_START)));
    }

    /// Something else changed what would be chosen.
    pub fn change(&mut self, now: Duration) {
        self.0 = self.0.or(Some((Occasion::Ahead, now)));
    }

    /// Whether it is due.
    pub fn is_due(&self, now: Duration) -> bool {
        self.0.is_some_and(|(_, at)| now >= at)
    }

    /// Its occasion, once.
    pub fn take(&mut self) -> Option<Occasion> {
        self.0.take().map(|(occasion, _)| occasion)
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
}
