//! Reads that wait for the backing file, on their own threads: a session that waited for the disk would delay requests that
//! need none.
//!
//! A session answers reads of resident blocks. Other reads go to the fetchers, threads that read the backing file, in an order of their
//! own (`read_order`). A read of a block that a fetcher is already reading waits without a thread; when the block has landed, answering
//! threads look it up again. The kernel bounds the number of waiting reads (readers, and `max_background`), so the queues here are
//! unbounded.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use eke_cache_store::{FileId, Key};
use fuser::ReplyData;

use super::Fs;
use super::error::errno;
use super::read_order::{Asked, Length, ReadOrder};
use crate::node::Node;
use crate::sync::lock;
use crate::tier::ready::{Prepared, Readiness};

/// How long a fetcher waits for a place of a long read before it looks whether the others hang.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// A read without an answer. Its node was looked up once.
#[derive(Debug)]
struct ReadJob {
    node: Arc<Node>,
    file: FileId,
    offset: u64,
    len: u32,
    /// It has already waited for another thread's read. Next time it is read alone: otherwise each of many readers of a
    /// block that cannot be kept would wait for all earlier ones.
    waited: bool,
    reply: ReplyData,
}

/// The queues for reads.
#[derive(Debug, Clone)]
struct Queues {
    landed: Sender<ReadJob>,
    missing: Arc<Missing>,
}

/// Reads of missing blocks.
#[derive(Debug, Default)]
struct Missing {
    waiting: Mutex<ReadOrder<ReadJob>>,
    added: Condvar,
}

impl Missing {
    fn push(&self, asked: &Asked, job: ReadJob) {
        lock(&self.waiting).push(asked, job, Instant::now());
        self.added.notify_one();
    }

    /// Waits for the next read.
    fn pop(&self) -> (ReadJob, Length) {
        let mut waiting = lock(&self.waiting);
        loop {
            match waiting.pop(Instant::now()) {
                Some(next) => return next,
                None if waiting.has_long() => {
                    let waited = self.added.wait_timeout(waiting, LOOK_AGAIN);
                    waiting = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                None => waiting = self.added.wait(waiting).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn done(&self, read: (FileId, Length), since: Instant) {
        let now = Instant::now();
        let mut waiting = lock(&self.waiting);
        waiting.done(read, now.saturating_duration_since(since), now);
        if matches!(read.1, Length::Long(_)) && waiting.has_long() {
            // It may begin now, and this thread may take a short one.
            self.added.notify_one();
        }
    }
}

/// The fetcher threads, before their start.
#[derive(Debug)]
pub struct Fetchers {
    queues: Queues,
    landed: Receiver<ReadJob>,
}

/// The body of a thread.
type Body = Box<dyn FnOnce() + Send>;

impl Fetchers {
    /// Not started. They are started when there is something to serve.
    #[expect(clippy::new_without_default, reason = "a channel is no default value")]
    pub fn new() -> Self {
        let (to_landed, landed) = channel();
        Self { queues: Queues { landed: to_landed, missing: Arc::default() }, landed }
    }

    /// Starts `fetching` threads that read the backing file and `answering` threads that answer landed reads. `spawn` gets
    /// each thread's name. They never end.
    ///
    /// # Errors
    /// Those of `spawn`.
    pub fn start(
        self,
        fs: &Arc<Fs>,
        (fetching, answering): (usize, usize),
        mut spawn: impl FnMut(&str, Body) -> io::Result<()>,
    ) -> io::Result<()> {
        let reads = ReadDispatch::of(Arc::clone(fs), Some(&self));
        let landed = Arc::new(Mutex::new(self.landed));
        for _ in 0..fetching {
            spawn("fetch", fetching_thread(&self.queues.missing, &reads))?;
        }
        for _ in 0..answering {
            spawn("answer", answering_thread(&landed, &reads))?;
        }
        Ok(())
    }
}

fn fetching_thread(missing: &Arc<Missing>, reads: &ReadDispatch) -> Body {
    let (missing, reads) = (Arc::clone(missing), reads.clone());
    Box::new(move || {
        loop {
            let (job, length) = missing.pop();
            let (read, since) = ((job.file, length), Instant::now());
            reads.fetch(job);
            missing.done(read, since);
        }
    })
}

fn answering_thread(landed: &Arc<Mutex<Receiver<ReadJob>>>, reads: &ReadDispatch) -> Body {
    let (landed, reads) = (Arc::clone(landed), reads.clone());
    let next = move || lock(&landed).recv();
    Box::new(move || {
        while let Ok(job) = next() {
            reads.take(job);
        }
    })
}

/// Answers reads, or passes them to the fetchers.
#[derive(Debug, Clone)]
pub(super) struct ReadDispatch {
    fs: Arc<Fs>,
    /// `None`: the session waits for the backing file itself.
    queues: Option<Queues>,
}

impl ReadDispatch {
    pub fn of(fs: Arc<Fs>, fetchers: Option<&Fetchers>) -> Self {
        Self { fs, queues: fetchers.map(|fetchers| fetchers.queues.clone()) }
    }

    /// A read request of the kernel. `here`: it never waits for the fetchers, nor they for it.
    pub fn read(&self, number: u64, offset: u64, len: u32, here: bool, reply: ReplyData) {
        match self.fs.nodes.get(number) {
            Ok(node) => {
                let file = self.fs.id(&node);
                let job = ReadJob { node, file, offset, len, waited: false, reply };
                if here { self.answer(job, None) } else { self.take(job) }
            }
            Err(e) => reply.error(errno(e)),
        }
    }

    /// Answers if all blocks are resident, or passes the read on. Without fetchers it waits itself.
    fn take(&self, job: ReadJob) {
        let Some(queues) = &self.queues else { return self.answer(job, None) };
        match self.fs.tier.prepare(job.file, job.offset, job.len as usize) {
            Readiness::Resident(read) => self.answer(job, Some(read)),
            Readiness::Flying(key) if !job.waited => self.when_landed(queues, key, job),
            Readiness::Flying(_) | Readiness::Missing => {
                let (file, offset, len) = (job.file, job.offset, job.len as usize);
                let size = self.fs.tier.known_size(file);
                queues.missing.push(&Asked { file, offset, len, size }, job);
            }
        }
    }

    /// As [`ReadDispatch::take`], but reads the backing file.
    fn fetch(&self, job: ReadJob) {
        match (&self.queues, self.fs.tier.prepare(job.file, job.offset, job.len as usize)) {
            (Some(queues), Readiness::Flying(key)) if !job.waited => self.when_landed(queues, key, job),
            (_, Readiness::Resident(read)) => self.answer(job, Some(read)),
            _ => self.answer(job, None),
        }
    }

    fn when_landed(&self, queues: &Queues, key: Key, job: ReadJob) {
        let job = ReadJob { waited: true, ..job };
        let (landed, reads) = (queues.landed.clone(), self.clone());
        let resume = move || {
            if let Err(unsent) = landed.send(job) {
                reads.answer(unsent.0, None);
            }
        };
        self.fs.tier.when_landed(key, Box::new(resume));
    }

    fn answer(&self, job: ReadJob, prepared: Option<Prepared<'_>>) {
        let ReadJob { node, offset, len, reply, .. } = job;
        let mut reply = Some(reply);
        let done = self.fs.read_node(&node, offset, len, prepared, |data| reply.take().map(|r| r.data(data)));
        if let (Err(e), Some(reply)) = (done, reply) {
            reply.error(errno(e));
        }
    }
}
