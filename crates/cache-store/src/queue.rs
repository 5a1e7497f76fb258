//! Blocks that wait for compression after the reply was sent: one bounded queue per CPU, with its own buffers. A full queue
//! refuses, so a reader never waits for it.

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
struct QueueState {
    jobs: VecDeque<Job>,
    /// Buffers that are free.
    spare: Vec<Vec<u8>>,
    /// All buffers: free, being filled, queued, or with a worker.
    buffers: usize,
    overrun: u64,
}

/// One CPU's queue.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<QueueState>,
    depth: usize,
}

impl Queue {
    /// A queue of at most `depth` blocks, including those that workers have.
    pub fn new(depth: usize) -> Result<Self, OutOfMemory> {
        let mut state = QueueState::default();
        state.jobs.try_reserve_exact(depth)?;
        state.spare.try_reserve_exact(depth)?;
        Ok(Self { state: Mutex::new(state), depth })
    }

    /// Copies a block in, without the lock. False: the queue is full, or there is no memory.
    pub fn push(&self, ticket: Ticket, block: &[u8]) -> bool {
        let Some(mut buffer) = self.lend() else { return false };
        if buffer.try_reserve_exact(block.len()).is_err() {
            self.lose();
            return false;
        }
        buffer.extend_from_slice(block);
        lock(&self.state).jobs.push_back(Job { ticket, block: buffer });
        true
    }

    /// An empty buffer, if fewer than `depth` are in use.
    fn lend(&self) -> Option<Vec<u8>> {
        let mut state = lock(&self.state);
        if let Some(spare) = state.spare.pop() {
            return Some(spare);
        }
        if state.buffers == self.depth {
            state.overrun += 1;
            return None;
        }
        state.buffers += 1;
        Some(Vec::new())
    }

    fn lose(&self) {
        let mut state = lock(&self.state);
        state.buffers -= 1;
        state.overrun += 1;
    }

    /// Moves the oldest jobs into `jobs`, up to its capacity.
    pub fn pop_into(&self, jobs: &mut Vec<Job>) {
        let room = jobs.capacity() - jobs.len();
        let mut state = lock(&self.state);
        let count = state.jobs.len().min(room);
        jobs.extend(state.jobs.drain(..count));
    }

    /// Takes back the buffers of finished jobs.
    pub fn give_back(&self, jobs: &mut Vec<Job>) {
        let mut state = lock(&self.state);
        for mut job in jobs.drain(..) {
            job.block.clear();
            state.spare.push(job.block);
        }
    }

    /// Frees the unused buffers.
    pub fn trim(&self) {
        let mut state = lock(&self.state);
        state.buffers -= state.spare.len();
        state.spare.clear();
    }

    /// The number of buffers, and of blocks refused so far.
    pub fn counts(&self) -> (usize, u64) {
        let state = lock(&self.state);
        (state.buffers, state.overrun)
    }
}

/// Wakes workers. It is an event count, so a notification between a worker's check and its wait is not lost.
#[derive(Debug)]
pub(crate) struct WorkSignal {
    state: Mutex<SignalState>,
    condition: Condvar,
}

#[derive(Debug, Clone, Copy)]
struct SignalState {
    generation: u64,
    closed: bool,
}

impl WorkSignal {
    pub fn new() -> Self {
        Self { state: Mutex::new(SignalState { generation: 0, closed: false }), condition: Condvar::new() }
    }

    pub fn notify(&self) {
        lock(&self.state).generation += 1;
        self.condition.notify_one();
    }

    /// Wakes all workers, for good.
    pub fn close(&self) {
        lock(&self.state).closed = true;
        self.condition.notify_all();
    }

    /// Read it before checking for work. `None`: closed.
    pub fn generation(&self) -> Option<u64> {
        let state = lock(&self.state);
        (!state.closed).then_some(state.generation)
    }

    /// Waits until a notification came after `seen`, or until it is closed.
    pub fn wait(&self, seen: u64) {
        let mut state = lock(&self.state);
        while state.generation == seen && !state.closed {
            state = wait(&self.condition, state);
        }
    }
}
