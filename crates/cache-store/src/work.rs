//! Workers: threads of the caller's that compress what waits in the queues, and, in rounds that the caller starts, recompress
//! what stays.

use crate::block::{Form, checksum};
use crate::error::OutOfMemory;
use crate::pin::Pin;
use crate::queue::Job;
use crate::scratch::Scratch;
use crate::shard::Candidate;
use crate::spec::MOST_AT_ONCE;
use crate::store::Store;
use crate::sync::atomic::Ordering;
use crate::sync::lock;

/// What one step of a worker came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    /// Compressed so many blocks from a queue.
    Compressed(usize),
    /// Looked for, and perhaps found, a block to recompress; was one made denser?
    Denser(bool),
    /// There is nothing to do.
    Nothing,
}

/// One thread's part in the work on a store.
pub struct Worker<'s> {
    store: &'s Store,
    /// The queue that it looks into first.
    cpu: usize,
    scratch: Scratch,
    jobs: Vec<Job>,
}

impl Store {
    /// A worker for queue `cpu` first, then for the others.
    ///
    /// # Errors
    /// When there is no memory for its tables.
    pub fn worker(&self, cpu: usize) -> Result<Worker<'_>, OutOfMemory> {
        let mut jobs = Vec::new();
        jobs.try_reserve_exact(self.spec.batch)?;
        Ok(Worker { store: self, cpu, scratch: Scratch::new(&self.spec, self.spec.batch)?, jobs })
    }

    /// Starts a round of recompressing what stays: every block is looked at once. For the caller's clock, when CPUs are
    /// idle. Nothing without a dense codec.
    pub fn begin_round(&self) {
        if self.spec.dense.is_some() {
            self.round.store(0, Ordering::SeqCst);
            self.bell.ring();
        }
    }

    /// Ends the round, when there is something better to do.
    pub fn end_round(&self) {
        self.round.store(usize::MAX, Ordering::SeqCst);
    }

    /// Ends all workers' [`Worker::run`], for good. What waits in the queues stays there.
    pub fn close(&self) {
        self.bell.close();
    }
}

impl Worker<'_> {
    /// Works until [`Store::close`], and sleeps while there is nothing to do.
    pub fn run(&mut self) {
        self.run_by(Self::step);
    }

    /// As [`Worker::run`], by steps of the caller's around [`Worker::step`]: to time them, or to wait with them.
    pub fn run_by(&mut self, mut step: impl FnMut(&mut Self) -> Did) {
        while let Some(seen) = self.store.bell.times() {
            if step(self) == Did::Nothing {
                self.store.bell.wait(seen);
            }
        }
    }

    /// Does one thing: a batch from a queue, or else a part of the round.
    pub fn step(&mut self) -> Did {
        match self.compress_jobs_batch() {
            0 => self.pack_again(),
            compressed => Did::Compressed(compressed),
        }
    }

    /// From its own queue, or the first after it that has something.
    fn compress_jobs_batch(&mut self) -> usize {
        let queues = &self.store.queues;
        for turn in 0..queues.len() {
            let queue = &queues[(self.cpu + turn) % queues.len()];
            queue.pop_into(&mut self.jobs);
            if !self.jobs.is_empty() {
                let compressed = self.jobs.len();
                self.compress_jobs();
                queue.give_back(&mut self.jobs);
                return compressed;
            }
        }
        0
    }

    fn compress_jobs(&mut self) {
        let Self { store, scratch, jobs, .. } = self;
        // On the stack: this thread must not need memory. What fails the probe stands there empty.
        let mut blocks: [&[u8]; MOST_AT_ONCE] = [&[]; MOST_AT_ONCE];
        for (block, job) in
            blocks.iter_mut().zip(jobs.iter()).filter(|(_, job)| scratch.passes_probe(&job.block))
        {
            *block = &job.block;
        }
        let compressed = scratch.compress(&blocks[..jobs.len()]);
        for (index, job) in jobs.iter().enumerate() {
            let bytes = compressed.get(index).filter(|_| !blocks[index].is_empty());
            store.take_in(&job.ticket, &job.block, bytes);
        }
    }

    /// One look into the shard where the round is.
    fn pack_again(&mut self) -> Did {
        let round = &self.store.round;
        let at = round.load(Ordering::SeqCst);
        let Some(shard) = self.store.shards.get(at) else { return Did::Nothing };
        let candidate = lock(shard).next_candidate();
        match candidate {
            Candidate::Found(found) => Did::Denser(self.recompress_one(Pin::of(shard, found))),
            Candidate::LookOn => Did::Denser(false),
            Candidate::None => {
                // Another worker may have moved on, or the caller ended the round.
                let _ = round.compare_exchange(at, at + 1, Ordering::SeqCst, Ordering::SeqCst);
                Did::Denser(false)
            }
        }
    }

    fn recompress_one(&mut self, pin: Pin<'_>) -> bool {
        let block = *pin.block();
        let mut raw = std::mem::take(&mut self.scratch.raw);
        let more = block.raw_len.saturating_sub(raw.len());
        if raw.try_reserve_exact(more).is_err() {
            return pin.replace(None);
        }
        raw.resize(raw.len() + more, 0);
        let readable = pin.read_into(&mut self.scratch, &mut raw[..block.raw_len]);
        self.scratch.raw = raw;
        if !readable {
            pin.drop_corrupted();
            return false;
        }
        let compressed = self.scratch.compress_dense(block.raw_len);
        let summed = compressed
            .map(|compressed| (compressed, checksum(block.key, Form::Dense, block.raw_len, compressed)));
        pin.replace(summed)
    }
}
