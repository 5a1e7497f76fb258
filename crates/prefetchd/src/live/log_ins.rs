//! Whose sessions have just begun. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

/// A log-in starts its programs within this time.
pub(super) const LASTS: Duration = Duration::from_secs(60);

/// The begin of each session, by its user, in time of CLOCK_MONOTONIC.
#[derive(Debug, Default)]
pub(super) struct LogIns(BTreeMap<u32, Duration>);

impl LogIns {
    /// A user's session began.
    pub fn begins(&mut self, user: u32, now: Duration) {
        self.0.retain(|_, begun| now.saturating_sub(*begun) < LASTS);
        self.0.insert(user, now);
    }

    /// Whether the user's programs of a log-in are still starting.
    pub fn has(&self, user: u32, now: Duration) -> bool {
        self.0.get(&user).is_some_and(|begun| now.saturating_sub(*begun) < LASTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_in_lasts_a_minute() {
        let (mut log_ins, s) = (LogIns::default(), Duration::from_secs);
        log_ins.begins(1000, s(5));
        assert!(log_ins.has(1000, s(64)) && !log_ins.has(1000, s(65)) && !log_ins.has(1001, s(5)));
        log_ins.begins(1001, s(100));
        assert_eq!(log_ins.0.len(), 1);
    }
}
