//! Third stage: read requests become device queues, each with its jobs in the order that suits the device. Reading ahead gives way to
//! others.
//!
//! ```text
//! requests ─ device queues (by mount, by disk) ─> one driver thread ─ jobs ─> workers (`read`)
//!                                   └─ every 20 ms: others' I/O, memory ─ give way ─> gate; a worker that hangs is given up
//! ```
//!
//! # Layout
//! - [`device_queue`]: which requests are on which disk (pure)
//! - [`order`]: in what order and pieces files are read (pure); `jobs`: in what order all of a device queue is done (pure)
//! - [`others_io`]: what others did on a disk: its counters without what our reads caused (pure)
//! - [`give_way`]: whether to go on, wait or stop (pure); [`limits`](Limits)
//! - `driver`: the thread that supervises one fetch; `device_run`: one device queue of it; `machine`: what `/proc` shows it

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

use self::device_run::Common;
use self::driver::{Driver, Known, Shared, key};
pub use self::limits::Limits;
use crate::disk::DiskProfile;
use crate::read::{Report, StuckWorkers};
use crate::request::{Priority, ReadRequest};

/// Starts fetches, and remembers between them what disks are like and which mounts hang. Clones are cheap and share that. Only one
/// fetch ahead should run at a time: two would give way to each other.
#[derive(Debug, Clone)]
pub struct Scheduler {
    common: Arc<Shareable>,
}

#[derive(Debug)]
struct Shareable {
    root: Root,
    limits: Limits,
    known: Arc<Mutex<Known>>,
    stuck: Arc<StuckWorkers>,
}

/// A fetch that was started. Dropping it stops it. The descriptor is readable, for poll(2), when it is over.
#[derive(Debug)]
pub struct Fetch {
    shared: Arc<Shared>,
}

impl Scheduler {
    /// Without profiles. `root` is the directory that paths begin at, with its `/proc` and `/sys`.
    pub fn new(root: Root, limits: Limits) -> Self {
        let common = Shareable { root, limits, known: Arc::default(), stuck: Arc::default() };
        Self { common: Arc::new(common) }
    }

    /// Sets the profiles of disks, whatever file system is on them. A disk without one is read as it says that it is.
    pub fn know(&self, profiles: Vec<DiskProfile>) {
        let mut known = self.common.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(profiles.into_iter().map(|profile| (key(&profile), profile)));
    }

    /// Starts reading. `requests` are in the order of their urgency. Returns at once: whatever opens or reads is done by
    /// threads.
    ///
    /// # Errors
    /// The kernel's answer if there is no descriptor or thread for it.
    pub fn start(&self, requests: Vec<ReadRequest>, priority: Priority) -> io::Result<Fetch> {
        let over = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(Shared::new(over));
        let common = Common {
            root: self.common.root.clone(),
            priority,
            limits: self.common.limits,
            stuck: Arc::clone(&self.common.stuck),
        };
        let driver = Driver { common, known: Arc::clone(&self.common.known), shared: Arc::clone(&shared) };
        std::thread::Builder::new().name("fetch".to_owned()).spawn(move || driver.run(requests))?;
        Ok(Fetch { shared })
    }

    /// The workers that wait for file systems that do not answer; with four of them nothing more is fetched until one is answered.
    pub fn stuck(&self) -> &Arc<StuckWorkers> {
        &self.common.stuck
    }
}

impl Fetch {
    /// Asks it to end; what is being read is read to its end. Returns at once.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Is it over?
    pub fn is_over(&self) -> bool {
        self.report().ended.is_some()
    }

    /// What came of it so far.
    pub fn report(&self) -> Report {
        self.shared.report()
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        self.stop();
    }
}

impl AsFd for Fetch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.over.as_fd()
    }
}
