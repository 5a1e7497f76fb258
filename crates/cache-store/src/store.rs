//! The store: shards, epochs and queues, and the rules of locking.
//!
//! At most one shard's lock is held at a time, and nothing is locked under it. Compression, decompression, checksums and
//! copies into queues run without a lock.

use std::ops::Range;
use std::time::Duration;

use eke_model::units::Bytes;

use crate::block::{Form, checksum, is_zero};
use crate::codec::pays;
use crate::compressibility::Compressibility;
use crate::epoch::{Epochs, Ticket};
use crate::error::{Error, OutOfMemory};
use crate::key::{FileId, Key};
use crate::pin::{Pin, Resident};
use crate::policy::{Entrance, Heat};
use crate::queue::{Queue, WorkSignal};
use crate::scratch::Scratch;
use crate::shard::{Incoming, Shard};
use crate::spec::{Incompressible, StoreSpec};
use crate::stats::{Inserted, Stats};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Mutex, lock};

/// A range of up to this many blocks is dropped block by block, a longer one by walking the file's blocks.
const SHORT_RANGE: u64 = 64;

/// Files whose compressibility is remembered.
const FILES: usize = if cfg!(test) { 4 } else { 4096 };

/// Stripes of epochs.
const EPOCHS: usize = if cfg!(test) { 4 } else { 4096 };

/// Steps of a shrink under one lock, and the pause after them: a thread that locks again at once would keep the others waiting.
const STEPS: usize = 8;
const BREATH: Duration = Duration::from_micros(50);

/// The result of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a miss holds the ticket to bring the block in by"]
pub enum Lookup {
    /// The block is in the first bytes of the buffer: this many.
    Hit(usize),
    /// Not stored. Read it, and admit it by the ticket.
    Miss(Ticket),
    /// Stored, but its bytes had changed in memory, or there was no memory to decompress it. It was dropped; treat it as a
    /// miss.
    Corrupted(Ticket),
}

