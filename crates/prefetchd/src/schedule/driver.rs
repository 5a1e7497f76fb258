//! The thread that supervises one fetch. It reads no file outside `/proc` and `/sys`, so it never hangs.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use eke_linux::parse::mountinfo;
use eke_linux::parse::mountinfo::Mount;

use super::device_queue::device_queues;
use super::device_run::{DeviceRun, FetchContext, MemorySample};
use super::machine::{self, Memory};
use crate::read::job::disks;
use crate::read::{DeviceQueue, FetchEnd, FetchReport, cpu_time};
use crate::request::{Priority, ReadRequest};
use eke_prefetch_disk::{DiskProfile, backing, decide};

/// The sampling interval of others' I/O while reading.
pub(super) const STEP: Duration = Duration::from_millis(20);
/// The same while reading waits for others. It goes on a second after the last of them, so more samples would only cost CPU: on a slow one 50 samples a
/// second took two fifths of it.
const STEP_WAITING: Duration = Duration::from_millis(100);
/// The shortest interval of memory's counters: the kernel sums `/proc/vmstat` over all CPUs at each read.
const MEMORY_STEP: Duration = Duration::from_millis(100);
/// The interval at exec: for the next phase.
const STEP_AT_EXEC: Duration = Duration::from_millis(5);
/// The same in the last phase, where others' reads are not sampled: only for the end, and for hanging workers.
const STEP_LAST_PHASE: Duration = Duration::from_millis(50);

/// Disk profiles by the numbers of their disks; by the mount's number if there are none.
pub(super) type Profiles = BTreeMap<Vec<u64>, DiskProfile>;

/// The key of a profile.
pub(super) fn key(profile: &DiskProfile) -> Vec<u64> {
    let disks = disks(profile);
    if disks.is_empty() { vec![profile.backing.dev] } else { disks }
}

/// The state that the driver and its handle share.
#[derive(Debug)]
pub(super) struct FetchState {
    stop: Mutex<bool>,
    stopped: Condvar,
    report: Mutex<FetchReport>,
    /// An eventfd, readable when the fetch is over.
    pub(super) over: OwnedFd,
}

impl FetchState {
    pub(super) fn new(over: OwnedFd) -> Self {
        Self {
            stop: Mutex::new(false),
            stopped: Condvar::new(),
            report: Mutex::new(FetchReport::default()),
            over,
        }
    }

    pub(super) fn stop(&self) {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stopped.notify_all();
    }

    pub(super) fn report(&self) -> FetchReport {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn publish(&self, report: FetchReport) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = report;
    }

    /// Waits for `step` or until the fetch is stopped; returns whether it is stopped.
    fn wait(&self, step: Duration) -> bool {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        if *stop {
            return true;
        }
        *self.stopped.wait_timeout(stop, step).unwrap_or_else(PoisonError::into_inner).0
    }

    fn signal_end(&self) {
        // Only this thread writes to it, so this cannot fail.
        let _ = rustix::io::write(&self.over, &1u64.to_ne_bytes());
    }
}

/// The driver's input.
pub(super) struct Driver {
    pub(super) context: FetchContext,
    pub(super) profiles: Arc<Mutex<Profiles>>,
    pub(super) shared: Arc<FetchState>,
}

impl Driver {
    /// Fetches until everything is read or the fetch is stopped.
    pub(super) fn run(self, requests: Vec<ReadRequest>) {
        self.context.priority.yield_cpu();
        let report = if self.context.stuck.is_full() {
            let left_bytes = requests.iter().map(|request| request.pages.bytes()).sum();
            FetchReport { left_bytes, ended: Some(FetchEnd::Hangs), ..FetchReport::default() }
        } else {
            self.fetch(requests)
        };
        let cpu_us = report.cpu_us + cpu_time().as_micros() as u64;
        self.shared.publish(FetchReport { cpu_us, ..report });
        self.shared.signal_end();
    }

    fn fetch(&self, requests: Vec<ReadRequest>) -> FetchReport {
        let (device_queues, base) = self.sort(requests);
        let began = Instant::now();
        let start = |device: DeviceQueue| DeviceRun::start(device, self.context.clone(), Duration::ZERO);
        let mut runs: Vec<DeviceRun> = device_queues.into_iter().map(start).collect();
        let mut memory = MemoryWatch::new(self.memory());
        let sum = |runs: &[DeviceRun]| runs.iter().fold(base.clone(), |sum, run| sum.with(&run.report()));
        while !runs.iter().all(DeviceRun::is_over) {
            let needs_nothing = match self.context.priority {
                Priority::Ahead => DeviceRun::is_waiting,
                Priority::AtExec => DeviceRun::is_in_last_phase,
            };
            let is_calm = runs.iter().all(|run| run.is_over() || needs_nothing(run));
            let is_paced = runs.iter().any(DeviceRun::is_paced);
            let step = step(self.context.priority, is_calm);
            if self.shared.wait(if is_paced { step.min(STEP) } else { step }) {
                runs.iter().for_each(|run| run.end(FetchEnd::Stopped));
            }
            if runs.iter().all(DeviceRun::is_over) {
                break;
            }
            let (at, own_bytes) = (began.elapsed(), runs.iter().map(DeviceRun::own_bytes).sum());
            let sample = memory.sample(at, own_bytes, || self.memory());
            runs.iter_mut().for_each(|run| run.step(at, Instant::now(), sample));
            self.pause_if_stopping();
            // It has ended only when all files are closed.
            self.shared.publish(FetchReport { ended: None, ..sum(&runs) });
        }
        sum(&runs)
    }

