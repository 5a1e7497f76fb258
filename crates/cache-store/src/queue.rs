//! Blocks that wait to be compressed after the reply went out: one bounded queue per CPU, with its own buffers. A full queue
//! refuses: a cache may always say no, and a reader never waits for it.

use std::collections::VecDeque;

use crate::epoch::Ticket;
use crate::error::OutOfMemory;
use crate::sync::{Condvar, Mutex, lock, wait};

/// A block to compress.
#[derive(Debug)]
pub(crate) struct Job {
    pub ticket: Ticket,
    pub block: Vec<u8>,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    /// Buffers that wait for blocks.
    spare: Vec<Vec<u8>>,
    /// Buffers in all: spare, lent to a submitter, with a job, lent to a worker.
    buffers: usize,
    overrun: u64,
}

/// One CPU's queue.
#[derive(Debug)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    depth: usize,
}

impl Queue {
    /// A queue of at most `depth` blocks, those in work included.
    pub fn new(depth: usize) -> Result<Self, OutOfMemory> {
        let mut waiting = Waiting::default();
        waiting.jobs.try_reserve_exact(depth)?;
        waiting.spare.try_reserve_exact(depth)?;
        Ok(Self { waiting: Mutex::new(waiting), depth })
    }

    /// Copies a block in, without the lock. False: the queue is full, or there is no memory.
    pub fn push(&self, ticket: Ticket, block: &[u8]) -> bool {
        let Some(mut buffer) = self.lend() else { return false };
        if buffer.try_reserve_exact(block.len()).is_err() {
            self.lose();
            return false;
        }
        buffer.extend_from_slice(block);
        lock(&self.waiting).jobs.push_back(Job { ticket, block: buffer });
        true
    }

    /// An empty buffer, if fewer than `depth` are in use.
    fn lend(&self) -> Option<Vec<u8>> {
        let mut waiting = lock(&self.waiting);
        if let Some(spare) = waiting.spare.pop() {
            return Some(spare);
        }
        if waiting.buffers == self.depth {
            waiting.overrun += 1;
            return None;
        }
        waiting.buffers += 1;
        Some(Vec::new())
    }

    fn lose(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.buffers -= 1;
        waiting.overrun += 1;
    }

    /// Takes the oldest jobs out, as many as `jobs` has room for.
    pub fn pop_into(&self, jobs: &mut Vec<Job>) {
        let room = jobs.capacity() - jobs.len();
        let mut waiting = lock(&self.waiting);
        let count = waiting.jobs.len().min(room);
        jobs.extend(waiting.jobs.drain(..count));
    }

    /// Takes buffers back from jobs that are done.
    pub fn give_back(&self, jobs: &mut Vec<Job>) {
        let mut waiting = lock(&self.waiting);
        for mut job in jobs.drain(..) {
            job.block.clear();
            waiting.spare.push(job.block);
        }
    }

    /// Frees the buffers that nobody uses.
    pub fn trim(&self) {
        let mut waiting = lock(&self.waiting);
        waiting.buffers -= waiting.spare.len();
        waiting.spare.clear();
    }

    /// Buffers in all, and blocks refused so far.
    pub fn counts(&self) -> (usize, u64) {
        let waiting = lock(&self.waiting);
        (waiting.buffers, waiting.overrun)
    }
}

/// Wakes workers: an event count, so that what came between a look and the wait is not slept through.
#[derive(Debug)]
pub(crate) struct Bell {
    state: Mutex<Rung>,
    condition: Condvar,
}

#[derive(Debug, Clone, Copy)]
struct Rung {
    times: u64,
    closed: bool,
}

impl Bell {
    pub fn new() -> Self {
        Self { state: Mutex::new(Rung { times: 0, closed: false }), condition: Condvar::new() }
    }

    pub fn ring(&self) {
        lock(&self.state).times += 1;
        self.condition.notify_one();
    }

    /// For all, for good.
    pub fn close(&self) {
        lock(&self.state).closed = true;
        self.condition.notify_all();
    }

    /// To be asked before looking for work; `None`: closed.
    pub fn times(&self) -> Option<u64> {
        let state = lock(&self.state);
        (!state.closed).then_some(state.times)
    }

    /// Waits until it was rung since `seen`, or is closed.
    pub fn wait(&self, seen: u64) {
        let mut state = lock(&self.state);
        while state.times == seen && !state.closed {
            state = wait(&self.condition, state);
        }
    }
}
