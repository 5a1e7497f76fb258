//! One device while it is read: its phases, its workers, its gate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eke_linux::Root;

use super::give_way::{Cause, GiveWay, Sample, Verdict};
use super::limits::Limits;
use super::others_io::{Did, Others, Own};
use super::{jobs, machine};
use crate::disk::counters;
use crate::read::{
    DeviceQueue, Ended, Files, Gate, Hanging, JobQueue, Report, Standing, StuckWorkers, Worker,
};
use crate::request::Priority;

/// Requests of one read that may be under way: a piece in parts of 128 KiB, the least that common disks take.
const REQUESTS_OF_A_READ: u64 = 8;
/// What the kernel may read beside a piece: metadata of the file.
const BESIDE_A_READ_BYTES: u64 = 256 << 10;
/// On disks, patience is this many times as long: the idle class may wait for others.
const DISKS_PATIENCE: u32 = 3;
/// For a sample, reads are waited for no longer than this; a piece takes a quarter of it.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// How long others are listened for where we may be in their way.
const LISTEN: Duration = Duration::from_millis(5);
/// At exec the arm would go back and forth between what the program reads and what is read for it, half of the time each. With so many
/// reads under way, which reach the disk in the order of their places, it goes over it once, and the program finds what it requests there. As many
/// as such disks queue (NCQ).
const AT_EXEC_BY_PLACE: u32 = 32;
/// How often it begins anew after memory was short.
const MOST_ANEW: u32 = 3;

/// What all device_queues of a fetch share.
#[derive(Debug, Clone)]
pub(super) struct Common {
    pub(super) root: Root,
    pub(super) priority: Priority,
    pub(super) limits: Limits,
    pub(super) stuck: Arc<StuckWorkers>,
}

/// What the driver saw of memory since the sample before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MemorySample {
    pub(super) available_bytes: u64,
    pub(super) refaulted_bytes: u64,
    pub(super) reclaimed_bytes: u64,
}

/// A device that is read.
#[derive(Debug)]
pub(super) struct DeviceRun {
    queue: Arc<JobQueue>,
    files: Arc<Files>,
    common: Common,
    disks: Vec<u64>,
    workers: u32,
    places_given: bool,
    anew: u32,
    others: Option<Others>,
    way: GiveWay,
    /// Does the kernel count what threads read? Some file systems have others read for them.
    kernel_counts: bool,
    /// What our threads had read by the last sample.
    read: BTreeMap<i32, u64>,
    /// All of it, at least.
    own_bytes: u64,
    waiting: Option<Cause>,
}

impl DeviceRun {
    /// With its first jobs; `at` is the time of the samples.
    pub(super) fn start(device: DeviceQueue, common: Common, at: Duration) -> Self {
        let first = jobs::first(&device);
        // Ahead, nobody reads until it was seen that nobody else does.
        let gate = if common.priority == Priority::Ahead { Gate::Shut } else { Gate::Open };
        let goes_over = common.priority == Priority::AtExec && device.profile.way.by_place;
        let queue = Arc::new(JobQueue::new(device, gate, goes_over));
        let cost = queue.device.profile.cost;
        let kernel_counts = machine::counts_reads(&common.root);
        if !kernel_counts {
            queue.note(
                "this kernel does not count what threads read (CONFIG_TASK_IO_ACCOUNTING): it is reckoned",
            );
        }
        let mut run = Self {
            disks: queue.device.disks(),
            way: GiveWay::new(common.limits, cost, at),
            queue,
            files: Arc::new(Files::new(common.root.path(""))),
            common,
            workers: 0,
            places_given: false,
            anew: 0,
            others: None,
            kernel_counts,
            read: BTreeMap::new(),
            own_bytes: 0,
            waiting: None,
        };
        run.queue.add(first, !run.by_place());
        run.sample_disk();
        // One thread is enough until a server has answered, which may hang.
        run.hire(if run.queue.device.is_network() { 1 } else { run.streams() });
        run
    }

    fn by_place(&self) -> bool {
        self.queue.device.profile.way.by_place
    }

    fn streams(&self) -> u32 {
        let streams = u32::try_from(self.queue.device.profile.way.streams).unwrap_or(1);
        if self.queue.is_in_order() { streams.max(AT_EXEC_BY_PLACE) } else { streams }
    }

    fn hire(&mut self, up_to: u32) {
        while self.workers < up_to {
            self.workers += 1;
            self.queue.comes();
            if let Err(e) = self.worker().start() {
                self.queue.goes();
                self.queue.note(&format!("a thread that reads cannot be started: {e}"));
                if self.workers == 1 {
                    self.queue.end(Ended::Errors);
                }
                return;
            }
        }
    }

    fn worker(&self) -> Worker {
        Worker {
            number: self.workers,
            queue: Arc::clone(&self.queue),
            stuck: Arc::clone(&self.common.stuck),
            files: Arc::clone(&self.files),
            priority: self.common.priority,
            page: self.common.root.page_size(),
        }
    }

    /// Bytes that were brought so far.
    pub(super) fn own_bytes(&self) -> u64 {
        self.own_bytes
    }

    /// Is nothing left to do, and everything closed?
    pub(super) fn is_over(&self) -> bool {
        self.queue.report().ended.is_some() && self.queue.standing().present == 0
    }

    /// What came of it so far.
    pub(super) fn report(&self) -> Report {
        self.queue.report()
    }

