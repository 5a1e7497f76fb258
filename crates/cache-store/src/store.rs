//! The store: shards, epochs and queues together, and the rules of taking locks.
//!
//! At most one shard's lock is held at a time, and nothing else is locked under it. Compressing, decompressing, checksums and
//! copies into queues run without any lock.

use std::ops::Range;

use eke_model::units::Bytes;

use crate::block::{Form, checksum, is_zero};
use crate::codec::pays;
use crate::epoch::{Epochs, Ticket};
use crate::error::{Error, OutOfMemory};
use crate::key::{FileId, Key};
use crate::pin::{Pin, Resident};
use crate::queue::{Bell, Queue};
use crate::scratch::Scratch;
use crate::shard::{Incoming, Shard};
use crate::spec::{Incompressible, StoreSpec};
use crate::stats::{Inserted, Stats};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, lock};
use crate::verdict::Verdicts;

/// Ranges of up to this many blocks are dropped block by block, longer ones by walking over the file's blocks.
const SHORT_RANGE: u64 = 64;

/// Files whose verdict is remembered.
const VERDICTS: usize = if cfg!(test) { 4 } else { 4096 };

/// Stripes of epochs.
const EPOCHS: usize = if cfg!(test) { 4 } else { 4096 };

/// What a look for a block came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a miss holds the ticket to bring the block in by"]
pub enum Lookup {
    /// The first so many bytes of the buffer are the block.
    Hit(usize),
    /// Not held. Read it, and bring it in by the ticket.
    Miss(Ticket),
    /// It was held, but its bytes had changed in memory (or there was no memory to decompress it). It is dropped now; as a miss.
    Corrupted(Ticket),
}

/// What became of a block that was brought in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admitted {
    /// It is held.
    Held,
    /// It was held already: somebody else was faster.
    Present,
    /// It is in a queue.
    Queued,
    /// It changed or was dropped since the ticket was given.
    Stale,
    /// It does not compress, or blocks of the file before it did not.
    Incompressible,
    /// The queue is full.
    Overrun,
    /// There is no room within the limit.
    NoRoom,
    /// The kernel gave no memory.
    NoMemory,
    /// It is empty, or longer than a block.
    BadLength,
}

/// A compressed store of file blocks. See the crate's documentation.
pub struct Store {
    pub(crate) spec: StoreSpec,
    pub(crate) shards: Box<[Mutex<Shard>]>,
    epochs: Epochs,
    verdicts: Verdicts,
    pub(crate) queues: Box<[Queue]>,
    pub(crate) bell: Bell,
    /// The shard where the round of recompressing is; past the last one: no round.
    pub(crate) round: AtomicUsize,
    /// In bytes.
    limit: AtomicU64,
    /// One shrink at a time.
    resizing: Mutex<()>,
    misses: AtomicU64,
    stale: AtomicU64,
    incompressible: AtomicU64,
    not_tried: AtomicU64,
}

impl Store {
    /// An empty store.
    ///
    /// # Errors
    /// When the spec makes no sense, or there is no memory for empty tables.
    pub fn new(spec: StoreSpec) -> Result<Self, Error> {
        spec.check()?;
        let budget = share(spec.limit, spec.shards);
        let shards = boxed(spec.shards, || Ok(Mutex::new(Shard::new(budget, spec.together))))?;
        let queues = boxed(spec.queues, || Queue::new(spec.queue_depth))?;
        Ok(Self {
            shards,
            queues,
            epochs: Epochs::new(EPOCHS)?,
            verdicts: Verdicts::new(VERDICTS)?,
            bell: Bell::new(),
            round: AtomicUsize::new(usize::MAX),
            limit: AtomicU64::new(spec.limit.0),
            resizing: Mutex::new(()),
            misses: AtomicU64::new(0),
            stale: AtomicU64::new(0),
            incompressible: AtomicU64::new(0),
            not_tried: AtomicU64::new(0),
            spec,
        })
    }

