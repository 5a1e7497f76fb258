//! Reads that wait for the file below, away from the sessions: a session that waited for the disk would hold up requests that
//! need none.
//!
//! A session answers a read of what is held. What is missing goes to the fetchers, threads that read below. What one of them is
//! reading already waits without a thread; when it has landed, threads that answer look again. The kernel bounds how many reads
//! wait (readers, and `max_background`), so the queues are not bounded here.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use fuser::ReplyData;

use super::Serve;
use super::serve::errno;
use crate::tier::ready::Readiness;

/// A read that was not answered yet.
pub(super) struct Job {
    pub number: u64,
    pub offset: u64,
    pub len: u32,
    /// It has waited for another's read already. The next time it is read by itself: else each of many readers of a block that
    /// cannot be kept would wait for all before it.
    pub waited: bool,
    pub reply: ReplyData,
}

/// Where sessions leave reads.
#[derive(Debug, Clone)]
pub(super) struct Door {
    landed: Sender<Job>,
    missing: Sender<Job>,
}

/// Threads to be.
#[derive(Debug)]
pub struct Fetchers {
    door: Door,
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
        Self { door: Door { landed: to_landed, missing: to_missing }, landed, missing }
    }

    /// Has them read for this file system.
    pub fn serve(&self, serve: Serve) -> Serve {
        Serve { door: Some(self.door.clone()), ..serve }
    }

    /// Starts so many that read below, and so many that answer what has landed, by `spawn`, which gets each thread's name. They
    /// never end.
    ///
    /// # Errors
    /// Of `spawn`.
    pub fn start(
        self,
        serve: &Serve,
        (fetching, answering): (usize, usize),
        mut spawn: impl FnMut(&str, Body) -> io::Result<()>,
    ) -> io::Result<()> {
        let serve = self.serve(serve.clone());
        let (landed, missing) = (Arc::new(Mutex::new(self.landed)), Arc::new(Mutex::new(self.missing)));
        for _ in 0..fetching {
            spawn("fetch", each(&missing, &serve, Serve::fetch))?;
        }
        for _ in 0..answering {
            spawn("answer", each(&landed, &serve, Serve::take))?;
        }
        Ok(())
    }
}

fn each(jobs: &Arc<Mutex<Receiver<Job>>>, serve: &Serve, act: impl Fn(&Serve, Job) + Send + 'static) -> Body {
    let (jobs, serve) = (Arc::clone(jobs), serve.clone());
    let next = move || jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
    Box::new(move || {
        while let Ok(job) = next() {
            act(&serve, job);
        }
    })
}

impl Serve {
    /// Answers if all is held; else others will. Without fetchers it waits itself.
    pub(super) fn take(&self, job: Job) {
        match (&self.door, self.fs.readiness(&job)) {
            (Some(door), Readiness::Flying(key)) if !job.waited => self.when_landed(door, key, job),
            (Some(door), Readiness::Flying(_) | Readiness::Missing) => {
                if let Err(unsent) = door.missing.send(job) {
                    self.answer(unsent.0);
                }
            }
            _ => self.answer(job),
        }
    }

    /// As [`Serve::take`], but reads below.
    fn fetch(&self, job: Job) {
        match (&self.door, self.fs.readiness(&job)) {
            (Some(door), Readiness::Flying(key)) if !job.waited => self.when_landed(door, key, job),
            _ => self.answer(job),
        }
    }

    fn when_landed(&self, door: &Door, key: eke_cache_store::Key, job: Job) {
        let job = Job { waited: true, ..job };
        let (landed, serve) = (door.landed.clone(), self.clone());
        let word = move || {
            if let Err(unsent) = landed.send(job) {
                serve.answer(unsent.0);
            }
        };
        self.fs.tier.when_landed(key, Box::new(word));
    }

    fn answer(&self, job: Job) {
        let Job { number, offset, len, reply, .. } = job;
        let mut reply = Some(reply);
        let done = self.fs.read(number, offset, len, |data| reply.take().map(|r| r.data(data)));
        if let (Err(e), Some(reply)) = (done, reply) {
            reply.error(errno(e));
        }
    }
}

impl super::Fs {
    /// A node that is not there is an error, and held.
    fn readiness(&self, job: &Job) -> Readiness {
        self.nodes
            .get(job.number)
            .map_or(Readiness::Held, |node| self.tier.readiness(self.id(&node), job.offset, job.len as usize))
    }
}
