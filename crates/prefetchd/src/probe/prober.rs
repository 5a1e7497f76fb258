//! Is something of a few files missing in memory?
//!
//! Most launches are warm, so a probe must cost next to nothing: one thread, no disk is asked, nothing is read. It needs a thread because
//! open(2) may hang. The caller waits a few milliseconds, and takes no answer for a cold file system.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use eke_linux::Root;
use eke_linux::parse::mountinfo;
use eke_model::units::PageSize;
use rustix::fd::OwnedFd;

use crate::file::mount::mount_number;
use crate::file::open::{Opened, open, top};
use crate::file::resident::missing_bytes;
use crate::io_class;
use crate::read::StuckWorkers;
use crate::request::{Priority, ReadRequest};
use eke_prefetch_model::pages::{PAGE_BYTES, Pages, Span};

/// Probes that may hang; then none is started until one answers. A fetch that hangs on the same mount bars it soon.
const MOST: usize = 4;
/// A file counts as missing if more than this part of the probed pages is. Single pages may never be resident: the kernel reports pages
/// around a fault as used whether they are in memory or not.
const MISSING_SHARE: u64 = 8;
const STACK_BYTES: usize = 128 << 10;

/// The residency of a group of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residency {
    /// All that was probed is in memory.
    Resident,
    /// Some of it is not.
    Missing,
    /// A file is not the one that was learned.
    Changed,
}

/// Probes files, and counts the probes that are under way.
#[derive(Debug)]
pub struct Prober {
    root: Root,
    stuck: Arc<StuckWorkers>,
    under_way: Arc<AtomicUsize>,
}

impl Prober {
    /// `root` is the directory that paths begin at. Mounts of stuck workers are passed over.
    pub fn new(root: Root, stuck: Arc<StuckWorkers>) -> Self {
        Self { root, stuck, under_way: Arc::default() }
    }

    /// The residency of each group of files. Waits at most so long; `None` for a group without an answer in time, as where a path is looked
    /// up on a disk first or a server hangs, and for all while too many probes hang.
    ///
    /// # Errors
    /// The kernel's answer if there is no thread for it.
    pub fn probe(
        &self,
        groups: Vec<Arc<[ReadRequest]>>,
        priority: Priority,
        at_most: Duration,
    ) -> io::Result<Vec<Option<Residency>>> {
        let mut found = vec![None; groups.len()];
        if groups.is_empty() || self.under_way.load(Ordering::Relaxed) >= MOST {
            return Ok(found);
        }
        let groups = self.without_barred(groups);
        let (sender, answers) = channel();
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let under_way = UnderWay(self.under_way.clone());
        let (top, page) = (self.root.path(""), self.root.page_size());
        let thread = std::thread::Builder::new().name("probe".to_owned()).stack_size(STACK_BYTES);
        thread.spawn(move || {
            let _under_way = under_way;
            probe_all(&top, page, &groups, priority, &sender);
        })?;
        wait(&answers, &mut found, at_most);
        Ok(found)
    }

    /// Files on mounts that did not answer before are passed over.
    fn without_barred(&self, groups: Vec<Arc<[ReadRequest]>>) -> Vec<Arc<[ReadRequest]>> {
        let barred = self.stuck.barred();
        if barred.is_empty() {
            return groups;
        }
        let mounts = mountinfo::parse(&self.root.read_bytes("proc/self/mountinfo").unwrap_or_default());
        let answers =
            |request: &&ReadRequest| mount_number(request, &mounts).is_some_and(|dev| !barred.contains(&dev));
        groups.iter().map(|requests| requests.iter().filter(answers).cloned().collect()).collect()
    }
}

/// One fewer when it ends, or was never begun.
struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn wait(answers: &Receiver<(usize, Residency)>, found: &mut [Option<Residency>], at_most: Duration) {
    let until = Instant::now() + at_most;
    while let Ok((at, residency)) = answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
        found[at] = Some(residency);
    }
}

/// Ends as soon as nobody waits for the answers.
fn probe_all(
    root: &Path,
    page: PageSize,
    groups: &[Arc<[ReadRequest]>],
    priority: Priority,
    answers: &Sender<(usize, Residency)>,
) {
    let Ok(top) = top(root) else { return };
    // Without the right to a class it goes on in that of the process.
    let _ = io_class::set(priority.io_class());
    for (at, requests) in groups.iter().enumerate() {
        if answers.send((at, residency(&top, page, requests))).is_err() {
            return;
        }
    }
}

fn residency(top: &OwnedFd, page: PageSize, requests: &[ReadRequest]) -> Residency {
    for request in requests {
        match open(top, request) {
            Err(refusal) if refusal.changed => return Residency::Changed,
            // Unreadable now, for everybody: nothing to prefetch.
            Err(_) => {}
            Ok(opened) if is_missing(&opened, page, &request.pages) => return Residency::Missing,
            Ok(_) => {}
        }
    }
    Residency::Resident
}

fn is_missing(opened: &Opened, page: PageSize, pages: &Pages) -> bool {
    let of = |span: &Span| {
        missing_bytes(page, &opened.fd, span.first.saturating_mul(PAGE_BYTES), span.bytes(), opened.bytes)
    };
    let missing: u64 = pages.spans().iter().filter_map(|span| of(span).ok()).sum();
    missing > pages.bytes() / MISSING_SHARE
}
