//! When each disk was last used, by its counters. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use eke_prefetch_disk::counters::Counters;

/// A disk that nobody has used for this long may have stopped its motor: the shortest standby timeouts are of some minutes.
const MAY_SLEEP_AFTER: Duration = Duration::from_secs(300);

/// The disks by their numbers, each with its counters and the time when they were seen to move.
#[derive(Debug, Default)]
pub(super) struct LastUse {
    disks: BTreeMap<u64, (Counters, Duration)>,
}

impl LastUse {
    /// Takes the counters of all disks. A disk that is seen for the first time counts as used now.
    pub fn sample(&mut self, now: Duration, all: Vec<Counters>) {
        let before = std::mem::take(&mut self.disks);
        let used = |disk: Counters| match before.get(&disk.dev) {
            Some((counters, at)) if disk == *counters && disk.in_flight == 0 => *at,
            _ => now,
        };
        self.disks = all.into_iter().map(|disk| (disk.dev, (disk, used(disk)))).collect();
    }

    /// Whether a read could wake this disk.
    pub fn may_sleep(&self, disk: u64, now: Duration) -> bool {
        self.disks.get(&disk).is_some_and(|(_, at)| now.saturating_sub(*at) >= MAY_SLEEP_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_may_sleep_when_its_counters_have_not_moved_for_minutes() {
        let s = Duration::from_secs;
        let disk = |dev, reads, in_flight| Counters { dev, reads, in_flight, ..Counters::default() };
        let mut last_use = LastUse::default();
        last_use.sample(s(1000), vec![disk(1, 7, 0), disk(2, 7, 0), disk(3, 7, 0)]);
        last_use.sample(s(1200), vec![disk(1, 7, 0), disk(2, 8, 0), disk(3, 7, 1)]);
        let may_sleep = |last_use: &LastUse, at| [1, 2, 3, 4].map(|dev| last_use.may_sleep(dev, s(at)));
        assert_eq!(may_sleep(&last_use, 1299), [false; 4]);
        assert_eq!(may_sleep(&last_use, 1300), [true, false, false, false]);
        last_use.sample(s(1400), vec![disk(1, 8, 0), disk(2, 8, 0)]);
        assert_eq!(may_sleep(&last_use, 1500), [false, true, false, false], "it was used, and one is gone");
    }
}
