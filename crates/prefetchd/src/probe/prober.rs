//! Probes whether files are missing in memory.
//!
//! Most launches are warm, so a probe must be cheap: one thread, no disk I/O, no reads. It needs a thread because open(2) may hang. The caller waits
//! for a bounded time and treats a missing answer as a cold file system.

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
use crate::file::open::{OpenedFile, open, top};
use crate::file::resident::missing_bytes;
use crate::read::StuckWorkers;
use crate::request::{Priority, ReadRequest};
use eke_linux::io_class;
use eke_prefetch_model::pages::{PAGE_BYTES, Pages, Span};

/// The most hanging probes; then no other starts until one returns. A fetch that hangs on the same mount soon bars it.
const MOST: usize = 4;
/// A file counts as missing if more than one in this many probed pages is. Single pages may never be resident: the kernel reports the pages around a
/// fault as used even if they are not in memory.
const MISSING_SHARE: u64 = 8;
const STACK_BYTES: usize = 128 << 10;

/// The residency of a group of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Residency {
    /// All probed pages are in memory.
    Resident,
    /// Some are not.
    Missing,
    /// A file is not the learned one.
    Changed,
}

/// Probes files and counts running probes.
#[derive(Debug)]
pub struct Prober {
    root: Root,
    stuck: Arc<StuckWorkers>,
    under_way: Arc<AtomicUsize>,
}

impl Prober {
    /// `root` is the directory where paths begin. Mounts of stuck workers are skipped.
    pub fn new(root: Root, stuck: Arc<StuckWorkers>) -> Self {
        Self { root, stuck, under_way: Arc::default() }
    }

    /// The residency of each group of files, waiting for at most `at_most`. `None` for a group without an answer in time, because a path is looked up
    /// on a disk or a server hangs, or if the kernel does not tell; `None` for all while too many probes hang.
    ///
    /// # Errors
    /// The kernel's answer if no thread is left.
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
        let Some(groups) = self.without_barred(groups) else { return Ok(found) };
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

    /// Removes files on mounts that did not answer before. `None` if the mounts are unknown.
    fn without_barred(&self, groups: Vec<Arc<[ReadRequest]>>) -> Option<Vec<Arc<[ReadRequest]>>> {
        let barred = self.stuck.barred(Instant::now());
        if barred.is_empty() {
            return Some(groups);
        }
        let mounts = mountinfo::parse(&self.root.read_bytes("proc/self/mountinfo").ok()?);
        let answers =
            |request: &&ReadRequest| mount_number(request, &mounts).is_some_and(|dev| !barred.contains(&dev));
        Some(groups.iter().map(|requests| requests.iter().filter(answers).cloned().collect()).collect())
    }
}

/// Counts a running probe until dropped.
struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn wait(answers: &Receiver<(usize, Option<Residency>)>, found: &mut [Option<Residency>], at_most: Duration) {
    let until = Instant::now() + at_most;
    while let Ok((at, residency)) = answers.recv_timeout(until.saturating_duration_since(Instant::now())) {
        found[at] = residency;
    }
}

/// Stops early if the receiver is gone.
fn probe_all(
    root: &Path,
    page: PageSize,
    groups: &[Arc<[ReadRequest]>],
    priority: Priority,
    answers: &Sender<(usize, Option<Residency>)>,
) {
    let Ok(top) = top(root) else { return };
    // Without permission for the class, the process's class applies.
    let _ = io_class::set(priority.io_class());
    for (at, requests) in groups.iter().enumerate() {
        if answers.send((at, residency(&top, page, requests))).is_err() {
            return;
        }
    }
}

/// `None` if it is unknown: the kernel does not tell, or no file can be opened now.
fn residency(top: &OwnedFd, page: PageSize, requests: &[ReadRequest]) -> Option<Residency> {
    let mut is_known = requests.is_empty();
    for request in requests {
        match open(top, request) {
            Err(refusal) if refusal.changed => return Some(Residency::Changed),
            // Nothing can prefetch it now. If there is no descriptor left, the others cannot be opened either.
            Err(_) => {}
            Ok(opened) if is_missing(&opened, page, &request.pages).ok()? => return Some(Residency::Missing),
            Ok(_) => is_known = true,
        }
    }
    is_known.then_some(Residency::Resident)
}

fn is_missing(opened: &OpenedFile, page: PageSize, pages: &Pages) -> io::Result<bool> {
    let of = |span: &Span| {
        missing_bytes(page, &opened.fd, span.first.saturating_mul(PAGE_BYTES), span.bytes(), opened.bytes)
    };
    let missing: u64 = pages.spans().iter().map(of).sum::<io::Result<u64>>()?;
    Ok(missing > pages.bytes() / MISSING_SHARE)
}

#[cfg(test)]
#[path = "prober_tests.rs"]
mod tests;
