//! The jobs of a device, its workers, and the results. The driver and the workers share it.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::job::{DeviceQueue, Extent, Job, Piece};
use super::report::{FetchEnd, FetchReport};
use crate::file::open::Refusal;

/// A disk with this many errors is not read further: each error may take it seconds.
const MOST_ERRORS: u32 = 16;

/// The time a worker has to submit its read before the next one continues. Submission blocks while the disk's queue is full, and may hang.
const SUBMITS_WITHIN: Duration = Duration::from_secs(1);

/// A worker's number within its device.
pub(crate) type Number = u32;

/// Whether workers may take jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// They may.
    Open,
    /// Not now.
    Shut,
    /// Never again.
    Closed,
}

/// How fast workers take jobs: batch by batch. The disk is left alone after each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// The jobs of a batch.
    pub(crate) batch: usize,
    /// The most bytes of a read.
    pub(crate) read_bytes: u64,
    /// How long the disk is left alone, in percent of the time that the batch took.
    pub(crate) gap_percent: u32,
}

impl Pace {
    /// As fast as the workers can.
    pub(crate) const FREE: Self = Self { batch: usize::MAX, read_bytes: u64::MAX, gap_percent: 0 };
}

/// The current batch.
#[derive(Debug, Clone, Copy)]
struct Batch {
    began: Instant,
    /// When its latest job was done.
    done: Instant,
    /// How many of its jobs were taken.
    taken: usize,
}

impl Batch {
    fn new(now: Instant) -> Self {
        Self { began: now, done: now, taken: 0 }
    }

    /// When the next one may begin, once all its jobs are done.
    fn next_at(&self, pace: Pace) -> Instant {
        self.done + self.done.duration_since(self.began) * pace.gap_percent / 100
    }
}

/// The result of a job.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Bytes read from the disk, and bytes that were resident.
    Read { fetched: u64, resident: u64 },
    /// A directory was listed.
    Listed,
    /// A file's extents; `None` if its file system has none.
    Located(Option<Vec<Extent>>),
    /// The file has changed or cannot be opened; its other jobs are skipped.
    Refused(Refusal),
    /// The kernel failed to read `left` bytes; the others count.
    Failed { why: String, fetched: u64, resident: u64, left: u64 },
}

/// The queue of a device.
#[derive(Debug)]
pub(crate) struct JobQueue {
    state: Mutex<State>,
    changed: Condvar,
    /// Signals that no worker is busy.
    idle: Condvar,
    /// Whether reads must reach the disk in the order of jobs. Workers then submit in that order and wait in parallel.
    in_order: bool,
    pub(crate) device: DeviceQueue,
}

#[derive(Debug)]
struct State {
    gate: Gate,
    pace: Pace,
    batch: Batch,
    jobs: VecDeque<Job>,
    /// No more jobs will be added.
    last: bool,
    busy: BTreeMap<Number, (Job, Instant)>,
    /// The worker that is submitting a read, and since when.
    submitting: Option<(Number, Instant)>,
    stuck: HashSet<Number>,
    /// Workers that have started and not ended, without the stuck ones.
    present: usize,
    threads: BTreeMap<Number, i32>,
    refused: HashSet<usize>,
    /// Those of them that cannot be read now and have not changed.
    unreadable: HashSet<usize>,
    located: HashMap<usize, Vec<Extent>>,
    errors: u32,
    report: FetchReport,
}

/// A worker without progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hanging {
    pub(crate) worker: Number,
    pub(crate) request: usize,
}

impl JobQueue {
    pub(crate) fn new(device: DeviceQueue, gate: Gate, in_order: bool) -> Self {
        let state = State {
            gate,
            pace: Pace::FREE,
            batch: Batch::new(Instant::now()),
            jobs: VecDeque::new(),
            last: false,
            busy: BTreeMap::new(),
            submitting: None,
            stuck: HashSet::new(),
            present: 0,
            threads: BTreeMap::new(),
            refused: HashSet::new(),
            unreadable: HashSet::new(),
            located: HashMap::new(),
            errors: 0,
            report: FetchReport::default(),
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), idle: Condvar::new(), in_order, device }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends jobs; `last` if no more will follow.
    pub(crate) fn add(&self, jobs: Vec<Job>, last: bool) {
        let mut state = self.state();
        state.jobs.extend(jobs);
        state.last = last;
        self.changed.notify_all();
    }

    /// Replaces the pending jobs.
    pub(crate) fn restart(&self, jobs: Vec<Job>, last: bool) {
        self.state().jobs.clear();
        self.add(jobs, last);
    }

    /// Opens or shuts the gate; a closed gate stays closed.
    pub(crate) fn set(&self, gate: Gate) {
        let mut state = self.state();
        if state.gate != Gate::Closed && state.gate != gate {
            state.gate = gate;
            self.changed.notify_all();
        }
    }

    /// Sets the pace of what workers take from now on.
    pub(crate) fn set_pace(&self, pace: Pace) {
        let mut state = self.state();
        if state.pace != pace {
            state.pace = pace;
            self.changed.notify_all();
        }
    }

