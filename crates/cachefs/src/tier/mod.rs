//! Blocks of files: from the store if it has them, from the backing file if not; and what a change makes of them.
//!
//! # Layout
//! - `read`, `fetch`, `run`, `ahead`: a read, as `piece`s of blocks; what is missing is read from the backing file once (`flight`)
//! - [`ready`]: must a read wait? The blocks that it found
//! - `recent`: a few blocks as they are
//! - `names`, `known`: files' identities, and what they were when they were last seen
//! - [`judge`], [`report`]: the admission policy, and what it costs; [`clock`]
//!
//! # Invariants
//! - A block is taken in only by a ticket from before it was read; whoever changes the file drops what changed after the file
//!   below has it and before the change is acknowledged. So no reply has an older byte than a change acknowledged before.
//! - What is held of a file is what it was at a stamp from which every later change shows; where that cannot be had, the file counts
//!   as changed at its next open.
//! - A block that ends before what is asked for is served only if the file ends there now.
//! - No error comes from here: only from the backing file, for bytes that were asked for.

pub mod clock;
pub mod judge;
pub mod ready;
pub mod report;

mod ahead;
mod buffer;
mod fetch;
mod flight;
mod known;
mod names;
mod piece;
mod read;
mod recent;
mod run;

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use eke_cache_mounts::settings::Compress;
use eke_cache_store::{Did, FileId, OutOfMemory, Scratch, Store, Ticket};

use crate::backing::{File, Stamp};
use buffer::Buffer;
use clock::{Began, Clock, SystemClock};
use flight::{Flights, Wait};
use judge::{Always, Judge};
use known::Known;
use names::{NOBODY, Names};
use piece::Piece;
use read::Reading;
use ready::Prepared;
use recent::{Recent, Spare};
use report::Counters;
pub use report::Report;

/// What one thread needs to serve reads. Has a buffer for a reply.
#[derive(Default)]
pub struct ReadContext {
    reply: Buffer,
    /// What was read from the backing file.
    backing: Buffer,
    spare: Spare,
    /// `None`: there was no memory for it; then all is read from the backing file.
    scratch: Option<Scratch>,
    pieces: Vec<Piece>,
    waits: Vec<(usize, Wait)>,
}

impl fmt::Debug for ReadContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadContext").finish_non_exhaustive()
    }
}

/// What an open found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// What it was when it was last seen: the kernel may keep its pages (`FOPEN_KEEP_CACHE`).
    Same,
    /// New to us, or changed below since: what was held of it is dropped.
    Changed,
}

/// How a write ends up in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At this offset.
    At(u64),
    /// At the end, wherever that is then (`O_APPEND`).
    End,
}

/// What a tier is made of besides the store.
#[derive(Clone)]
pub struct Options {
    /// Which files' blocks are taken in.
    pub judge: Arc<dyn Judge>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
    /// Changes of a file less than this apart may have the same time in its inode: [`crate::backing::tick`] knows.
    pub tick: Duration,
    /// Blocks that are kept as they are.
    pub recent_blocks: usize,
    /// The most blocks that are read at once, with what is read ahead.
    pub at_once: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            judge: Arc::new(Always),
            clock: Arc::new(SystemClock),
            tick: Duration::from_millis(10),
            recent_blocks: 32,
            at_once: run::MOST,
        }
    }
}

/// One file to this many bytes of the store's limit is remembered...
const BYTES_TO_A_FILE: u64 = 4096;

/// ... but so many at least, and at most.
const FILES: (u64, u64) = (4096, 1 << 20);

/// The tier. The default one has no store, and reads everything below.
pub struct Tier {
    store: Option<Arc<Store>>,
    compress: Compress,
    judge: Arc<dyn Judge>,
    clock: Arc<dyn Clock>,
    names: Names,
    known: Known,
    recent: Recent,
    at_once: u64,
    flights: Flights,
    reading: AtOnce,
    counters: Counters,
}

impl Default for Tier {
    fn default() -> Self {
        Self::of(None, Compress::default(), Options { recent_blocks: 0, ..Options::default() })
    }
}

impl fmt::Debug for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tier").field("report", &self.report()).finish_non_exhaustive()
    }
}

impl Tier {
    /// A tier over a store. With [`Compress::Async`] some threads must be in [`Tier::compress`].
    pub fn new(store: Arc<Store>, compress: Compress, options: Options) -> Self {
        Self::of(Some(store), compress, options)
    }

