//! A glance at a few files: is something of them missing in memory?
//!
//! Most launches are warm, so to find that out must cost next to nothing: one thread, no disk is looked at, nothing is read. It is a thread
//! since to open a file may hang; who asks waits for a few milliseconds, and takes no answer for a cold file system.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use eke_linux::Root;
use eke_model::units::PageSize;
use rustix::fd::OwnedFd;

use super::open::{Opened, open, top};
use super::resident::missing_bytes;
use super::{Haste, Want, io_class_of};
use crate::io_class;
use eke_prefetch_model::pages::{PAGE_BYTES, Pages, Span};

/// Glances that may hang; then nobody glances until one comes back. Mounts that hang are barred soon, by a fetch that hangs there too.
const MOST: usize = 4;
/// A file is missing if more than this part of what is looked at is: the kernel tells of pages around a fault that they are used whether they are
/// in memory or not, so single ones are never there.
const MISSING_SHARE: u64 = 8;
const STACK_BYTES: usize = 128 << 10;

/// What a glance at a program's files found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// What was looked at is in memory.
    There,
    /// A file is not.
    Missing,
    /// A file is not what was learned.
    Changed,
}

/// How many are under way.
#[derive(Debug, Clone, Default)]
pub(super) struct Glances(Arc<AtomicUsize>);

impl Glances {
    /// What is seen of each of these, within so long; `None` where that takes longer, or what hangs is too much already.
    pub(super) fn at(
        &self,
        root: &Root,
        files: Vec<Arc<[Want]>>,
        haste: Haste,
        at_most: Duration,
    ) -> io::Result<Vec<Option<Seen>>> {
        let mut seen = vec![None; files.len()];
        if files.is_empty() || self.0.load(Ordering::Relaxed) >= MOST {
            return Ok(seen);
        }
        let (tell, told) = channel();
        self.0.fetch_add(1, Ordering::Relaxed);
        let under_way = UnderWay(self.0.clone());
        let (top, page) = (root.path(""), root.page_size());
        let thread = std::thread::Builder::new().name("glance".to_owned()).stack_size(STACK_BYTES);
        thread.spawn(move || {
            let _under_way = under_way;
            look(&top, page, &files, haste, &tell);
        })?;
        wait(&told, &mut seen, at_most);
        Ok(seen)
    }
}

/// One fewer when it ends, or was never begun.
struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn wait(told: &Receiver<(usize, Seen)>, seen: &mut [Option<Seen>], at_most: Duration) {
    let until = Instant::now() + at_most;
    while let Ok((at, what)) = told.recv_timeout(until.saturating_duration_since(Instant::now())) {
        seen[at] = Some(what);
    }
}

/// Nobody listens any more: nothing else is looked at.
fn look(root: &Path, page: PageSize, files: &[Arc<[Want]>], haste: Haste, tell: &Sender<(usize, Seen)>) {
    let Ok(top) = top(root) else { return };
    // Without a class it looks as anybody would.
    let _ = io_class::set(io_class_of(haste));
    for (at, wants) in files.iter().enumerate() {
        if tell.send((at, seen(&top, page, wants))).is_err() {
            return;
        }
    }
}

fn seen(top: &OwnedFd, page: PageSize, wants: &[Want]) -> Seen {
    for want in wants {
        match open(top, want) {
            Err(refusal) if refusal.changed => return Seen::Changed,
            // It may be read another time, and by nobody now.
            Err(_) => {}
            Ok(opened) if is_missing(&opened, page, &want.pages) => return Seen::Missing,
            Ok(_) => {}
        }
    }
    Seen::There
}

fn is_missing(opened: &Opened, page: PageSize, pages: &Pages) -> bool {
    let of = |span: &Span| {
        missing_bytes(page, &opened.fd, span.first.saturating_mul(PAGE_BYTES), span.bytes(), opened.bytes)
    };
    let missing: u64 = pages.spans().iter().filter_map(|span| of(span).ok()).sum();
    missing > pages.bytes() / MISSING_SHARE
}