    /// Shuts the gate and waits until no worker is busy, for at most `longest`.
    pub(crate) fn pause(&self, longest: Duration) {
        self.set(Gate::Shut);
        let state = self.state();
        drop(self.idle.wait_timeout_while(state, longest, |state| !state.busy.is_empty()));
    }

    /// Waits for the next job of a worker; `None` if there will be none.
    pub(crate) fn take(&self, worker: Number) -> Option<Job> {
        let mut state = self.state();
        loop {
            let is_over = state.gate == Gate::Closed || state.errors >= MOST_ERRORS;
            if is_over || state.stuck.contains(&worker) {
                return None;
            }
            if let Some(wait) = state.waits_for(self.in_order, Instant::now()) {
                let waited = self.changed.wait_timeout(state, wait);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            if state.gate == Gate::Open {
                if let Some(job) = state.next() {
                    let now = Instant::now();
                    state.batch.taken = state.batch.taken.saturating_add(1);
                    state.busy.insert(worker, (job, now));
                    state.submitting =
                        matches!(job, Job::Read(_)).then_some((worker, now)).or(state.submitting);
                    return Some(job);
                }
                if state.last {
                    return None;
                }
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether reads must reach the disk in the order of jobs.
    pub(crate) fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// A worker has submitted its read, so the next one may submit.
    pub(crate) fn submitted(&self, worker: Number) {
        if self.state().ends_submission(worker) {
            self.changed.notify_one();
        }
    }

    /// Takes the result of a worker's job. `false` if the worker was abandoned meanwhile and must end.
    pub(crate) fn done(&self, worker: Number, job: Job, outcome: Outcome) -> bool {
        let mut state = self.state();
        if state.stuck.remove(&worker) {
            return false;
        }
        state.busy.remove(&worker);
        if state.ends_submission(worker) {
            self.changed.notify_one();
        }
        state.count(&self.device, job, outcome);
        state.batch.done = Instant::now();
        if state.busy.is_empty() {
            self.idle.notify_all();
        }
        true
    }

    /// Counts a starting worker.
    pub(crate) fn add_worker(&self) {
        self.state().present += 1;
    }

    /// Counts a worker that has ended, and its CPU time.
    pub(crate) fn remove_worker(&self, cpu: Duration) {
        let mut state = self.state();
        state.report.cpu_us += cpu.as_micros() as u64;
        state.present = state.present.saturating_sub(1);
    }

    /// Records a worker's thread id.
    pub(crate) fn set_thread(&self, worker: Number, thread: i32) {
        self.state().threads.insert(worker, thread);
    }

    /// Adds a note to the report.
    pub(crate) fn note(&self, note: &str) {
        self.state().report.note(note);
    }

    /// The workers that have been busy with one job for longer than `longer` at `now`.
    pub(crate) fn hanging(&self, now: Instant, longer: Duration) -> Vec<Hanging> {
        let state = self.state();
        let long = state.busy.iter().filter(|(_, (_, since))| now.saturating_duration_since(*since) > longer);
        long.map(|(worker, (job, _))| Hanging { worker: *worker, request: job.request() }).collect()
    }

    /// Abandons a worker and skips all jobs on its mount. `false` if it has just returned.
    pub(crate) fn abandon(&self, hanging: &Hanging, why: String) -> bool {
        let mut state = self.state();
        let Some((job, _)) = state.busy.remove(&hanging.worker) else { return false };
        state.stuck.insert(hanging.worker);
        state.present = state.present.saturating_sub(1);
        state.report.stuck_workers += 1;
        state.report.left_bytes += job.bytes();
        let mount = self.device.requests[hanging.request].mount;
        state.report.fail(self.path(hanging.request), why);
        let (out, kept) = state
            .jobs
            .iter()
            .copied()
            .partition::<VecDeque<Job>, _>(|job| self.device.requests[job.request()].mount == mount);
        state.jobs = kept;
        state.report.left_bytes += out.iter().map(Job::bytes).sum::<u64>();
        let on_it = self.device.requests.iter().enumerate().filter(|(_, on)| on.mount == mount);
        state.refused.extend(on_it.map(|(request, _)| request));
        true
    }

    fn path(&self, request: usize) -> PathBuf {
        self.device.requests[request].request.path.clone()
    }

    /// The status, for the driver.
    pub(crate) fn status(&self) -> QueueStatus {
        let state = self.state();
        QueueStatus {
            waiting: state.jobs.len(),
            busy: state.busy.len(),
            present: state.present,
            busy_bytes: state.busy.values().map(|(job, _)| job.bytes()).sum(),
            last: state.last,
            fails: state.errors >= MOST_ERRORS,
            answered: state.report.pieces + state.report.directories + state.report.located > 0,
            fetched_bytes: state.report.fetched_bytes,
            threads: state.threads.values().copied().collect(),
        }
    }

    /// Calls `then` with the extents found so far.
    pub(crate) fn with_located<T>(&self, then: impl FnOnce(&HashMap<usize, Vec<Extent>>) -> T) -> T {
        then(&self.state().located)
    }

    /// Counts a pause.
    pub(crate) fn count_wait(&self, for_memory: bool) {
        let mut state = self.state();
        let waits =
            if for_memory { &mut state.report.waits_for_memory } else { &mut state.report.waits_for_disk };
        *waits += 1;
    }

    /// Ends the work: pending jobs count as left.
    pub(crate) fn end(&self, ended: FetchEnd) {
        let mut state = self.state();
        state.gate = Gate::Closed;
        let left: u64 = state.jobs.drain(..).map(|job| job.bytes()).sum();
        state.report.left_bytes += left;
        state.report.end(ended);
        self.changed.notify_all();
    }

    /// The results so far.
    pub(crate) fn report(&self) -> FetchReport {
        self.state().report.clone()
    }
}

/// The status of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueStatus {
    /// Pending jobs.
    pub(crate) waiting: usize,
    /// Busy workers.
    pub(crate) busy: usize,
    /// Workers that have not ended.
    pub(crate) present: usize,
    /// The most bytes that busy workers read.
    pub(crate) busy_bytes: u64,
    /// No more jobs will be added.
    pub(crate) last: bool,
    /// Too many reads failed.
    pub(crate) fails: bool,
    /// At least one job was answered.
    pub(crate) answered: bool,
    /// Bytes that were read.
    pub(crate) fetched_bytes: u64,
    /// The workers' thread ids.
    pub(crate) threads: Vec<i32>,
}

impl State {
    /// How long a worker waits, at most, before it asks again for a job; `None` if it may take one now.
    fn waits_for(&mut self, in_order: bool, now: Instant) -> Option<Duration> {
        if self.gate != Gate::Open {
            return None;
        }
        if in_order && self.waits_for_submission() {
            return Some(SUBMITS_WITHIN);
        }
        if self.batch.taken < self.pace.batch {
            return None;
        }
        if !self.busy.is_empty() {
            return Some(SUBMITS_WITHIN);
        }
        let rest = self.batch.next_at(self.pace).saturating_duration_since(now);
        if !rest.is_zero() {
            return Some(rest);
        }
        self.batch = Batch::new(now);
        None
    }

    /// Whether the next job is a read and another worker is submitting, within its time.
    fn waits_for_submission(&self) -> bool {
        let is_submitting = self.submitting.is_some_and(|(_, since)| since.elapsed() < SUBMITS_WITHIN);
        is_submitting && matches!(self.jobs.front(), Some(Job::Read(_)))
    }

    /// Ends this worker's submission; `false` if it was not submitting.
    fn ends_submission(&mut self, worker: Number) -> bool {
        self.submitting.take_if(|(of, _)| *of == worker).is_some()
    }

    fn next(&mut self) -> Option<Job> {
        while let Some(job) = self.jobs.pop_front() {
            if !self.refused.contains(&job.request()) {
                return Some(self.cut(job));
            }
            self.leave(job);
        }
        None
    }

    /// The part of a job that the pace lets through; the rest is the next one.
    fn cut(&mut self, job: Job) -> Job {
        let Job::Read(piece) = job else { return job };
        let bytes = piece.bytes.min(self.pace.read_bytes);
        if bytes < piece.bytes {
            let rest = Piece { offset: piece.offset + bytes, bytes: piece.bytes - bytes, ..piece };
            self.jobs.push_front(Job::Read(rest));
        }
        Job::Read(Piece { bytes, ..piece })
    }

    /// Counts a job of a refused file.
    fn leave(&mut self, job: Job) {
        self.report.left_bytes += job.bytes();
        if self.unreadable.contains(&job.request()) {
            self.report.unreadable_bytes += job.bytes();
        }
    }

    fn count(&mut self, device: &DeviceQueue, job: Job, outcome: Outcome) {
        let path = || device.requests[job.request()].request.path.clone();
        let report = &mut self.report;
        match outcome {
            Outcome::Read { fetched, resident } => {
                report.fetched_bytes += fetched;
                report.resident_bytes += resident;
                report.pieces += u64::from(fetched > 0);
            }
            Outcome::Listed => report.directories += 1,
            Outcome::Located(extents) => {
                report.located += 1;
                self.located.extend(extents.map(|extents| (job.request(), extents)));
            }
            Outcome::Refused(Refusal { why, changed, is_gone }) => {
                if changed {
                    report.change(path());
                }
                if is_gone {
                    report.miss(path());
                }
                report.fail(path(), why);
                self.refused.insert(job.request());
                self.unreadable.extend((!changed).then_some(job.request()));
                self.leave(job);
            }
            Outcome::Failed { why, fetched, resident, left } => {
                report.fetched_bytes += fetched;
                report.resident_bytes += resident;
                report.left_bytes += left;
                report.pieces += 1;
                report.fail(path(), why);
                self.errors += 1;
            }
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