    /// Slows the loop while a stopped fetch waits for its last reads.
    fn pause_if_stopping(&self) {
        if self.shared.wait(Duration::ZERO) {
            std::thread::sleep(STEP_AT_EXEC);
        }
    }

    /// Memory matters only ahead.
    fn memory(&self) -> Memory {
        if self.context.priority == Priority::Ahead {
            machine::memory(&self.context.root)
        } else {
            Memory::default()
        }
    }

    fn sort(&self, requests: Vec<ReadRequest>) -> (Vec<DeviceQueue>, FetchReport) {
        let mut report = FetchReport { ended: Some(FetchEnd::Done), ..FetchReport::default() };
        let text = self.context.root.read_bytes("proc/self/mountinfo").unwrap_or_else(|e| {
            report.note(&format!("nothing is read: {e}"));
            Vec::new()
        });
        let mounts = mountinfo::parse(&text);
        let barred = self.context.stuck.barred(Instant::now());
        let (device_queues, refused) =
            device_queues(requests, &mounts, &barred, |mount| self.profile(mount, &mounts));
        for (request, why) in refused {
            report.left_bytes += request.pages.bytes();
            report.unreadable_bytes += request.pages.bytes();
            report.fail(request.path, why);
        }
        (device_queues, report)
    }

    /// The measured profile of a mount's disk, or the assumed one.
    fn profile(&self, mount: &Mount, mounts: &[Mount]) -> DiskProfile {
        let backing = backing(&self.context.root, mount, mounts);
        let assumed = decide(backing.clone(), None);
        let known = self.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(&key(&assumed)) {
            // The profile may come from another file system on this disk; the path to the disk is this one's own.
            Some(profile) => DiskProfile { backing, ..profile.clone() },
            None => assumed,
        }
    }
}

/// The time until the next sample; `is_calm`: all devices wait for others, or are in their last phase.
const fn step(priority: Priority, is_calm: bool) -> Duration {
    match priority {
        Priority::AtExec if is_calm => STEP_LAST_PHASE,
        Priority::AtExec => STEP_AT_EXEC,
        Priority::Ahead if is_calm => STEP_WAITING,
        Priority::Ahead => STEP,
    }
}

/// Memory counters, sample by sample.
struct MemoryWatch {
    before: Memory,
    own_before: u64,
    at: Duration,
}

impl MemoryWatch {
    fn new(before: Memory) -> Self {
        Self { before, own_before: 0, at: Duration::ZERO }
    }

    /// The change since the previous sample, without refaults that our own reads may have caused; none within [`MEMORY_STEP`], when `read` is not
    /// called.
    fn sample(&mut self, at: Duration, own_bytes: u64, read: impl FnOnce() -> Memory) -> MemorySample {
        if at.saturating_sub(self.at) < MEMORY_STEP {
            let available_bytes = self.before.available_bytes;
            return MemorySample { available_bytes, refaulted_bytes: 0, reclaimed_bytes: 0 };
        }
        let (now, own) = (read(), own_bytes.saturating_sub(self.own_before));
        let sample = MemorySample {
            available_bytes: now.available_bytes,
            refaulted_bytes: now
                .refaulted_bytes
                .saturating_sub(self.before.refaulted_bytes)
                .saturating_sub(own),
            reclaimed_bytes: now.reclaimed_bytes.saturating_sub(self.before.reclaimed_bytes),
        };
        (self.before, self.own_before, self.at) = (now, own_bytes, at);
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_refaults_do_not_count_as_harm() {
        let mut watch = MemoryWatch::new(Memory::default());
        let counters = |refaulted_bytes, reclaimed_bytes| Memory {
            available_bytes: 9,
            refaulted_bytes,
            reclaimed_bytes,
        };
        let mut sample = |at_ms, refaulted, own_bytes| {
            watch.sample(Duration::from_millis(at_ms), own_bytes, || counters(refaulted, 10))
        };
        let first = sample(100, 300, 256);
        assert_eq!((first.refaulted_bytes, first.reclaimed_bytes, first.available_bytes), (44, 10, 9));
        assert_eq!(sample(200, 310, 300).refaulted_bytes, 0);
        let between = sample(220, 1000, 300);
        assert_eq!((between.refaulted_bytes, between.available_bytes), (0, 9), "not read within 100 ms");
        assert_eq!(sample(300, 320, 300).refaulted_bytes, 10);
    }

    #[test]
    fn whoever_has_nothing_to_decide_looks_less_often() {
        for priority in [Priority::Ahead, Priority::AtExec] {
            assert!(step(priority, true) > step(priority, false));
        }
    }
}
