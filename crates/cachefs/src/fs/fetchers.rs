//! Reads that wait for the backing file, away from the sessions: a session that waited for the disk would hold up requests that
//! need none.
//!
//! A session answers a read of what is held. What is missing goes to the fetchers, threads that read from the backing file. What one of them is
//! reading already waits without a thread; when it has landed, threads that answer look again. The kernel bounds how many reads
//! wait (readers, and `max_background`), so the queues are not bounded here.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use eke_cache_store::{FileId, Key};
use fuser::ReplyData;

use super::Fs;
use super::error::errno;
use crate::node::Node;
use crate::tier::ready::{Prepared, Readiness};

/// A read that was not answered yet. Its node was looked up once.
struct Job {
    node: Arc<Node>,
    file: FileId,
    offset: u64,
    len: u32,
    /// It has waited for another's read already. The next time it is read by itself: else each of many readers of a block that
    /// cannot be kept would wait for all before it.
    waited: bool,
    reply: ReplyData,
}

/// Where sessions leave reads.
#[derive(Debug, Clone)]
struct Senders {
    landed: Sender<Job>,
    missing: Sender<Job>,
}

/// Threads to be.
#[derive(Debug)]
pub struct Fetchers {
    senders: Senders,
    landed: Receiver<Job>,
    missing: Receiver<Job>,
}

/// What one of them does.
type Body = Box<dyn FnOnce() + Send>;

impl Fetchers {
    /// None yet: they are started when there is something to serve.
    #[expect(clippy::new_without_default, reason = "two channels are no default value")]
    pub fn new() -> Self {
        let ((to_landed, landed), (to_missing, missing)) = (channel(), channel());
        Self { senders: Senders { landed: to_landed, missing: to_missing }, landed, missing }
    }

    /// Starts so many that read from the backing file, and so many that answer what has landed, by `spawn`, which gets each thread's name. They
    /// never end.
    ///
    /// # Errors
    /// Of `spawn`.
    pub fn start(
        self,
        fs: &Arc<Fs>,
        (fetching, answering): (usize, usize),
        mut spawn: impl FnMut(&str, Body) -> io::Result<()>,
    ) -> io::Result<()> {
        let reads = Reads::of(Arc::clone(fs), Some(&self));
        let (landed, missing) = (Arc::new(Mutex::new(self.landed)), Arc::new(Mutex::new(self.missing)));
        for _ in 0..fetching {
            spawn("fetch", each(&missing, &reads, Reads::fetch))?;
        }
        for _ in 0..answering {
            spawn("answer", each(&landed, &reads, Reads::take))?;
        }
        Ok(())
    }
}

fn each(jobs: &Arc<Mutex<Receiver<Job>>>, reads: &Reads, act: impl Fn(&Reads, Job) + Send + 'static) -> Body {
    let (jobs, reads) = (Arc::clone(jobs), reads.clone());
    let next = move || jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
    Box::new(move || {
        while let Ok(job) = next() {
            act(&reads, job);
        }
    })
}

/// Answers reads, or leaves them to the fetchers.
#[derive(Debug, Clone)]
pub(super) struct Reads {
    fs: Arc<Fs>,
    /// `None`: whoever reads waits for the backing file itself.
    senders: Option<Senders>,
}

impl Reads {
    pub fn of(fs: Arc<Fs>, fetchers: Option<&Fetchers>) -> Self {
        Self { fs, senders: fetchers.map(|fetchers| fetchers.senders.clone()) }
    }

    /// A read of the kernel.
    pub fn read(&self, number: u64, offset: u64, len: u32, reply: ReplyData) {
        match self.fs.nodes.get(number) {
            Ok(node) => {
                let file = self.fs.id(&node);
                self.take(Job { node, file, offset, len, waited: false, reply });
            }
            Err(e) => reply.error(errno(e)),
        }
    }

    /// Answers if all is resident; else others will. Without fetchers it waits itself.
    fn take(&self, job: Job) {
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

    /// As [`Reads::take`], but reads the backing file.
    fn fetch(&self, job: Job) {
        match (&self.senders, self.fs.tier.prepare(job.file, job.offset, job.len as usize)) {
            (Some(senders), Readiness::Flying(key)) if !job.waited => self.when_landed(senders, key, job),
            (_, Readiness::Resident(read)) => self.answer(job, Some(read)),
            _ => self.answer(job, None),
        }
    }

    fn when_landed(&self, senders: &Senders, key: Key, job: Job) {
        let job = Job { waited: true, ..job };
        let (landed, reads) = (senders.landed.clone(), self.clone());
        let word = move || {
            if let Err(unsent) = landed.send(job) {
                reads.answer(unsent.0, None);
            }
        };
        self.fs.tier.when_landed(key, Box::new(word));
    }

    fn answer(&self, job: Job, prepared: Option<Prepared<'_>>) {
        let Job { node, offset, len, reply, .. } = job;
        let mut reply = Some(reply);
        let done = self.fs.read_node(&node, offset, len, prepared, |data| reply.take().map(|r| r.data(data)));
        if let (Err(e), Some(reply)) = (done, reply) {
            reply.error(errno(e));
        }
    }
}
