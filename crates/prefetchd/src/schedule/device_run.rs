//! One device during a fetch: its phases, workers and gate.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eke_linux::Root;

use super::at_exec_pace::AtExecPace;
use super::give_way::{Cause, GateDecision, GiveWay, Sample};
use super::limits::Limits;
use super::others_io::{OthersIo, OthersTracker, OwnIo};
use super::{jobs, machine};
use crate::file::descriptors;
use crate::read::{
    DeviceQueue, FetchEnd, FetchReport, Files, Gate, Hanging, JobQueue, QueueStatus, StuckWorkers, Worker,
};
use crate::request::Priority;
use crate::trace::OthersReads;
use eke_prefetch_disk::counters;

/// The most disk requests per read: a piece in parts of 128 KiB, the smallest limit of context disks.
const REQUESTS_OF_A_READ: u64 = 8;
/// The most bytes that the kernel reads besides a piece: metadata of the file.
const BESIDE_A_READ_BYTES: u64 = 256 << 10;
/// On disks the limit for stuck workers is this many times as long, because the idle class may wait for others.
const DISKS_PATIENCE: u32 = 3;
/// The longest wait for running reads before a sample; a piece takes a quarter of it.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// How long to observe others' I/O without ours, when ours may be slowing it.
const OBSERVE: Duration = Duration::from_millis(5);
/// At exec the arm would alternate between the program's reads and ours, at half speed each. With this many reads in flight, submitted in disk order,
/// the arm crosses the disk once, and the program finds its pages read. Such disks queue as many (NCQ).
const AT_EXEC_IN_ORDER: u32 = 32;
/// Ahead, a few more than the workers need.
const MOST_OPEN_AHEAD: usize = 8;
/// How often a fetch restarts after memory was short.
const MOST_RESTARTS: u32 = 3;

/// How many files may be open. Ahead nobody waits, and a file that is not being read should not keep its file system from being unmounted.
fn most_open(priority: Priority) -> usize {
    match priority {
        Priority::Ahead => descriptors::of_device().min(MOST_OPEN_AHEAD),
        Priority::AtExec => descriptors::of_device(),
    }
}

/// What all device queues of a fetch share.
#[derive(Debug, Clone)]
pub(super) struct FetchContext {
    pub(super) root: Root,
    pub(super) priority: Priority,
    pub(super) limits: Limits,
    pub(super) stuck: Arc<StuckWorkers>,
    pub(super) others_reads: Option<Arc<dyn OthersReads>>,
}

/// Memory counters since the previous sample.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct MemorySample {
    pub(super) available_bytes: u64,
    pub(super) refaulted_bytes: u64,
    pub(super) reclaimed_bytes: u64,
}

/// A device during a fetch.
#[derive(Debug)]
pub(super) struct DeviceRun {
    queue: Arc<JobQueue>,
    files: Arc<Files>,
    context: FetchContext,
    disks: Vec<u64>,
    /// At exec on a disk with an arm, if others' reads are counted.
    pace: Option<AtExecPace>,
    workers: u32,
    second_phase: bool,
    restarts: u32,
    others: Option<OthersTracker>,
    give_way: GiveWay,
    /// Whether the kernel counts the reads of our threads. Some file systems read in other threads.
    kernel_counts: bool,
    /// Bytes that each of our threads had read at the last sample.
    read: BTreeMap<i32, u64>,
    /// The sum of these, never decreasing.
    own_bytes: u64,
    waiting: Option<Cause>,
}

impl DeviceRun {
    /// Starts with the first jobs; `at` is the time base of samples.
    pub(super) fn start(device: DeviceQueue, context: FetchContext, at: Duration) -> Self {
        let first = jobs::first(&device);
        // Ahead, no worker reads before a sample has shown a quiet disk.
        let gate = if context.priority == Priority::Ahead { Gate::Shut } else { Gate::Open };
        let in_order = context.priority == Priority::AtExec && device.profile.strategy.in_disk_order;
        let queue = Arc::new(JobQueue::new(device, gate, in_order));
        let cost = queue.device.profile.cost;
        let kernel_counts = machine::counts_reads(&context.root);
        if !kernel_counts {
            queue.note(
                "this kernel does not count the reads of threads (CONFIG_TASK_IO_ACCOUNTING): they are estimated",
            );
        }
        let mut run = Self {
            pace: None,
            disks: queue.device.disks(),
            give_way: GiveWay::new(context.limits, cost, at),
            queue,
            files: Arc::new(Files::new(context.root.path(""), most_open(context.priority))),
            context,
            workers: 0,
            second_phase: false,
            restarts: 0,
            others: None,
            kernel_counts,
            read: BTreeMap::new(),
            own_bytes: 0,
            waiting: None,
        };
        run.pace = run.others_reads().map(|reads| AtExecPace::new(at, reads));
        run.queue.add(first, !run.in_disk_order());
        run.keep_pace(at);
        run.sample_disk();
        // A server may hang, so start with one thread until it has answered.
        run.hire(if run.queue.device.is_network() { 1 } else { run.streams() });
        run
    }