/// The result of an admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admitted {
    /// It is stored.
    Stored,
    /// It was stored already by another thread.
    Present,
    /// It is in a queue.
    Queued,
    /// It changed or was dropped since the ticket was issued.
    Stale,
    /// It does not compress, or earlier blocks of the file did not.
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
    compressibility: Compressibility,
    pub(crate) queues: Box<[Queue]>,
    pub(crate) work_signal: WorkSignal,
    /// The shard that the round of recompression has reached. Past the last one: no round.
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
    /// An option is out of range, or there is no memory for empty tables.
    pub fn new(spec: StoreSpec) -> Result<Self, Error> {
        spec.check()?;
        let budget = share(spec.limit, spec.shards);
        let shards =
            boxed(spec.shards, || Ok(Mutex::new(Shard::new(budget, spec.together, spec.listener.clone()))))?;
        let queues = boxed(spec.queues, || Queue::new(spec.queue_depth))?;
        Ok(Self {
            shards,
            queues,
            epochs: Epochs::new(EPOCHS)?,
            compressibility: Compressibility::new(FILES)?,
            work_signal: WorkSignal::new(),
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

    /// The engines and buffers that one thread needs.
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn scratch(&self) -> Result<Scratch, OutOfMemory> {
        Scratch::new(&self.spec, 1)
    }

    /// A ticket to admit a block with the content that its file has from now on. Take it *before* the file is read.
    pub fn ticket(&self, key: Key) -> Ticket {
        self.epochs.ticket(key)
    }

    /// True if no drop since then could have been for the ticket's block. Then the content read with the ticket includes
    /// every acknowledged write.
    pub fn is_current(&self, ticket: &Ticket) -> bool {
        self.epochs.is_current(ticket)
    }

    /// The size of a block in bytes.
    pub fn block_size(&self) -> usize {
        self.spec.block_size
    }

    /// Looks a block up and decompresses it into `out`, which should have room for a whole block. If the block does not fit,
    /// it is a miss.
    pub fn get(&self, scratch: &mut Scratch, key: Key, out: &mut [u8]) -> Lookup {
        self.get_into(scratch, key, |len| out.get_mut(..len))
    }

    /// As [`Store::get`], into the buffer that `room` returns for the block's length in bytes, which must have exactly that
    /// length. `None` makes it a miss.
    fn get_into<'o>(
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

    /// Finds a block and pins its bytes, so that it can be read without another lookup. Only reading it counts as a request,
    /// here and for the policy.
    pub fn resident(&self, key: Key) -> Option<Resident<'_>> {
        Pin::find(self.shard(key), key).map(Resident)
    }

    /// Counts a request for a block that [`Store::resident`] did not find.
    pub fn note_miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// True if the block is stored. Changes nothing, not even the order of eviction.
    pub fn contains(&self, key: Key) -> bool {
        lock(self.shard(key)).contains(key)
    }

    /// Compresses and stores a block.
    pub fn admit(&self, scratch: &mut Scratch, ticket: Ticket, block: &[u8]) -> Admitted {
        if let Some(done) = self.without_compression(&ticket, block, Entrance::Small) {
            return done;
        }
        if !scratch.passes_probe(block) {
            return self.admit_compressed(&ticket, block, None, Entrance::Small);
        }
        let compressed = scratch.compress(&[block]).get(0);
        self.admit_compressed(&ticket, block, compressed, Entrance::Small)
    }

    /// Compresses and stores a block that stays: it enters the main queue. Returns also the bytes that it takes, 0 unless it was stored
    /// now.
    pub fn admit_to_stay(&self, scratch: &mut Scratch, ticket: Ticket, block: &[u8]) -> (Admitted, usize) {
        if self.keep(ticket.key) {
            return (Admitted::Present, 0);
        }
        if let Some(done) = self.without_compression(&ticket, block, Entrance::Main) {
            let is_raw = done == Admitted::Stored && !is_zero(block);
            return (done, if is_raw { block.len() } else { 0 });
        }
        let compressed = if scratch.passes_probe(block) { scratch.compress(&[block]).get(0) } else { None };
        let taken = compressed.filter(|c| pays(block.len(), c.len())).map_or(block.len(), <[u8]>::len);
        let done = self.admit_compressed(&ticket, block, compressed, Entrance::Main);
        (done, if done == Admitted::Stored { taken } else { 0 })
    }

    /// Moves a stored block to the main queue, past the small one. False: it is not stored.
    pub fn keep(&self, key: Key) -> bool {
        lock(self.shard(key)).keep(key)
    }

    /// Calls `visit` for each stored block, under its shard's lock: it must be short.
    pub fn each(&self, mut visit: impl FnMut(Key, Heat)) {
        self.shards.iter().for_each(|shard| lock(shard).each(&mut visit));
    }

    /// Queues a block for compression by a [`crate::Worker`]. `cpu` is any number; it selects the queue.
    pub fn submit(&self, cpu: usize, ticket: Ticket, block: &[u8]) -> Admitted {
        if let Some(done) = self.without_compression(&ticket, block, Entrance::Small) {
            return done;
        }
        if !self.queues[cpu % self.queues.len()].push(ticket, block) {
            return Admitted::Overrun;
        }
        self.work_signal.notify();
        Admitted::Queued
    }

    /// Drops a block that changed or is about to change, and voids its earlier tickets. Returns a ticket for the content
    /// from now on; a later drop voids it.
    ///
    /// A writer calls this after the backing file has the new bytes and before the write is acknowledged. To admit the
    /// written block: drop before the write, admit by that ticket after it, and drop again if the result is
    /// [`Admitted::Stale`], because then there was another writer. Who keeps blocks elsewhere by tickets needs [`Store::drop_range`].
    pub fn drop_block(&self, key: Key) -> Ticket {
        let ticket = self.epochs.raise_block(key);
        lock(self.shard(key)).remove(key);
        ticket
    }

    /// How many of a file's blocks in a row did not compress, up to 255; `None`: not known. Nearly nothing is kept of a file that does not
    /// compress.
    pub fn failures(&self, file: FileId) -> Option<u64> {
        self.compressibility.failures(file)
    }

    /// The share of all files' blocks that do not compress, 0 to 1, the newest counting most.
    pub fn failing(&self) -> f32 {
        self.compressibility.failing()
    }

    /// Drops all blocks of a file, and its recorded compressibility. Returns how many were stored.
    pub fn drop_file(&self, file: FileId) -> u64 {
        self.compressibility.forget(file);
        self.drop_range(file, 0..u64::MAX)
    }

    /// Drops a file's blocks with numbers in `blocks` (after a truncation: from the block of the new end on). Returns how
    /// many were stored. No ticket from before the end of this call is current after it.
    pub fn drop_range(&self, file: FileId, blocks: Range<u64>) -> u64 {
        if blocks.end.saturating_sub(blocks.start) <= SHORT_RANGE {
            return blocks.map(|block| self.drop_one(Key::new(file, block))).sum();
        }
        self.epochs.raise_file(file);
        let dropped = self.shards.iter().map(|shard| lock(shard).remove_file(file, &blocks)).sum();
        self.epochs.raise_file(file);
        dropped
    }

    fn drop_one(&self, key: Key) -> u64 {
        let _ = self.epochs.raise_block(key);
        let dropped = lock(self.shard(key)).remove(key);
        // See `epoch`.
        let _ = self.epochs.raise_block(key);
        u64::from(dropped)
    }

    /// Sets the limit of the memory. Evicts and moves blocks until they fit, and gives the rest back to the kernel before it
    /// returns. It goes shard by shard in short steps; other threads continue meanwhile.
    pub fn resize(&self, limit: Bytes) {
        let _one_at_a_time = lock(&self.resizing);
        self.limit.store(limit.0, Ordering::SeqCst);
        let budget = share(limit, self.shards.len());
        for shard in &self.shards {
            lock(shard).set_budget(budget);
            while shrink_for_a_moment(&mut lock(shard)) {
                std::thread::sleep(BREATH);
            }
        }
        self.queues.iter().for_each(Queue::trim);
    }

    /// The limit of the memory.
    pub fn limit(&self) -> Bytes {
        Bytes(self.limit.load(Ordering::SeqCst))
    }

    /// The store's statistics.
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

    /// Flips a bit of a block's stored bytes, as a memory fault does. For tests. False: no bytes are stored.
    #[doc(hidden)]
    pub fn damage(&self, key: Key) -> bool {
        lock(self.shard(key)).damage(key)
    }

    /// Checks that lists, counts and memory agree. For tests, while no other thread works.
    ///
    /// # Errors
    /// What does not agree.
    #[doc(hidden)]
    pub fn check(&self) -> Result<(), String> {
        self.shards.iter().try_for_each(|shard| lock(shard).check())
    }

    pub(crate) fn shard(&self, key: Key) -> &Mutex<Shard> {
        // All blocks of a cluster are in one shard.
        let stretch = Key::new(key.file, key.block / self.spec.together as u64);
        let index = ((stretch.hash() >> 32) * self.shards.len() as u64) >> 32;
        &self.shards[index as usize]
    }

    /// Decides what can be decided without compressing the block. `None`: it must be compressed.
    fn without_compression(&self, ticket: &Ticket, block: &[u8], entrance: Entrance) -> Option<Admitted> {
        if block.is_empty() || block.len() > self.spec.block_size {
            return Some(Admitted::BadLength);
        }
        if !self.epochs.is_current(ticket) {
            return Some(self.refuse_stale());
        }
        if is_zero(block) {
            return Some(self.insert(ticket, Form::Zero, block.len(), (&[], entrance)));
        }
        if self.contains(ticket.key) {
            return Some(Admitted::Present);
        }
        if !self.compressibility.should_try(ticket.key.file) {
            self.not_tried.fetch_add(1, Ordering::Relaxed);
            return Some(self.admit_raw(ticket, block, entrance));
        }
        None
    }

    /// Stores a block that was compressed, if that paid. `None`: it could not be compressed.
    pub(crate) fn admit_compressed(
        &self,
        ticket: &Ticket,
        block: &[u8],
        compressed: Option<&[u8]>,
        entrance: Entrance,
    ) -> Admitted {
        let paying = compressed.filter(|compressed| pays(block.len(), compressed.len()));
        self.compressibility.record(ticket.key.file, paying.is_some());
        match paying {
            Some(compressed) => self.insert(ticket, Form::Fast, block.len(), (compressed, entrance)),
            None => self.admit_raw(ticket, block, entrance),
        }
    }

    fn admit_raw(&self, ticket: &Ticket, block: &[u8], entrance: Entrance) -> Admitted {
        let kept = match self.spec.incompressible {
            Incompressible::Keep => true,
            Incompressible::KeepFew => self.compressibility.compresses(ticket.key.file),
            Incompressible::Refuse => false,
        };
        if kept {
            return self.insert(ticket, Form::Raw, block.len(), (block, entrance));
        }
        self.incompressible.fetch_add(1, Ordering::Relaxed);
        Admitted::Incompressible
    }

    fn insert(
        &self,
        ticket: &Ticket,
        form: Form,
        raw_len: usize,
        (compressed, entrance): (&[u8], Entrance),
    ) -> Admitted {
        let key = ticket.key;
        let sum = checksum(key, form, raw_len, compressed);
        self.insert_if(ticket, Incoming { key, form, raw_len, sum, compressed, entrance }, || true)
    }

    /// Inserts a block by its ticket, if `may_enter` agrees under the shard's lock.
    pub(crate) fn insert_if(
        &self,
        ticket: &Ticket,
        incoming: Incoming<'_>,
        may_enter: impl FnOnce() -> bool,
    ) -> Admitted {
        let mut shard = lock(self.shard(incoming.key));
        // Under the lock: see `epoch` and `evicted`.
        if !self.epochs.is_current(ticket) || !may_enter() {
            drop(shard);
            return self.refuse_stale();
        }
        match shard.insert(incoming) {
            Inserted::Done => Admitted::Stored,
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

/// Each shard's share of the limit, in bytes.
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

/// A few steps. False: the shard is as small as it will be.
fn shrink_for_a_moment(shard: &mut Shard) -> bool {
    (0..STEPS).all(|_| shard.shrink_step())
}
