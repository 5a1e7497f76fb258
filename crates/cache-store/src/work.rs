//! Workers: threads of the caller. They compress the blocks in the queues and, in rounds that the caller starts, recompress
//! blocks that stay.

use crate::block::{Form, checksum};
use crate::error::OutOfMemory;
use crate::pin::Pin;
use crate::policy::Entrance;
use crate::queue::Job;
use crate::scratch::Scratch;
use crate::shard::Candidate;
use crate::spec::MAX_BATCH;
use crate::store::Store;
use crate::sync::atomic::Ordering;
use crate::sync::lock;

/// What one step of a worker did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkDone {
    /// Compressed this many blocks from a queue.
    Compressed(usize),
    /// Searched for a block to recompress. True: it replaced one.
    Recompressed(bool),
    /// There was nothing to do.
    Nothing,
}

/// One thread's share of the work on a store.
pub struct Worker<'s> {
    store: &'s Store,
    /// The queue that it serves first.
    cpu: usize,
    scratch: Scratch,
    jobs: Vec<Job>,
}

impl Store {
    /// A worker that serves queue `cpu` first, then the others.
    ///
    /// # Errors
    /// There is no memory for its tables.
    pub fn worker(&self, cpu: usize) -> Result<Worker<'_>, OutOfMemory> {
        let mut jobs = Vec::new();
        jobs.try_reserve_exact(self.spec.batch)?;
        Ok(Worker { store: self, cpu, scratch: Scratch::new(&self.spec, self.spec.batch)?, jobs })
    }

    /// Starts a round of recompression, which visits every block once. Call it when CPUs are idle. Without a high-ratio
    /// codec it does nothing.
    pub fn begin_round(&self) {
        if self.spec.high_ratio.is_some() {
            self.round.store(0, Ordering::SeqCst);
            self.work_signal.notify();
        }
    }

    /// Ends the round.
    pub fn end_round(&self) {
        self.round.store(usize::MAX, Ordering::SeqCst);
    }

    /// Makes all workers' [`Worker::run`] return, for good. Blocks in the queues stay there.
    pub fn close(&self) {
        self.work_signal.close();
    }
}

impl Worker<'_> {
    /// Works until [`Store::close`]; sleeps while there is nothing to do.
    pub fn run(&mut self) {
        self.run_by(Self::step);
    }

    /// As [`Worker::run`], with the caller's `step` around [`Worker::step`]: to measure or delay steps.
    pub fn run_by(&mut self, mut step: impl FnMut(&mut Self) -> WorkDone) {
        while let Some(seen) = self.store.work_signal.generation() {
            if step(self) == WorkDone::Nothing {
                self.store.work_signal.wait(seen);
            }
        }
    }

    /// Does one thing: a batch from a queue, or else a part of the round.
    pub fn step(&mut self) -> WorkDone {
        match self.compress_jobs_batch() {
            0 => self.recompress_next(),
            compressed => WorkDone::Compressed(compressed),
        }
    }

    /// Takes a batch from its own queue, or from the next one that has blocks.
    fn compress_jobs_batch(&mut self) -> usize {
        let queues = &self.store.queues;
        for offset in 0..queues.len() {
            let queue = &queues[(self.cpu + offset) % queues.len()];
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
        // On the stack, so that this thread needs no memory. A block that fails the probe is left empty.
        let mut blocks: [&[u8]; MAX_BATCH] = [&[]; MAX_BATCH];
        for (block, job) in
            blocks.iter_mut().zip(jobs.iter()).filter(|(_, job)| scratch.passes_probe(&job.block))
        {
            *block = &job.block;
        }
        let compressed = scratch.compress(&blocks[..jobs.len()]);
        for (index, job) in jobs.iter().enumerate() {
            let bytes = compressed.get(index).filter(|_| !blocks[index].is_empty());
            store.admit_compressed(&job.ticket, &job.block, bytes, Entrance::Small);
        }
    }

    /// Searches a few slots of the shard that the round has reached.
    fn recompress_next(&mut self) -> WorkDone {
        let round = &self.store.round;
        let at = round.load(Ordering::SeqCst);
        let Some(shard) = self.store.shards.get(at) else { return WorkDone::Nothing };
        let candidate = lock(shard).next_candidate();
        match candidate {
            Candidate::Found(found) => WorkDone::Recompressed(self.recompress_one(Pin::of(shard, found))),
            Candidate::Continue => WorkDone::Recompressed(false),
            Candidate::None => {
                // Another worker may have moved on, or the caller ended the round.
                let _ = round.compare_exchange(at, at + 1, Ordering::SeqCst, Ordering::SeqCst);
                WorkDone::Recompressed(false)
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
        let compressed = self.scratch.recompress(block.raw_len);
        let summed = compressed.map(|compressed| {
            (compressed, checksum(block.key, Form::Recompressed, block.raw_len, compressed))
        });
        pin.replace(summed)
    }
}