    fn in_disk_order(&self) -> bool {
        self.queue.device.profile.strategy.in_disk_order
    }

    fn streams(&self) -> u32 {
        let streams = u32::try_from(self.queue.device.profile.strategy.streams).unwrap_or(1);
        if self.queue.is_in_order() { streams.max(AT_EXEC_IN_ORDER) } else { streams }
    }

    fn hire(&mut self, up_to: u32) {
        while self.workers < up_to {
            self.workers += 1;
            self.queue.add_worker();
            if let Err(e) = self.worker().start() {
                self.queue.remove_worker(Duration::ZERO);
                self.queue.note(&format!("cannot start a reading thread: {e}"));
                if self.workers == 1 {
                    self.queue.end(FetchEnd::Errors);
                }
                return;
            }
        }
    }

    fn worker(&self) -> Worker {
        Worker {
            number: self.workers,
            queue: Arc::clone(&self.queue),
            stuck: Arc::clone(&self.context.stuck),
            files: Arc::clone(&self.files),
            priority: self.context.priority,
            page: self.context.root.page_size(),
        }
    }

    /// Bytes that were read so far.
    pub(super) fn own_bytes(&self) -> u64 {
        self.own_bytes
    }

    /// Whether all jobs are done and all files are closed.
    pub(super) fn is_over(&self) -> bool {
        self.queue.report().ended.is_some() && self.queue.status().present == 0
    }

    /// Whether reading waits for others.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Whether no further phase follows.
    pub(super) fn is_in_last_phase(&self) -> bool {
        self.second_phase || self.queue.status().last
    }

    /// The results so far.
    pub(super) fn report(&self) -> FetchReport {
        self.queue.report()
    }

    /// Ends the fetch of this device. Only the files that are being read stay open, until the kernel has read them.
    pub(super) fn end(&self, ended: FetchEnd) {
        self.queue.end(ended);
        self.files.close();
    }

    /// Supervises the device; called every [`super::driver::STEP`].
    pub(super) fn step(&mut self, at: Duration, now: Instant, memory: MemorySample) {
        self.abandon_hanging_workers(now);
        let status = self.queue.status();
        self.advance(&status);
        match self.context.priority {
            Priority::Ahead => self.sample_and_give_way(at, memory),
            Priority::AtExec => self.keep_pace(at),
        }
    }

    /// Others' reads of this disk so far, where reading at exec keeps a pace: reads in disk order are many at once.
    fn others_reads(&self) -> Option<u64> {
        let others_reads = self.context.others_reads.as_ref().filter(|_| self.queue.is_in_order())?;
        let own = self.queue.device.profile.backing.dev;
        let above = (!self.disks.contains(&own)).then_some(own);
        let devices: Vec<u64> = self.disks.iter().copied().chain(above).collect();
        Some(others_reads.so_far(&devices))
    }

    fn keep_pace(&mut self, at: Duration) {
        let reads = self.others_reads();
        if let (Some(pace), Some(reads)) = (&mut self.pace, reads) {
            self.queue.set_pace(pace.sample(at, reads));
        }
    }

    /// Whether it samples others' reads.
    pub(super) fn is_paced(&self) -> bool {
        self.pace.is_some()
    }

    /// Samples others' I/O and memory, then continues, waits or ends.
    fn sample_and_give_way(&mut self, at: Duration, memory: MemorySample) {
        if !self.disks.is_empty() {
            // The counters are exact only while none of our reads is in flight.
            self.queue.pause(LONGEST_PAUSE);
        }
        let sample = Sample {
            at,
            others: self.sample_disk(),
            available_bytes: memory.available_bytes,
            refaulted_bytes: memory.refaulted_bytes,
            reclaimed_bytes: memory.reclaimed_bytes,
        };
        let mut decision = self.give_way.sample(sample);
        if decision == GateDecision::Go && self.give_way.is_unsure() {
            self.context.root.sleep(OBSERVE);
            let others = self.sample_disk();
            decision = self.give_way.sample_alone(Sample {
                at: at + OBSERVE,
                others,
                refaulted_bytes: 0,
                reclaimed_bytes: 0,
                ..sample
            });
        }
        self.follow(decision);
    }

