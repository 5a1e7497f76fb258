//! A thread that opens files and reads them: the only kind that may hang.

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eke_model::units::PageSize;
use rustix::fs::{Advice, SeekFrom, fadvise, seek};
use rustix::time::{ClockId, clock_gettime};

use super::extents::extents;
use super::files::Files;
use super::job::{Job, Piece};
use super::pread::{Sink, list};
use super::queue::{JobQueue, Number, Outcome};
use super::stuck::StuckWorkers;
use crate::file::open::{OpenedFile, Refusal};
use crate::file::resident::{missing_bytes, pages_in};
use crate::request::Priority;
use eke_linux::io_class;
use eke_prefetch_model::pages::PAGE_BYTES;

/// Enough for a read; only used pages take memory.
const STACK_BYTES: usize = 256 << 10;

/// A worker's parameters.
#[derive(Debug, Clone)]
pub(crate) struct Worker {
    pub(crate) number: Number,
    pub(crate) queue: Arc<JobQueue>,
    pub(crate) stuck: Arc<StuckWorkers>,
    pub(crate) files: Arc<Files>,
    pub(crate) priority: Priority,
    pub(crate) page: PageSize,
}

impl Worker {
    /// Starts the thread. Nothing ever joins it.
    pub(crate) fn start(self) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("reader".to_owned()).stack_size(STACK_BYTES);
        thread.spawn(move || self.run()).map(drop)
    }

    fn run(self) {
        self.queue.set_thread(self.number, rustix::thread::gettid().as_raw_nonzero().get());
        if let Err(e) = io_class::set(self.priority.io_class()) {
            self.queue.note(&format!("the I/O class of its threads is the program's: {e}"));
        }
        self.priority.yield_cpu();
        match self.work_all() {
            None => {
                // Workers that are still busy close what they open after this.
                self.files.close();
                self.queue.remove_worker(cpu_time());
            }
            Some(abandoned) => {
                let mount = self.queue.device.requests[abandoned.request()].mount;
                self.stuck.worker_returned(mount, Instant::now());
            }
        }
    }

    /// Works until no job is left; returns the job with which the worker was abandoned, if it was.
    fn work_all(&self) -> Option<Job> {
        let mut sink = Sink::default();
        while let Some(job) = self.queue.take(self.number) {
            let outcome = self.work(job, &mut sink);
            if !self.queue.done(self.number, job, outcome) {
                return Some(job);
            }
        }
        None
    }

    fn work(&self, job: Job, sink: &mut Sink) -> Outcome {
        let opened = match self.files.get(&self.queue.device, job.request()) {
            Ok(opened) => opened,
            Err(refusal) => return Outcome::Refused(refusal),
        };
        match job {
            Job::List(_) => listed(&opened),
            Job::Locate(_) => Outcome::Located(extents(&opened.fd, opened.bytes).ok()),
            Job::Read(piece) => self.read(&opened, piece, sink),
        }
    }

    /// Reads the missing part of a piece. If residency is unknown, reads all of it and counts it as fetched.
    fn read(&self, opened: &OpenedFile, piece: Piece, sink: &mut Sink) -> Outcome {
        let requested = pages_in(piece.offset, piece.bytes, opened.bytes) * PAGE_BYTES;
        let missing = missing_bytes(self.page, &opened.fd, piece.offset, piece.bytes, opened.bytes);
        let missing = missing.unwrap_or(requested);
        let resident = requested.saturating_sub(missing);
        if missing == 0 {
            return Outcome::Read { fetched: 0, resident };
        }
        if self.queue.is_in_order() {
            submit(opened, piece);
            self.queue.submitted(self.number);
        }
        match sink.read(&opened.fd, piece.offset, piece.bytes) {
            Ok(_) => Outcome::Read { fetched: missing, resident },
            Err(e) => {
                // Failed pages are in the cache and count as resident. Pages that were read before the failure may have been resident.
                let fetched = e.done.saturating_sub(resident).min(missing) / PAGE_BYTES * PAGE_BYTES;
                let why = format!("{} bytes at {} cannot be read: {e}", piece.bytes, piece.offset);
                Outcome::Failed { why, fetched, resident, left: missing - fetched }
            }
        }
    }
}

/// CPU time of the calling thread so far.
pub(crate) fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap_or(0), time.tv_nsec.try_into().unwrap_or(0))
}

/// Lists from the begin: another worker may have listed it before.
fn listed(opened: &OpenedFile) -> Outcome {
    match seek(&opened.fd, SeekFrom::Start(0)).map_err(io::Error::from).and_then(|_| list(&opened.fd)) {
        Ok(_) => Outcome::Listed,
        Err(e) => Outcome::Refused(Refusal::now(format!("it cannot be listed: {e}"))),
    }
}

/// Submits a read without waiting: POSIX_FADV_WILLNEED, as readahead(2). The following read requests what the kernel leaves out or refuses.
fn submit(opened: &OpenedFile, piece: Piece) {
    let _ = fadvise(&opened.fd, piece.offset, NonZeroU64::new(piece.bytes), Advice::WillNeed);
}
