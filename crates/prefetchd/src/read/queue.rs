//! What is to be done in a device, who does it, and what came of it. The driver and the workers share it.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::job::{DeviceQueue, Extent, Job};
use super::report::{Ended, Report};
use crate::file::open::Refusal;

/// A disk that answers with this many errors is left alone: each may take it seconds.
const MOST_ERRORS: u32 = 16;

/// A worker submits its read within this, or the next one goes on. Submitting waits while the disk's queue is full, and may hang.
const SUBMITS_WITHIN: Duration = Duration::from_secs(1);

/// A worker's number in its device.
pub(crate) type Number = u32;

/// May workers take jobs?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Yes.
    Open,
    /// Not now.
    Shut,
    /// Never again.
    Closed,
}

/// What came of a job.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Bytes that were read from the disk, and bytes that were resident.
    Read { fetched: u64, resident: u64 },
    /// A directory was gone through.
    Listed,
    /// A file's places, unless its file system does not tell.
    Located(Option<Vec<Extent>>),
    /// The request is not what was learned, or cannot be opened: nothing of it is tried again.
    Refused(Refusal),
    /// The kernel could not bring `left` bytes; what it brought counts.
    Failed { why: String, fetched: u64, resident: u64, left: u64 },
}

/// The queue of a device.
#[derive(Debug)]
pub(crate) struct JobQueue {
    state: Mutex<State>,
    changed: Condvar,
    /// Nobody is at work.
    idle: Condvar,
    /// Must reads reach the disk in the order of the jobs? Workers then submit in that order and wait in parallel.
    in_order: bool,
    pub(crate) device: DeviceQueue,
}

#[derive(Debug)]
struct State {
    gate: Gate,
    jobs: VecDeque<Job>,
    /// No more jobs come.
    last: bool,
    busy: BTreeMap<Number, (Job, Instant)>,
    /// The worker that submits a read now, and since when.
    submitting: Option<(Number, Instant)>,
    stuck: HashSet<Number>,
    /// Workers that were sent and have not gone home, without those left behind.
    present: usize,
    threads: BTreeMap<Number, i32>,
    refused: HashSet<usize>,
    located: HashMap<usize, Vec<Extent>>,
    errors: u32,
    report: Report,
}

/// A worker that brings nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hanging {
    pub(crate) worker: Number,
    pub(crate) request: usize,
}

impl JobQueue {
    pub(crate) fn new(device: DeviceQueue, gate: Gate, in_order: bool) -> Self {
        let state = State {
            gate,
            jobs: VecDeque::new(),
            last: false,
            busy: BTreeMap::new(),
            submitting: None,
            stuck: HashSet::new(),
            present: 0,
            threads: BTreeMap::new(),
            refused: HashSet::new(),
            located: HashMap::new(),
            errors: 0,
            report: Report::default(),
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), idle: Condvar::new(), in_order, device }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends these jobs; `last` says that no more come.
    pub(crate) fn add(&self, jobs: Vec<Job>, last: bool) {
        let mut state = self.state();
        state.jobs.extend(jobs);
        state.last = last;
        self.changed.notify_all();
    }

    /// Forgets the jobs that are waiting, and gives out others.
    pub(crate) fn begin_anew(&self, jobs: Vec<Job>, last: bool) {
        self.state().jobs.clear();
        self.add(jobs, last);
    }

    /// Opens or shuts the gate; a closed one stays closed.
    pub(crate) fn set(&self, gate: Gate) {
        let mut state = self.state();
        if state.gate != Gate::Closed && state.gate != gate {
            state.gate = gate;
            self.changed.notify_all();
        }
    }

    /// Lets nobody begin a job, and waits until nobody is at one, or so long.
    pub(crate) fn pause(&self, longest: Duration) {
        self.set(Gate::Shut);
        let state = self.state();
        drop(self.idle.wait_timeout_while(state, longest, |state| !state.busy.is_empty()));
    }