    /// Starts the next phase, hires workers, or ends.
    fn advance(&mut self, status: &QueueStatus) {
        if status.fails {
            return self.queue.end(FetchEnd::Errors);
        }
        if status.answered {
            let most = self.streams().max(self.workers);
            self.hire(most);
        }
        if status.waiting > 0 || status.busy > 0 {
            return;
        }
        if status.last {
            self.queue.end(FetchEnd::Done);
        } else if !self.second_phase {
            self.second_phase = true;
            let (device, priority) = (&self.queue.device, self.context.priority);
            let then = self.queue.with_located(|located| {
                jobs::then(device, priority, |request| located.get(&request).map(Vec::as_slice))
            });
            self.queue.add(then, true);
        }
    }

    fn abandon_hanging_workers(&mut self, now: Instant) {
        let network = self.queue.device.is_network();
        let patience = self.context.limits.patience * if network { 1 } else { DISKS_PATIENCE };
        for hanging in self.queue.hanging(now, patience) {
            let why =
                format!("its file system did not answer for {} s, and is left alone", patience.as_secs());
            if self.queue.abandon(&hanging, why) {
                self.replace(&hanging);
            }
        }
    }

    fn replace(&mut self, hanging: &Hanging) {
        self.context.stuck.add(self.queue.device.requests[hanging.request].mount);
        if self.context.stuck.is_full() {
            self.queue.end(FetchEnd::Hangs);
        } else {
            self.hire(self.workers + 1);
        }
    }

    /// I/O of others on the disk since the previous sample.
    fn sample_disk(&mut self) -> OthersIo {
        let own = self.own_io();
        if self.disks.is_empty() {
            return OthersIo::default();
        }
        let text = self.context.root.read("proc/diskstats").unwrap_or_default();
        let now = counters::sum(&text, &self.disks);
        let between = self.queue.device.profile.backing.cached_between;
        match &mut self.others {
            Some(others) => others.sample(now, own),
            None => {
                self.others = Some(OthersTracker::new(now, own, between));
                OthersIo::default()
            }
        }
    }

    /// Bytes that our threads requested from the disk. If the kernel does not count them: bytes read, plus those in flight.
    fn own_io(&mut self) -> OwnIo {
        let status = self.queue.status();
        let busy = status.busy as u64;
        for thread in &status.threads {
            // An ended thread keeps its last count.
            let read = machine::thread_read_bytes(&self.context.root, *thread);
            self.read.extend(read.map(|bytes| (*thread, bytes)));
        }
        let counted: u64 = self.read.values().sum();
        if self.kernel_counts && counted < status.fetched_bytes / 2 && status.fetched_bytes > 1 << 20 {
            self.kernel_counts = false;
            self.queue.note("the kernel counts the reads of these threads elsewhere: they are estimated");
        }
        let estimated = status.fetched_bytes + status.busy_bytes;
        self.own_bytes = self.own_bytes.max(if self.kernel_counts { counted } else { estimated });
        OwnIo {
            read_bytes: self.own_bytes,
            most_in_flight: busy * REQUESTS_OF_A_READ,
            most_in_flight_bytes: status.busy_bytes + busy * BESIDE_A_READ_BYTES,
        }
    }

    fn follow(&mut self, decision: GateDecision) {
        match decision {
            GateDecision::Go => {
                if self.waiting.take() == Some(Cause::Memory) {
                    self.restart();
                }
                self.queue.set(Gate::Open);
            }
            GateDecision::Wait(cause) => {
                self.queue.set(Gate::Shut);
                // It may wait for minutes, and an open file keeps its file system from being unmounted.
                self.files.close();
                let for_memory = cause != Cause::Disk;
                if self.waiting.is_none_or(|before| for_memory && before != cause) {
                    self.queue.count_wait(for_memory);
                }
                self.waiting = Some(cause);
            }
            GateDecision::Stop(cause) => self.queue.end(cause.into()),
        }
    }

    /// Pages that were read before memory was short may be gone: repeats all jobs, which skip resident pages.
    fn restart(&mut self) {
        if self.restarts < MOST_RESTARTS && self.queue.report().ended.is_none() {
            self.restarts += 1;
            self.second_phase = false;
            self.queue.restart(jobs::first(&self.queue.device), !self.in_disk_order());
        }
    }
}