    fn of(store: Option<Arc<Store>>, compress: Compress, options: Options) -> Self {
        let files =
            store.as_ref().map_or(0, |store| store.limit().0 / BYTES_TO_A_FILE).clamp(FILES.0, FILES.1);
        let tick_ns = i128::try_from(options.tick.as_nanos()).unwrap_or(i128::MAX);
        let block_size = store.as_ref().map_or(0, |store| store.block_size());
        Self {
            names: Names::default(),
            known: Known::new(usize::try_from(files).unwrap_or(usize::MAX), tick_ns),
            recent: Recent::new(options.recent_blocks, block_size),
            at_once: options.at_once as u64,
            flights: Flights::new(),
            reading: AtOnce::default(),
            counters: Counters::default(),
            judge: options.judge,
            clock: options.clock,
            store,
            compress,
        }
    }

    /// What one thread needs.
    pub fn context(&self) -> ReadContext {
        let scratch = self.store.as_ref().and_then(|store| store.scratch().ok());
        ReadContext { scratch, reply: Buffer::of_small_pages(), ..ReadContext::default() }
    }

    /// The identity of the file with this device and inode number, the same for as long as this worker lives.
    pub fn id(&self, dev: u64, ino: u64) -> FileId {
        self.names.id(dev, ino)
    }

    /// Bytes that are taken by what is known of files besides their blocks.
    pub fn tables(&self) -> usize {
        self.known.memory() + self.names.memory()
    }

    /// What the tier has done so far.
    pub fn report(&self) -> Report {
        self.counters.report()
    }

    /// To be called at each open, with what the file is now. `Changed` drops what is held of it.
    pub fn opened(&self, file: FileId, now: Stamp) -> Seen {
        let seen = self.known.opened(file, now, self.clock.wall_ns());
        if seen == Seen::Changed {
            self.drop_file(file);
        }
        seen
    }