    /// What one thread needs to work with this store.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub fn scratch(&self) -> Result<Scratch, OutOfMemory> {
        Scratch::new(&self.spec, 1)
    }

    /// The leave to bring a block in with the content that its file has from now on: to be taken *before* it is read.
    pub fn ticket(&self, key: Key) -> Ticket {
        self.epochs.ticket(key)
    }

    /// Was nothing dropped since the ticket was given that could be its block? Then what the file had at that moment is what
    /// every acknowledged write has left there.
    pub fn is_current(&self, ticket: &Ticket) -> bool {
        self.epochs.is_current(ticket)
    }

    /// The size of a block in bytes.
    pub fn block_size(&self) -> usize {
        self.spec.block_size
    }

    /// Looks for a block and decompresses it into `out`, which has room for a whole block; with less room than the block has
    /// bytes it is a miss.
    pub fn get(&self, scratch: &mut Scratch, key: Key, out: &mut [u8]) -> Lookup {
        self.get_into(scratch, key, |len| out.get_mut(..len))
    }

    /// As [`Store::get`], into what `room` gives for the block's length in bytes: exactly as much; `None` makes it a miss.
    pub fn get_into<'o>(
        &self,
        scratch: &mut Scratch,
        key: Key,
        room: impl FnOnce(usize) -> Option<&'o mut [u8]>,
    ) -> Lookup {
        let ticket = self.ticket(key);
        let Some(resident) = self.resident(key) else {
            self.note_miss();
            return Lookup::Miss(ticket);
        };
        let len = resident.block_len();
        let Some(out) = room(len).filter(|out| out.len() == len) else { return Lookup::Miss(ticket) };
        if resident.read_into(scratch, out) { Lookup::Hit(len) } else { Lookup::Corrupted(ticket) }
    }

    /// Finds a block and keeps its bytes in place, so that it can be read without another lookup. Only reading it counts as a
    /// request, here and for the policy.
    pub fn resident(&self, key: Key) -> Option<Resident<'_>> {
        Pin::find(self.shard(key), key).map(Resident)
    }

    /// Counts a request for a block that [`Store::resident`] did not find.
    pub fn note_miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// Is the block held? Changes nothing, not even its place in the order of eviction.
    pub fn contains(&self, key: Key) -> bool {
        lock(self.shard(key)).contains(key)
    }

    /// Compresses a block and takes it in.
    pub fn admit(&self, scratch: &mut Scratch, ticket: Ticket, block: &[u8]) -> Admitted {
        if let Some(done) = self.without_compression(&ticket, block) {
            return done;
        }
        if !scratch.passes_probe(block) {
            return self.take_in(&ticket, block, None);
        }
        let compressed = scratch.compress(&[block]).get(0);
        self.take_in(&ticket, block, compressed)
    }

    /// Takes a block into this CPU's queue, to be compressed by a [`crate::Worker`]. `cpu` is any number.
    pub fn submit(&self, cpu: usize, ticket: Ticket, block: &[u8]) -> Admitted {
        if let Some(done) = self.without_compression(&ticket, block) {
            return done;
        }
        if !self.queues[cpu % self.queues.len()].push(ticket, block) {
            return Admitted::Overrun;
        }
        self.bell.ring();
        Admitted::Queued
    }

    /// Drops a block, which changed or is about to; tickets given for it before are void. The new ticket is for the content
    /// from now on, and its holder's alone: a later drop voids it.
    ///
    /// Who writes: after the file below has the new bytes and before the write is acknowledged. To bring in what was
    /// written, drop before the write, admit by that ticket after it, and drop again if the answer is
    /// [`Admitted::Stale`]: another writer was there.
    pub fn drop_block(&self, key: Key) -> Ticket {
        let ticket = self.epochs.raise_block(key);
        lock(self.shard(key)).remove(key);
        ticket
    }

    /// Drops all blocks of a file, and what is known of it; how many were held.
    pub fn drop_file(&self, file: FileId) -> u64 {
        self.verdicts.forget(file);
        self.drop_range(file, 0..u64::MAX)
    }

    /// Drops a file's blocks with numbers in `blocks` (truncation: from the block of the new end on); how many were held.
    pub fn drop_range(&self, file: FileId, blocks: Range<u64>) -> u64 {
        if blocks.end.saturating_sub(blocks.start) <= SHORT_RANGE {
            return blocks.map(|block| self.drop_one(Key::new(file, block))).sum();
        }
        self.epochs.raise_file(file);
        self.shards.iter().map(|shard| lock(shard).remove_file(file, &blocks)).sum()
    }

    fn drop_one(&self, key: Key) -> u64 {
        let _ = self.epochs.raise_block(key);
        u64::from(lock(self.shard(key)).remove(key))
    }

    /// Sets the most memory to hold. Evicts and moves blocks until it fits, and gives the rest back to the kernel before it
    /// returns, shard by shard in short steps; others go on meanwhile.
    pub fn resize(&self, limit: Bytes) {
        let _one_at_a_time = lock(&self.resizing);
        self.limit.store(limit.0, Ordering::SeqCst);
        let budget = share(limit, self.shards.len());
        for shard in &self.shards {
            lock(shard).set_budget(budget);
            while lock(shard).shrink_step() {}
        }
        self.queues.iter().for_each(Queue::trim);
    }

    /// The most memory to hold.
    pub fn limit(&self) -> Bytes {
        Bytes(self.limit.load(Ordering::SeqCst))
    }

    /// What the store holds and has done.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats {
            limit: self.limit(),
            misses: self.misses.load(Ordering::Relaxed),
            stale: self.stale.load(Ordering::Relaxed),
            incompressible: self.incompressible.load(Ordering::Relaxed),
            not_tried: self.not_tried.load(Ordering::Relaxed),
            ..Stats::default()
        };
        for shard in &self.shards {
            let shard = lock(shard);
            stats.held = stats.held + Bytes(shard.held() as u64);
            stats.tables = stats.tables + Bytes(shard.table_bytes() as u64);
            stats.add(&shard.counts);
        }
        for (buffers, overrun) in self.queues.iter().map(Queue::counts) {
            stats.queued = stats.queued + Bytes((buffers * self.spec.block_size) as u64);
            stats.overrun += overrun;
        }
        stats
    }

    /// Flips a bit of a block's compressed bytes, as a fault in memory does: for tests. False: nothing is kept of it.
    #[doc(hidden)]
    pub fn damage(&self, key: Key) -> bool {
        lock(self.shard(key)).damage(key)
    }

    /// Do all lists, counts and memory agree? For tests, while no other thread is at work.
    ///
    /// # Errors
    /// What does not.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), String> {
        self.shards.iter().try_for_each(|shard| lock(shard).check())
    }

    fn shard(&self, key: Key) -> &Mutex<Shard> {
        // All of a cluster in one.
        let stretch = Key::new(key.file, key.block / self.spec.together as u64);
        let index = ((stretch.hash() >> 32) * self.shards.len() as u64) >> 32;
        &self.shards[index as usize]
    }

    /// What can be said of a block without compressing it: `None` if it must be compressed.
    fn without_compression(&self, ticket: &Ticket, block: &[u8]) -> Option<Admitted> {
        if block.is_empty() || block.len() > self.spec.block_size {
            return Some(Admitted::BadLength);
        }
        if !self.epochs.is_current(ticket) {
            return Some(self.refuse_stale());
        }
        if is_zero(block) {
            return Some(self.insert(ticket, Form::Zero, block.len(), &[]));
        }
        if self.contains(ticket.key) {
            return Some(Admitted::Present);
        }
        if !self.verdicts.worth_trying(ticket.key.file) {
            self.not_tried.fetch_add(1, Ordering::Relaxed);
            return Some(self.take_in_raw(ticket, block));
        }
        None
    }

    /// Takes a block in that was compressed, if that paid; `None`: it could not be compressed.
    pub(crate) fn take_in(&self, ticket: &Ticket, block: &[u8], compressed: Option<&[u8]>) -> Admitted {
        let paying = compressed.filter(|compressed| pays(block.len(), compressed.len()));
        self.verdicts.record(ticket.key.file, paying.is_some());
        match paying {
            Some(compressed) => self.insert(ticket, Form::Fast, block.len(), compressed),
            None => self.take_in_raw(ticket, block),
        }
    }

    fn take_in_raw(&self, ticket: &Ticket, block: &[u8]) -> Admitted {
        let kept = match self.spec.incompressible {
            Incompressible::Keep => true,
            Incompressible::KeepFew => self.verdicts.compresses(ticket.key.file),
            Incompressible::Refuse => false,
        };
        if kept {
            return self.insert(ticket, Form::Raw, block.len(), block);
        }
        self.incompressible.fetch_add(1, Ordering::Relaxed);
        Admitted::Incompressible
    }

    fn insert(&self, ticket: &Ticket, form: Form, raw_len: usize, compressed: &[u8]) -> Admitted {
        let key = ticket.key;
        let sum = checksum(key, form, raw_len, compressed);
        let mut shard = lock(self.shard(key));
        // Under the lock: see `epoch`.
        if !self.epochs.is_current(ticket) {
            drop(shard);
            return self.refuse_stale();
        }
        match shard.insert(Incoming { key, form, raw_len, sum, compressed }) {
            Inserted::Done => Admitted::Held,
            Inserted::Present => Admitted::Present,
            Inserted::NoRoom => Admitted::NoRoom,
            Inserted::NoMemory => Admitted::NoMemory,
        }
    }

    fn refuse_stale(&self) -> Admitted {
        self.stale.fetch_add(1, Ordering::Relaxed);
        Admitted::Stale
    }
}

/// Each shard's part of the limit, bytes.
fn share(limit: Bytes, shards: usize) -> usize {
    usize::try_from(limit.0).unwrap_or(usize::MAX) / shards
}

fn boxed<T>(count: usize, make: impl Fn() -> Result<T, OutOfMemory>) -> Result<Box<[T]>, OutOfMemory> {
    let mut all = Vec::new();
    all.try_reserve_exact(count)?;
    for _ in 0..count {
        all.push(make()?);
    }
    Ok(all.into_boxed_slice())
}
