//! Third stage: sorts read requests into device queues and orders the jobs of each. Reading ahead gives way to others.
//!
//! ```text
//! requests ─ device queues (by mount, by disk) ─> one driver thread ─ jobs ─> workers (`read`)
//!                                   └─ every 20 ms: others' I/O, memory ─ give way ─> gate; stuck workers are abandoned
//! ```
//!
//! # Layout
//! - [`device_queue`]: sorts requests by disk (pure)
//! - [`order`]: orders the pieces of files (pure); `jobs`: orders all jobs of a device queue (pure)
//! - [`others_io`]: others' I/O on a disk: its counters without our own reads (pure)
//! - [`give_way`]: whether to continue, wait or stop (pure); [`limits`](Limits)
//! - `at_exec_pace`: how fast to read at exec, beside others and alone (pure)
//! - `driver`: the thread that supervises one fetch; `device_run`: one device queue of it; `machine`: counters from `/proc`

mod at_exec_pace;
mod device_queue;
mod device_run;
mod driver;
pub mod give_way;
mod jobs;
mod limits;
mod machine;
pub mod order;
pub mod others_io;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};

use eke_linux::Root;
use rustix::event::{EventfdFlags, eventfd};

use self::device_run::FetchContext;
use self::driver::{Driver, FetchState, Profiles, key};
pub use self::limits::Limits;
use crate::read::{FetchReport, StuckWorkers};
use crate::request::{Priority, ReadRequest};
use crate::trace::OthersReads;
use eke_prefetch_disk::DiskProfile;

/// Starts fetches, and keeps disk profiles and hanging mounts between them. Clones are cheap and share that state. Run only one fetch ahead at a
/// time: two would give way to each other.
#[derive(Debug, Clone)]
pub struct Scheduler {
    state: Arc<SchedulerState>,
    others_reads: Option<Arc<dyn OthersReads>>,
}

#[derive(Debug)]
struct SchedulerState {
    root: Root,
    limits: Limits,
    profiles: Arc<Mutex<Profiles>>,
    stuck: Arc<StuckWorkers>,
}

/// A running fetch. Dropping it stops it. The descriptor becomes readable, for poll(2), when the fetch is over.
#[derive(Debug)]
pub struct Fetch {
    shared: Arc<FetchState>,
    others_reads: Option<Arc<dyn OthersReads>>,
    /// The processes that it reads for.
    reads_for: Vec<u32>,
}

impl Scheduler {
    /// A scheduler without profiles. `root` is the directory where paths begin, with its `/proc` and `/sys`.
    pub fn new(root: Root, limits: Limits) -> Self {
        let state = SchedulerState { root, limits, profiles: Arc::default(), stuck: Arc::default() };
        Self { state: Arc::new(state), others_reads: None }
    }

    /// A scheduler with the limits of this machine's memory.
    pub fn of_machine(root: &Root) -> Self {
        Self::new(root.clone(), Limits::of(machine::total(root)))
    }

    /// The same scheduler with a count of others' reads, to which reading at exec adapts.
    #[must_use]
    pub fn beside(self, others_reads: Option<Arc<dyn OthersReads>>) -> Self {
        Self { others_reads, ..self }
    }

    /// Sets the profiles of disks, for every file system on them. Without one, a disk's own report is used.
    pub fn set_profiles(&self, profiles: Vec<DiskProfile>) {
        let mut known = self.state.profiles.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(profiles.into_iter().map(|profile| (key(&profile), profile)));
    }

    /// Starts a fetch. `requests` are in order of priority. Returns at once: threads open and read.
    ///
    /// # Errors
    /// The kernel's answer if no descriptor or thread is left.
    pub fn start(&self, requests: Vec<ReadRequest>, priority: Priority) -> io::Result<Fetch> {
        let over = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(FetchState::new(over));
        let context = FetchContext {
            root: self.state.root.clone(),
            priority,
            limits: self.state.limits,
            stuck: Arc::clone(&self.state.stuck),
            others_reads: self.others_reads.clone(),
        };
        let driver =
            Driver { context, profiles: Arc::clone(&self.state.profiles), shared: Arc::clone(&shared) };
        std::thread::Builder::new().name("fetch".to_owned()).spawn(move || driver.run(requests))?;
        Ok(Fetch { shared, others_reads: self.others_reads.clone(), reads_for: Vec::new() })
    }

    /// The workers stuck on file systems that do not answer. With four of them, fetches read nothing until one returns.
    pub fn stuck(&self) -> &Arc<StuckWorkers> {
        &self.state.stuck
    }
}

impl Fetch {
    /// It reads for this process, whose own reads are not others'.
    pub fn reads_for(&mut self, pid: u32) {
        self.others_reads.iter().for_each(|others| others.leave_out(pid));
        self.reads_for.push(pid);
    }

    /// Requests the end of the fetch; reads in flight complete. Returns at once.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Whether the fetch is over.
    pub fn is_over(&self) -> bool {
        self.report().ended.is_some()
    }

    /// The results so far.
    pub fn report(&self) -> FetchReport {
        self.shared.report()
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.stop();
        if let Some(others) = &self.others_reads {
            self.reads_for.iter().for_each(|pid| others.take_back(*pid));
        }
    }
}

impl AsFd for Fetch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.over.as_fd()
    }
}
