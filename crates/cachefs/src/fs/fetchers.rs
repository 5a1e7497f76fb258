//! Reads that wait for the backing file, on their own threads: a session that waited for the disk would delay requests that
//! need none.
//!
//! A session answers reads of resident blocks. Other reads go to the fetchers, threads that read the backing file. A read of
//! a block that a fetcher is already reading waits without a thread; when the block has landed, answering threads look it up
//! again. The kernel bounds the number of waiting reads (readers, and `max_background`), so the queues here are unbounded.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use eke_cache_store::{FileId, Key};
use fuser::ReplyData;

use super::Fs;
use super::error::errno;
use crate::node::Node;
use crate::sync::lock;
use crate::tier::ready::{Prepared, Readiness};

/// A read without an answer. Its node was looked up once.
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
struct Senders {
    landed: Sender<ReadJob>,
    missing: Sender<ReadJob>,
}

/// The fetcher threads, before their start.
#[derive(Debug)]
pub struct Fetchers {
    senders: Senders,
    landed: Receiver<ReadJob>,
    missing: Receiver<ReadJob>,
}

/// The body of a thread.
type Body = Box<dyn FnOnce() + Send>;

impl Fetchers {
    /// Not started. They are started when there is something to serve.
    #[expect(clippy::new_without_default, reason = "two channels are no default value")]
    pub fn new() -> Self {
        let ((to_landed, landed), (to_missing, missing)) = (channel(), channel());
        Self { senders: Senders { landed: to_landed, missing: to_missing }, landed, missing }
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
        let (landed, missing) = (Arc::new(Mutex::new(self.landed)), Arc::new(Mutex::new(self.missing)));
        for _ in 0..fetching {
            spawn("fetch", each(&missing, &reads, ReadDispatch::fetch))?;
        }
        for _ in 0..answering {
            spawn("answer", each(&landed, &reads, ReadDispatch::take))?;
        }
        Ok(())
    }
}

fn each(
    jobs: &Arc<Mutex<Receiver<ReadJob>>>,
    reads: &ReadDispatch,
    act: impl Fn(&ReadDispatch, ReadJob) + Send + 'static,
) -> Body {
    let (jobs, reads) = (Arc::clone(jobs), reads.clone());
    let next = move || lock(&jobs).recv();
    Box::new(move || {
        while let Ok(job) = next() {
            act(&reads, job);
        }
    })
}

/// Answers reads, or passes them to the fetchers.
#[derive(Debug, Clone)]
pub(super) struct ReadDispatch {
    fs: Arc<Fs>,
    /// `None`: the session waits for the backing file itself.
    senders: Option<Senders>,
}

impl ReadDispatch {
    pub fn of(fs: Arc<Fs>, fetchers: Option<&Fetchers>) -> Self {
        Self { fs, senders: fetchers.map(|fetchers| fetchers.senders.clone()) }
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
        let Some(senders) = &self.senders else { return self.answer(job, None) };
        match self.fs.tier.prepare(job.file, job.offset, job.len as usize) {
            Readiness::Resident(read) => self.answer(job, Some(read)),
            Readiness::Flying(key) if !job.waited => self.when_landed(senders, key, job),
            Readiness::Flying(_) | Readiness::Missing => {
                if let Err(unsent) = senders.missing.send(job) {
                    self.answer(unsent.0, None);
                }
            }
        }
    }

    /// As [`ReadDispatch::take`], but reads the backing file.
    fn fetch(&self, job: ReadJob) {
        match (&self.senders, self.fs.tier.prepare(job.file, job.offset, job.len as usize)) {
            (Some(senders), Readiness::Flying(key)) if !job.waited => self.when_landed(senders, key, job),
            (_, Readiness::Resident(read)) => self.answer(job, Some(read)),
            _ => self.answer(job, None),
        }
    }

    fn when_landed(&self, senders: &Senders, key: Key, job: ReadJob) {
        let job = ReadJob { waited: true, ..job };
        let (landed, reads) = (senders.landed.clone(), self.clone());
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
