//! The thread that supervises one fetch. It reads `/proc` and `/sys` and no other file, so it never hangs.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use eke_linux::parse::mountinfo;
use eke_linux::parse::mountinfo::Mount;

use super::device_queue::device_queues;
use super::device_run::{Common, DeviceRun, MemorySample};
use super::machine::{self, Memory};
use crate::disk::{DiskProfile, below, decide};
use crate::read::job::disks;
use crate::read::{DeviceQueue, Ended, Report};
use crate::request::{Priority, ReadRequest};

/// The sampling interval of others' I/O and of memory.
pub(super) const STEP: Duration = Duration::from_millis(20);
/// The interval of checks at exec, where it gives way to nobody: for the end, and for workers that hang.
const STEP_AT_EXEC: Duration = Duration::from_millis(5);

/// DiskProfile by the disks that they are of, or, without any, by the mount.
pub(super) type Known = BTreeMap<Vec<u64>, DiskProfile>;

/// The key of profile.
pub(super) fn key(profile: &DiskProfile) -> Vec<u64> {
    let disks = disks(profile);
    if disks.is_empty() { vec![profile.below.dev] } else { disks }
}

/// What the driver and the handle share.
#[derive(Debug)]
pub(super) struct Shared {
    stop: Mutex<bool>,
    stopped: Condvar,
    report: Mutex<Report>,
    /// An eventfd, readable when it is over.
    pub(super) over: OwnedFd,
}

impl Shared {
    pub(super) fn new(over: OwnedFd) -> Self {
        Self { stop: Mutex::new(false), stopped: Condvar::new(), report: Mutex::new(Report::default()), over }
    }

    pub(super) fn stop(&self) {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stopped.notify_all();
    }

    pub(super) fn report(&self) -> Report {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn publish(&self, report: Report) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }

    /// Waits so long, or until it is to stop; says whether it is.
    fn wait(&self, step: Duration) -> bool {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        if *stop {
            return true;
        }
        *self.stopped.wait_timeout(stop, step).unwrap_or_else(PoisonError::into_inner).0
    }

    fn say_over(&self) {
        // It cannot fail: nobody adds to it besides.
        let _ = rustix::io::write(&self.over, &1u64.to_ne_bytes());
    }
}

/// What the driver begins with.
pub(super) struct Driver {
    pub(super) common: Common,
    pub(super) known: Arc<Mutex<Known>>,
    pub(super) shared: Arc<Shared>,
}

impl Driver {
    /// Reads until all is read or it is to stop.
    pub(super) fn run(self, requests: Vec<ReadRequest>) {
        let report = if self.common.stuck.is_full() {
            let left_bytes = requests.iter().map(|request| request.pages.bytes()).sum();
            Report { left_bytes, ended: Some(Ended::Hangs), ..Report::default() }
        } else {
            self.fetch(requests)
        };
        self.shared.publish(report);
        self.shared.say_over();
    }

    fn fetch(&self, requests: Vec<ReadRequest>) -> Report {
        let (device_queues, base) = self.sort(requests);
        let began = Instant::now();
        let start = |device: DeviceQueue| DeviceRun::start(device, self.common.clone(), Duration::ZERO);
        let mut runs: Vec<DeviceRun> = device_queues.into_iter().map(start).collect();
        let mut memory = Watched::new(self.memory());
        let step = if self.common.priority == Priority::Ahead { STEP } else { STEP_AT_EXEC };
        let sum = |runs: &[DeviceRun]| runs.iter().fold(base.clone(), |sum, run| sum.with(&run.report()));
        while !runs.iter().all(DeviceRun::is_over) {
            if self.shared.wait(step) {
                runs.iter().for_each(|run| run.end(Ended::Stopped));
            }
            if runs.iter().all(DeviceRun::is_over) {
                break;
            }
            let sample = memory.sample(self.memory(), runs.iter().map(DeviceRun::own_bytes).sum());
            runs.iter_mut().for_each(|run| run.step(began.elapsed(), Instant::now(), sample));
            self.pause_if_stopping();
            // It ends when everything is closed.
            self.shared.publish(Report { ended: None, ..sum(&runs) });
        }
        sum(&runs)
    }

    /// A fetch that ends waits for its last reads, and samples no more often for that.
    fn pause_if_stopping(&self) {
        if self.shared.wait(Duration::ZERO) {
            std::thread::sleep(STEP_AT_EXEC);
        }
    }

    /// Memory counts only ahead.
    fn memory(&self) -> Memory {
        if self.common.priority == Priority::Ahead {
            machine::memory(&self.common.root)
        } else {
            Memory::default()
        }
    }

    fn sort(&self, requests: Vec<ReadRequest>) -> (Vec<DeviceQueue>, Report) {
        let mut report = Report { ended: Some(Ended::Done), ..Report::default() };
        let text = self.common.root.read_bytes("proc/self/mountinfo").unwrap_or_else(|e| {
            report.note(&format!("nothing is fetched: {e}"));
            Vec::new()
        });
        let mounts = mountinfo::parse(&text);
        let barred = self.common.stuck.barred();
        let (device_queues, refused) =
            device_queues(requests, &mounts, &barred, |mount| self.profile(mount, &mounts));
        for (request, why) in refused {
            report.left_bytes += request.pages.bytes();
            report.fail(request.path, why);
        }
        (device_queues, report)
    }

    /// What was measured of the disk, else what it says of itself.
    fn profile(&self, mount: &Mount, mounts: &[Mount]) -> DiskProfile {
        let below = below(&self.common.root, mount, mounts);
        let assumed = decide(below.clone(), None);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&key(&assumed)) {
            // The disk is known by another file system, perhaps; what is between is this one's own.
            Some(profile) => DiskProfile { below, ..profile.clone() },
            None => assumed,
        }
    }
}

/// Counters of memory, sample by sample.
struct Watched {
    before: Memory,
    own_before: u64,
}

impl Watched {
    fn new(before: Memory) -> Self {
        Self { before, own_before: 0 }
    }

    /// What was since the sample before, without what our own reads may have been.
    fn sample(&mut self, now: Memory, own_bytes: u64) -> MemorySample {
        let own = own_bytes.saturating_sub(self.own_before);
        let sample = MemorySample {
            available_bytes: now.available_bytes,
            refaulted_bytes: now
                .refaulted_bytes
                .saturating_sub(self.before.refaulted_bytes)
                .saturating_sub(own),
            reclaimed_bytes: now.reclaimed_bytes.saturating_sub(self.before.reclaimed_bytes),
        };
        self.before = now;
        self.own_before = own_bytes;
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_pages_that_come_back_harm_nobody() {
        let mut watched = Watched::new(Memory::default());
        let counters = |refaulted_bytes, reclaimed_bytes| Memory {
            available_bytes: 9,
            refaulted_bytes,
            reclaimed_bytes,
        };
        let sample = watched.sample(counters(300, 10), 256);
        assert_eq!((sample.refaulted_bytes, sample.reclaimed_bytes, sample.available_bytes), (44, 10, 9));
        assert_eq!(watched.sample(counters(310, 10), 300).refaulted_bytes, 0);
        assert_eq!(watched.sample(counters(320, 10), 300).refaulted_bytes, 10);
    }
}