    /// The next job for a worker, as soon as there is one; `None` if there is none for it any more.
    pub(crate) fn take(&self, worker: Number) -> Option<Job> {
        let mut state = self.state();
        loop {
            if state.stuck.contains(&worker) || state.gate == Gate::Closed {
                return None;
            }
            if state.gate == Gate::Open && self.in_order && state.waits_for_submission() {
                let waited = self.changed.wait_timeout(state, SUBMITS_WITHIN);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            if state.gate == Gate::Open {
                if let Some(job) = state.next() {
                    let now = Instant::now();
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

    /// Must reads reach the disk in the order of the jobs?
    pub(crate) fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// A worker has submitted its read: the next one may submit.
    pub(crate) fn submitted(&self, worker: Number) {
        if self.state().ends_submission(worker) {
            self.changed.notify_one();
        }
    }

    /// A worker says what came of its job. `false` if it was left behind meanwhile: then nobody waits for it any more.
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
        if state.busy.is_empty() {
            self.idle.notify_all();
        }
        true
    }

    /// A worker is sent.
    pub(crate) fn comes(&self) {
        self.state().present += 1;
    }

    /// A worker has closed everything and goes home.
    pub(crate) fn goes(&self) {
        let mut state = self.state();
        state.present = state.present.saturating_sub(1);
    }

    /// A worker says which thread it is.
    pub(crate) fn is_thread(&self, worker: Number, thread: i32) {
        self.state().threads.insert(worker, thread);
    }

    /// Something that could not be had.
    pub(crate) fn note(&self, note: &str) {
        self.state().report.note(note);
    }

    /// The workers that have been at one job for longer than this; `now` is the time.
    pub(crate) fn hanging(&self, now: Instant, longer: Duration) -> Vec<Hanging> {
        let state = self.state();
        let long = state.busy.iter().filter(|(_, (_, since))| now.saturating_duration_since(*since) > longer);
        long.map(|(worker, (job, _))| Hanging { worker: *worker, request: job.request() }).collect()
    }

    /// Leaves a worker behind; nothing of its mount is touched again. `false` if it came back just now.
    pub(crate) fn leave(&self, hanging: &Hanging, why: String) -> bool {
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

    /// The state, for the driver.
    pub(crate) fn standing(&self) -> Standing {
        let state = self.state();
        Standing {
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

    /// The places of a file, once asked for.
    pub(crate) fn with_located<T>(&self, then: impl FnOnce(&HashMap<usize, Vec<Extent>>) -> T) -> T {
        then(&self.state().located)
    }

    /// Counts a wait.
    pub(crate) fn count_wait(&self, for_memory: bool) {
        let mut state = self.state();
        let waits =
            if for_memory { &mut state.report.waits_for_memory } else { &mut state.report.waits_for_disk };
        *waits += 1;
    }

    /// Ends it: no job is taken any more, and those that wait are what is left.
    pub(crate) fn end(&self, ended: Ended) {
        let mut state = self.state();
        state.gate = Gate::Closed;
        let left: u64 = state.jobs.drain(..).map(|job| job.bytes()).sum();
        state.report.left_bytes += left;
        state.report.end(ended);
        self.changed.notify_all();
    }

    /// What came of it so far.
    pub(crate) fn report(&self) -> Report {
        self.state().report.clone()
    }
}

/// How a device stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Jobs that wait.
    pub(crate) waiting: usize,
    /// Workers at work.
    pub(crate) busy: usize,
    /// Workers that have not gone home.
    pub(crate) present: usize,
    /// The bytes that they may bring.
    pub(crate) busy_bytes: u64,
    /// No more jobs come.
    pub(crate) last: bool,
    /// Too many reads failed.
    pub(crate) fails: bool,
    /// Something was answered.
    pub(crate) answered: bool,
    /// What was brought.
    pub(crate) fetched_bytes: u64,
    /// The workers' threads.
    pub(crate) threads: Vec<i32>,
}

impl State {
    /// Is the next job a read, while another worker submits and has not taken too long?
    fn waits_for_submission(&self) -> bool {
        let is_submitting = self.submitting.is_some_and(|(_, since)| since.elapsed() < SUBMITS_WITHIN);
        is_submitting && matches!(self.jobs.front(), Some(Job::Read(_)))
    }

    /// This worker's submission is over, if it was submitting.
    fn ends_submission(&mut self, worker: Number) -> bool {
        self.submitting.take_if(|(of, _)| *of == worker).is_some()
    }

    fn next(&mut self) -> Option<Job> {
        while let Some(job) = self.jobs.pop_front() {
            if !self.refused.contains(&job.request()) {
                return Some(job);
            }
            self.report.left_bytes += job.bytes();
        }
        None
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
            Outcome::Refused(Refusal { why, changed }) => {
                report.left_bytes += job.bytes();
                report.changed += u64::from(changed);
                report.fail(path(), why);
                self.refused.insert(job.request());
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
