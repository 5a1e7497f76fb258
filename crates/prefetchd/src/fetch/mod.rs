//! Reads what is wished into the page cache, in the order that suits the disk, and gives way to others.
//!
//! ```text
//! wants ─ lanes (by mount, by disk) ─> one driver thread ─ jobs ─> workers: open, compare, what is missing, read
//!                                         └─ every 20 ms: others' I/O, memory ─ give way ─> gate; who hangs is left behind
//! ```
//!
//! # Layout
//! - [`lanes`]: which wants are on which disk (pure)
//! - [`order`]: in what order and pieces files are read (pure); `jobs`: in what order all of a lane is done (pure)
//! - [`own`]: what others did on a disk: its counters without what our reads caused (pure)
//! - [`give_way`]: whether to go on, wait or stop (pure)
//! - [`report`]: what came of it, as data
//! - `open`: opens what is the file that was learned, and nothing else; `files`: what is open
//! - [`resident`]: which pages are there already; `extents`: where a file lies on the disk
//! - [`read`](mod@read): one piece, one directory
//! - `queue`: what is to be done, who does it, and what came of it; shared by the driver and the workers
//! - `worker`: a thread that opens files: the only kind that may hang
//! - `driver`: the thread that looks after one fetch; `lane_run`: one lane of it; `machine`: what `/proc` shows it
//! - `left_behind`: which threads hang, and on what
//! - [`glance`]: is something of a few files missing?
//!
//! # What is never done
//! A file is opened only after its number, size and time were compared by a descriptor that opens nothing (O_PATH), and only if
//! it is a regular file or a directory: a FIFO or a device that somebody puts there instead is not touched. Nothing is locked,
//! no process is traced or waited for.

mod driver;
mod extents;
mod files;
pub mod give_way;
pub mod glance;
mod jobs;
mod lane_run;
pub mod lanes;
mod left_behind;
mod machine;
mod open;
pub mod order;
pub mod own;
mod queue;
pub mod read;
pub mod report;
pub mod resident;
mod worker;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use eke_linux::Root;
use eke_linux::parse::mountinfo;
use rustix::event::{EventfdFlags, eventfd};

use self::driver::{Driver, Known, Shared, key};
use self::glance::{Glances, Seen};
use self::lane_run::Common;
use self::left_behind::LeftBehind;
pub use self::report::{Ended, Failure, Report};
use crate::disk::Figures;
use crate::io_class::Class;
use eke_prefetch_model::file_set::{Kind, Stamp};
use eke_prefetch_model::pages::Pages;

/// A part of a file that is wanted in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Want {
    /// Where it is, from the host's root, without symbolic links.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// What it must be still; `dev` is not compared but for [`Kind::Device`], whose own number it is.
    pub stamp: Stamp,
    /// Which pages; of a directory none.
    pub pages: Pages,
}

/// How urgent it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Haste {
    /// Before anybody asked: idle I/O class, and others come first.
    Ahead,
    /// For a program that has begun: the normal class, without giving way. It ends when its caller says that the launch is over.
    AtExec,
}

/// What a fetcher is held to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Ahead is read only while this much memory is available besides.
    pub reserve_bytes: u64,
    /// Others' disk must have been quiet for this long before reading ahead goes on.
    pub quiet: Duration,
    /// A worker that brings nothing for this long is left behind, on network file systems; on disks after three times as long, since
    /// the idle class may wait for others.
    pub patience: Duration,
    /// Reading ahead that waits for others longer than this, all in all, ends.
    pub longest_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            reserve_bytes: 256 << 20,
            quiet: Duration::from_secs(1),
            patience: Duration::from_secs(10),
            longest_wait: Duration::from_secs(600),
        }
    }
}

/// Starts fetches, and remembers between them what disks are like and which mounts hang. Cheap to clone; clones share. Of those
/// ahead one at a time is meant: two would give way to each other.
#[derive(Debug, Clone)]
pub struct Fetcher {
    common: Arc<Shareable>,
}

#[derive(Debug)]
struct Shareable {
    root: Root,
    limits: Limits,
    known: Arc<Mutex<Known>>,
    left_behind: Arc<LeftBehind>,
    glances: Glances,
}

/// A fetch that was started. Dropping it stops it. The descriptor is readable, for poll(2), when it is over.
#[derive(Debug)]
pub struct Fetch {
    shared: Arc<Shared>,
}

impl Fetcher {
    /// With nothing known. `root` is the directory that paths begin at, and has the `/proc` and `/sys` that are read.
    pub fn new(root: Root, limits: Limits) -> Self {
        let common = Shareable {
            root,
            limits,
            known: Arc::default(),
            left_behind: Arc::default(),
            glances: Glances::default(),
        };
        Self { common: Arc::new(common) }
    }

    /// From now on disks are read by these figures, whatever file system is on them; a disk without figures is read as it says
    /// that it is.
    pub fn know(&self, figures: Vec<Figures>) {
        let mut known = self.common.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(figures.into_iter().map(|figures| (key(&figures), figures)));
    }

    /// Starts reading. `wants` are in the order in which they are wanted. Returns at once: whatever opens or reads is done by
    /// threads.
    ///
    /// # Errors
    /// The kernel's answer if there is no descriptor or thread for it.
    pub fn start(&self, wants: Vec<Want>, haste: Haste) -> io::Result<Fetch> {
        let over = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let shared = Arc::new(Shared::new(over));
        let common = Common {
            root: self.common.root.clone(),
            haste,
            limits: self.common.limits,
            left_behind: Arc::clone(&self.common.left_behind),
        };
        let driver = Driver { common, known: Arc::clone(&self.common.known), shared: Arc::clone(&shared) };
        std::thread::Builder::new().name("fetch".to_owned()).spawn(move || driver.run(wants))?;
        Ok(Fetch { shared })
    }

    /// Glances at these files, in groups, and waits for it no longer than this. `None` for a group: no answer in time, as where a path is
    /// looked up on a disk first, or a server hangs.
    ///
    /// # Errors
    /// The kernel's answer if there is no thread for it.
    pub fn glance(
        &self,
        groups: Vec<Arc<[Want]>>,
        haste: Haste,
        at_most: Duration,
    ) -> io::Result<Vec<Option<Seen>>> {
        let groups = self.without_barred(groups);
        self.common.glances.at(&self.common.root, groups, haste, at_most)
    }

    /// What is on mounts that did not answer before is not asked for again.
    fn without_barred(&self, groups: Vec<Arc<[Want]>>) -> Vec<Arc<[Want]>> {
        let barred = self.common.left_behind.barred();
        if barred.is_empty() {
            return groups;
        }
        let mounts =
            mountinfo::parse(&self.common.root.read_bytes("proc/self/mountinfo").unwrap_or_default());
        let answers =
            |want: &&Want| lanes::mount_number(want, &mounts).is_some_and(|dev| !barred.contains(&dev));
        groups.iter().map(|wants| wants.iter().filter(answers).cloned().collect()).collect()
    }

    /// How many threads wait for file systems that do not answer; with four of them nothing more is fetched until one is answered.
    pub fn left_behind(&self) -> usize {
        self.common.left_behind.count()
    }
}

/// The class that it reads in.
fn io_class_of(haste: Haste) -> Class {
    if haste == Haste::Ahead { Class::Idle } else { Class::Normal }
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