    /// Reads; less than asked for only at the end of the file.
    ///
    /// # Errors
    /// What the backing file answers; `ENOMEM` if there is no memory for the reply itself.
    pub fn read<'h>(
        &self,
        context: &'h mut ReadContext,
        file: FileId,
        backing: &File,
        offset: u64,
        len: usize,
    ) -> io::Result<&'h [u8]> {
        self.read_prepared(context, Prepared { file, blocks: Vec::new() }, backing, offset, len)
    }

    /// The same, with blocks that [`Tier::prepare`] found for this read: they are not looked up again.
    ///
    /// # Errors
    /// As [`Tier::read`].
    pub fn read_prepared<'h>(
        &self,
        context: &'h mut ReadContext,
        prepared: Prepared<'_>,
        backing: &File,
        offset: u64,
        len: usize,
    ) -> io::Result<&'h [u8]> {
        context.reply.room(len).ok_or(io::ErrorKind::OutOfMemory)?;
        let Prepared { file, blocks } = prepared;
        let read = match self.store.as_deref().filter(|_| file != NOBODY) {
            Some(store) => Reading { tier: self, store, context, file, backing, offset, len }.run(blocks)?,
            None => self.read_uncached(context, file, backing, offset, len)?,
        };
        Ok(context.reply.bytes(read))
    }

    fn read_uncached(
        &self,
        context: &mut ReadContext,
        file: FileId,
        backing: &File,
        offset: u64,
        len: usize,
    ) -> io::Result<usize> {
        self.read_backing(file, backing, context.reply.bytes_mut(len), offset)
    }

    /// Writes to the backing file, then drops what is held of that part of it. Returns how much was written.
    ///
    /// # Errors
    /// What the backing file answers.
    pub fn write(
        &self,
        _hands: &mut ReadContext,
        file: FileId,
        backing: &File,
        place: Place,
        data: &[u8],
    ) -> io::Result<usize> {
        let written = match place {
            Place::At(offset) => {
                let bytes = offset..offset.saturating_add(data.len() as u64);
                self.around(file, backing, || backing.write_at(data, offset), |_| bytes)
            }
            Place::End => {
                let before = backing.stamp()?.size;
                self.around(file, backing, || backing.append(data), |done| appended(backing, before, done))
            }
        }?;
        self.counters.bytes_written.add(written);
        Ok(written)
    }

    /// Does `change` to the backing file (truncation, fallocate, a copy inside the kernel), with what is held of the file
    /// from byte `from` on dropped around it, and its stamp taken anew. `u64::MAX`: the content stays (its mode, owner,
    /// times, names).
    ///
    /// # Errors
    /// What `change` answers.
    pub fn change<T>(
        &self,
        file: FileId,
        from: u64,
        backing: &File,
        change: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.around(file, backing, change, |_| from..u64::MAX)
    }

    /// Does `change` to those bytes of the file that `changed` says then; also what failed may have changed some.
    fn around<T>(
        &self,
        file: FileId,
        backing: &File,
        change: impl FnOnce() -> io::Result<T>,
        changed: impl FnOnce(&io::Result<T>) -> Range<u64>,
    ) -> io::Result<T> {
        let begun = self.known.begin(file, || backing.fresh_stamp());
        if begun.foreign {
            self.drop_file(file);
        }
        let done = change();
        self.drop_bytes(file, changed(&done));
        self.known.end(file, begun, || backing.stamp(), || self.clock.wall_ns());
        done
    }

    /// The file is gone, or was changed by somebody else: all that is held of it is dropped.
    pub fn forget(&self, file: FileId) {
        self.known.forget(file);
        self.drop_file(file);
    }

    /// The file's blocks are not asked for any more: they go. What it was when it was last seen stays known.
    pub fn let_go(&self, file: FileId) {
        if let Some(store) = &self.store {
            store.drop_file(file);
        }
    }

    /// Compresses what waits, as one of the workers, until the store is closed; prefers the queue of `cpu`.
    ///
    /// # Errors
    /// When there is no memory for the worker's tables.
    pub fn compress(&self, cpu: usize) -> Result<(), OutOfMemory> {
        let Some(store) = &self.store else { return Ok(()) };
        store.worker(cpu)?.run_by(|worker| {
            let began = Began::now(&*self.clock);
            let did = worker.step();
            if let Did::Compressed(blocks) = did {
                self.note_compressed(store, blocks, began);
            }
            did
        });
        Ok(())
    }

    fn drop_file(&self, file: FileId) {
        self.counters.changed.add(1);
        self.let_go(file);
    }

    fn drop_bytes(&self, file: FileId, bytes: Range<u64>) {
        if let Some(store) = self.store.as_ref().filter(|_| bytes.start < bytes.end) {
            let size = store.block_size() as u64;
            store.drop_range(file, bytes.start / size..bytes.end.div_ceil(size));
        }
    }

    fn admit(&self, store: &Store, scratch: Option<&mut Scratch>, ticket: Ticket, block: &[u8]) {
        let admitted = match (self.compress, scratch) {
            (Compress::Sync, Some(scratch)) => {
                let began = Began::now(&*self.clock);
                let admitted = store.admit(scratch, ticket, block);
                self.note_compressed(store, 1, began);
                admitted
            }
            _ => store.submit(rustix::thread::sched_getcpu(), ticket, block),
        };
        self.counters.note_admitted(admitted);
    }

    fn note_hit(&self, file: FileId, bytes: usize, began: Instant) {
        let took = self.clock.now().saturating_duration_since(began);
        self.counters.hits.add(1);
        self.counters.hit.note(bytes, took);
        self.judge.note_hit(file, bytes, took);
    }

    /// Reads the backing file, and notes what that took.
    fn read_backing(&self, file: FileId, backing: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
        if !backing.settle(offset, out.len()) {
            self.known.doubt(file);
        }
        let (began, at_once) = (Began::now(&*self.clock), self.reading.begin());
        let read = backing.read_at(out, offset)?;
        let took = began.took(&*self.clock);
        // The kernel moves mtime a moment before it calls the page dirty.
        if backing.has_dirty(offset, read.max(1)) == Some(true) {
            self.known.doubt(file);
        }
        self.counters.note_backing_read(read, took);
        // A disk that serves several at once, or one after the other, takes that part of the time for each.
        if read > 0 {
            self.judge.note_backing_read(file, read, took / at_once.count);
        }
        Ok(read)
    }

    fn note_compressed(&self, store: &Store, blocks: usize, began: Began) {
        let took = began.took(&*self.clock);
        self.counters.compress.note(blocks * store.block_size(), took);
        self.judge.note_compressed(blocks, took);
    }
}

/// How many read from the backing file just now.
#[derive(Debug, Default)]
struct AtOnce(AtomicU32);

/// One of them, until it is dropped.
struct OneOf<'a> {
    all: &'a AtOnce,
    /// How many there were when it began, itself included.
    count: u32,
}

impl AtOnce {
    fn begin(&self) -> OneOf<'_> {
        OneOf { all: self, count: self.0.fetch_add(1, Relaxed) + 1 }
    }
}

impl Drop for OneOf<'_> {
    fn drop(&mut self) {
        self.all.0.fetch_sub(1, Relaxed);
    }
}

/// Which bytes of the file an append has changed: all of them, if the file was cut meanwhile.
fn appended(backing: &File, before: u64, done: &io::Result<usize>) -> Range<u64> {
    let least = before + done.as_ref().map_or(0, |&written| written as u64);
    backing.stamp().ok().filter(|now| now.size >= least).map_or(0..u64::MAX, |now| before..now.size)
}