    /// Ends it.
    pub(super) fn end(&self, ended: Ended) {
        self.queue.end(ended);
    }

    /// Supervises it; to be called every [`super::driver::STEP`].
    pub(super) fn step(&mut self, at: Duration, now: Instant, memory: MemorySample) {
        self.leave_who_hangs(now);
        let standing = self.queue.standing();
        self.advance(&standing);
        if self.common.priority == Priority::Ahead {
            self.give_way(at, memory);
        }
    }

    /// Samples others' I/O and memory, and goes on, waits or ends.
    fn give_way(&mut self, at: Duration, memory: MemorySample) {
        if !self.disks.is_empty() {
            // What others do is exact only while none of ours is under way.
            self.queue.pause(LONGEST_PAUSE);
        }
        let sample = Sample {
            at,
            others: self.sample_disk(),
            available_bytes: memory.available_bytes,
            refaulted_bytes: memory.refaulted_bytes,
            reclaimed_bytes: memory.reclaimed_bytes,
        };
        let mut verdict = self.way.sample(sample);
        if verdict == Verdict::Go && self.way.is_unsure() {
            self.common.root.sleep(LISTEN);
            let others = self.sample_disk();
            verdict = self.way.listened(Sample {
                at: at + LISTEN,
                others,
                refaulted_bytes: 0,
                reclaimed_bytes: 0,
                ..sample
            });
        }
        self.follow(verdict);
    }

    /// The next phase, more workers, or the end.
    fn advance(&mut self, standing: &Standing) {
        if standing.fails {
            return self.queue.end(Ended::Errors);
        }
        if standing.answered {
            let most = self.streams().max(self.workers);
            self.hire(most);
        }
        if standing.waiting > 0 || standing.busy > 0 {
            return;
        }
        if standing.last {
            self.queue.end(Ended::Done);
        } else if !self.places_given {
            self.places_given = true;
            let (device, priority) = (&self.queue.device, self.common.priority);
            let then = self.queue.with_located(|located| {
                jobs::then(device, priority, |request| located.get(&request).map(Vec::as_slice))
            });
            self.queue.add(then, true);
        }
    }

    fn leave_who_hangs(&mut self, now: Instant) {
        let network = self.queue.device.is_network();
        let patience = self.common.limits.patience * if network { 1 } else { DISKS_PATIENCE };
        for hanging in self.queue.hanging(now, patience) {
            let why = format!(
                "its file system did not answer for {} s, and is not asked again",
                patience.as_secs()
            );
            if self.queue.leave(&hanging, why) {
                self.replace(&hanging);
            }
        }
    }

    fn replace(&mut self, hanging: &Hanging) {
        self.common.stuck.add(self.queue.device.requests[hanging.request].mount);
        if self.common.stuck.is_full() {
            self.queue.end(Ended::Hangs);
        } else {
            self.hire(self.workers + 1);
        }
    }

    /// What others did on the disk since the sample before.
    fn sample_disk(&mut self) -> Did {
        let own = self.own();
        if self.disks.is_empty() {
            return Did::default();
        }
        let text = self.common.root.read("proc/diskstats").unwrap_or_default();
        let now = counters::sum(&text, &self.disks);
        let between = self.queue.device.profile.below.cached_between;
        match &mut self.others {
            Some(others) => others.sample(now, own),
            None => {
                self.others = Some(Others::new(now, own, between));
                Did::default()
            }
        }
    }

    /// What our threads asked the disk for. Where the kernel does not count that: what was brought, and what may come.
    fn own(&mut self) -> Own {
        let standing = self.queue.standing();
        let busy = standing.busy as u64;
        for thread in &standing.threads {
            // A thread that ended keeps its last.
            let read = machine::thread_read_bytes(&self.common.root, *thread);
            self.read.extend(read.map(|bytes| (*thread, bytes)));
        }
        let counted: u64 = self.read.values().sum();
        if self.kernel_counts && counted < standing.fetched_bytes / 2 && standing.fetched_bytes > 1 << 20 {
            self.kernel_counts = false;
            self.queue.note("what its threads read here is not counted as theirs: it is reckoned");
        }
        let reckoned = standing.fetched_bytes + standing.busy_bytes;
        self.own_bytes = self.own_bytes.max(if self.kernel_counts { counted } else { reckoned });
        Own {
            read_bytes: self.own_bytes,
            most_in_flight: busy * REQUESTS_OF_A_READ,
            most_in_flight_bytes: standing.busy_bytes + busy * BESIDE_A_READ_BYTES,
        }
    }

    fn follow(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Go => {
                if self.waiting.take() == Some(Cause::Memory) {
                    self.begin_anew();
                }
                self.queue.set(Gate::Open);
            }
            Verdict::Wait(cause) => {
                self.queue.set(Gate::Shut);
                let for_memory = cause == Cause::Memory;
                if self.waiting.is_none_or(|before| for_memory && before != cause) {
                    self.queue.count_wait(for_memory);
                }
                self.waiting = Some(cause);
            }
            Verdict::Stop(cause) => self.queue.end(cause.into()),
        }
    }

    /// What was brought before memory was short may be gone: all is gone through again, and what is there is not read.
    fn begin_anew(&mut self) {
        if self.anew < MOST_ANEW && self.queue.report().ended.is_none() {
            self.anew += 1;
            self.places_given = false;
            self.queue.begin_anew(jobs::first(&self.queue.device), !self.by_place());
        }
    }
}
