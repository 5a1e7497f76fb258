//! Workers that are stuck on file systems that do not answer.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most stuck workers; then nothing is read until one returns.
pub(crate) const MOST: usize = 4;
/// A mount is used again so long after its last stuck worker has returned: a disk may have slept, or recovered from errors. The time doubles with each
/// worker that gets stuck there, at most so often.
const PAUSE: Duration = Duration::from_secs(600);
const MOST_DOUBLED: u32 = 8;

/// A mount that did not answer.
#[derive(Debug, Default)]
struct BarredMount {
    /// Its workers that have not returned.
    stuck: usize,
    /// How many got stuck so far.
    times: u32,
    /// When it is used again, once all have returned.
    until: Option<Instant>,
}

/// Shared by all fetches of a scheduler.
#[derive(Debug, Default)]
pub struct StuckWorkers {
    waiting: AtomicUsize,
    barred: Mutex<BTreeMap<u64, BarredMount>>,
}

impl StuckWorkers {
    /// Adds a worker; its mount is not used until it has returned, and for some time after that.
    pub(crate) fn add(&self, mount: u64) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut barred = self.mounts();
        let mount = barred.entry(mount).or_default();
        mount.stuck += 1;
        mount.times += 1;
    }

    /// A worker of this mount has returned, and ends.
    pub(crate) fn worker_returned(&self, mount: u64, now: Instant) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        if let Some(mount) = self.mounts().get_mut(&mount) {
            mount.stuck = mount.stuck.saturating_sub(1);
            mount.until = Some(now + PAUSE * (1 << mount.times.saturating_sub(1).min(MOST_DOUBLED)));
        }
    }

    /// The number of stuck workers.
    pub fn count(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether the limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.count() >= MOST
    }

    /// The mounts that are not used now.
    pub(crate) fn barred(&self, now: Instant) -> HashSet<u64> {
        let mounts = self.mounts();
        mounts.iter().filter(|(_, mount)| mount.is_barred(now)).map(|(dev, _)| *dev).collect()
    }

    /// Why nothing is read now, for people; `None` while anything is: a mount that does not answer keeps from no other one.
    pub(crate) fn why_off(&self) -> Option<String> {
        self.is_full().then(|| format!("{MOST} of its readers wait for file systems that do not answer"))
    }

    fn mounts(&self) -> MutexGuard<'_, BTreeMap<u64, BarredMount>> {
        self.barred.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BarredMount {
    fn is_barred(&self, now: Instant) -> bool {
        self.stuck > 0 || self.until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::makedev;

    use super::*;

    #[test]
    fn a_mount_is_tried_again_after_a_pause_that_doubles() {
        let (stuck, dev, now) = (StuckWorkers::default(), makedev(8, 1), Instant::now());
        let is_barred = |at| stuck.barred(at).contains(&dev);
        assert!(!is_barred(now));
        stuck.add(dev);
        assert!(is_barred(now + PAUSE * 1000), "its worker has not returned");
        stuck.worker_returned(dev, now);
        assert_eq!([PAUSE / 2, PAUSE].map(|since| is_barred(now + since)), [true, false]);
        stuck.add(dev);
        stuck.worker_returned(dev, now);
        assert_eq!([PAUSE, 2 * PAUSE].map(|since| is_barred(now + since)), [true, false]);
        (0..100).for_each(|_| stuck.add(dev));
        (0..99).for_each(|_| stuck.worker_returned(dev, now));
        assert!(is_barred(now + PAUSE * 1000), "one of many has not returned");
        stuck.worker_returned(dev, now);
        assert_eq!((is_barred(now + PAUSE * 1000), stuck.count()), (false, 0));
    }

    #[test]
    fn one_mount_that_hangs_ends_no_reading_elsewhere() {
        let stuck = StuckWorkers::default();
        (1..MOST as u32).for_each(|minor| stuck.add(makedev(8, minor)));
        assert_eq!(stuck.why_off(), None);
        stuck.add(makedev(8, 9));
        assert!(stuck.why_off().is_some_and(|why| why.contains("do not answer")));
    }
}
