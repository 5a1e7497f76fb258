//! Blocks of files: from the store, or else from the backing file; and the effect of changes.
//!
//! # Layout
//! - `read`, `fetch`, `block_run`, `ahead`: a read, as `piece`s of blocks; missing blocks are read once (`flight`)
//! - [`ready`]: whether a read must wait, and the blocks found for it
//! - `warm`: reads that nobody requested, to have their blocks in the store
//! - `spilled`: blocks that were evicted to a faster disk; `shared`: blocks of the tier that a farm shares
//! - `write`: writes and other changes, and the blocks that they drop
//! - `recent`: a few uncompressed blocks; `active_reads`: concurrent reads of the backing file; `buffer`: buffers for direct reads
//! - `file_ids`, `stamps`: the ids of files, and their stamps when last seen
//! - [`policy`], [`report`]: the admission policy, and the costs; [`clock`]
//!
//! # Invariants
//! - A block is admitted only by a ticket from before it was read. A change goes to the backing file, then drops its blocks,
//!   then is acknowledged. So no reply has older bytes than a change acknowledged before.
//! - The stored blocks of a file match a stamp from which every later change differs. Where that is impossible, the file
//!   counts as changed at its next open.
//! - A block shorter than the request is served only if the file ends there now.
//! - Errors come only from the backing file, for requested bytes.

pub mod clock;
pub mod policy;
pub mod ready;
pub mod report;

mod active_reads;
mod ahead;
mod block_run;
mod buffer;
mod coverage;
mod fetch;
mod file_ids;
mod flight;
mod piece;
mod read;
mod recent;
mod shared;
mod short_reads;
mod spilled;
mod stamps;
mod warm;
mod write;

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use eke_cache_mounts::settings::Compress;
use eke_cache_policy::admission::Content;
use eke_cache_shared::Shared;
use eke_cache_spill::Spill;
use eke_cache_store::{Admitted, FileId, OutOfMemory, Scratch, Store, Ticket, WorkDone};

use crate::backing::{File, Pages, Stamp};
use active_reads::ActiveReads;
pub use ahead::LONG as LONG_REQUEST;
use buffer::Buffer;
use clock::{Clock, SystemClock, Timer};
pub use coverage::Coverage;
use file_ids::{FileIds, NO_FILE};
use flight::{Flights, Wait};
use piece::Piece;
use policy::{AdmissionPolicy, AdmitAll};
use read::Reading;
use ready::Prepared;
use recent::{Recent, Spare};
use report::Counters;
pub use report::TierReport;
use short_reads::ShortReads;
use stamps::Stamps;
pub use warm::Warmed;
pub use write::WritePosition;

/// The buffers and tables of one thread that serves reads.
#[derive(Default)]
pub struct ReadContext {
    reply: Buffer,
    /// Bytes read from the backing file.
    backing: Buffer,
    /// A block read from the spill.
    spilled: Vec<u8>,
    spare: Spare,
    /// `None`: there was no memory for it; then everything is read from the backing file.
    scratch: Option<Scratch>,
    pieces: Vec<Piece>,
    waits: Vec<(usize, Wait)>,
}

impl fmt::Debug for ReadContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadContext").finish_non_exhaustive()
    }
}

/// The result of an open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// Unchanged since it was last seen: the kernel may keep its pages (`FOPEN_KEEP_CACHE`).
    Unchanged,
    /// New, or changed since: its blocks were dropped.
    Changed,
}

/// Whether the watch reports a file's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reporting {
    /// It does while [`Tier::coverage`] says so.
    Watched,
    /// It does not: the file is on another file system, or others may store through a mapping.
    Unwatched,
}

/// The options of a tier besides the store.
#[derive(Clone)]
pub struct Options {
    /// Decides which files' blocks are admitted.
    pub policy: Arc<dyn AdmissionPolicy>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Two changes of a file less than this apart may have the same time in its inode; see [`crate::backing::tick`].
    pub tick: Duration,
    /// A file that an open finds changed less than this ago counts as changed once more later: a write that is under way has its time from its begin.
    /// Zero where a watch tells when a write has ended.
    pub recheck: Duration,
    /// The files are on a network file system: a stat after a write has the client send what is dirty and waits for the server
    /// (`nfs_getattr`, fs/nfs/inode.c). So a changed file counts as unknown until its next open instead.
    pub is_remote: bool,
    /// Blocks that are kept uncompressed.
    pub recent_blocks: usize,
    /// The most blocks of one read, readahead included.
    pub at_once: usize,
    /// Where evicted blocks are. The store must have it as its listener.
    pub spill: Option<Arc<Spill>>,
    /// The tier that a farm shares.
    pub shared: Option<Arc<Shared>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            policy: Arc::new(AdmitAll),
            clock: Arc::new(SystemClock),
            tick: Duration::from_millis(10),
            recheck: Duration::ZERO,
            is_remote: false,
            recent_blocks: 32,
            at_once: block_run::MOST,
            spill: None,
            shared: None,
        }
    }
}

/// One file is remembered per this many bytes of the store's limit: a file of a page, compressed. A file that is forgotten loses its blocks at its
/// next open...
const BYTES_TO_A_FILE: u64 = 1024;

/// ... but at least and at most this many.
const FILES: (u64, u64) = (4096, 1 << 20);

/// The tier. The default one has no store and reads everything from the backing file.
pub struct Tier {
    store: Option<Arc<Store>>,
    compress: Compress,
    policy: Arc<dyn AdmissionPolicy>,
    clock: Arc<dyn Clock>,
    file_ids: FileIds,
    stamps: Stamps,
    coverage: Coverage,
    is_remote: bool,
    recent: Recent,
    spill: Option<Arc<Spill>>,
    shared: Option<Arc<Shared>>,
    at_once: u64,
    flights: Flights,
    reading: ActiveReads,
    short_reads: ShortReads,
    counters: Counters,
}

impl Default for Tier {
    fn default() -> Self {
        Self::without_store(Options::default())
    }
}

/// How many files are remembered beside this store.
fn files(store: Option<&Store>) -> usize {
    let files = store.map_or(0, |store| store.limit().0 / BYTES_TO_A_FILE).clamp(FILES.0, FILES.1);
    usize::try_from(files).unwrap_or(usize::MAX)
}

impl fmt::Debug for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tier").field("report", &self.report()).finish_non_exhaustive()
    }
}

/// What the time of a read of a backing file tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measures {
    /// What a miss of blocks costs.
    Blocks,
    /// That of a few bytes alone.
    Bytes,
}

/// A read of a backing file.
#[derive(Debug, Clone, Copy)]
struct BackingRead {
    bytes: usize,
    /// They may change without a sign until they are written to the disk.
    is_dirty: bool,
}

impl Tier {
    /// A tier over a store. With [`Compress::Async`] some threads must run [`Tier::compress`].
    pub fn new(store: Arc<Store>, compress: Compress, options: Options) -> Self {
        Self::of(Some(store), compress, options)
    }

    /// A tier without a store: all is read from the backing files.
    pub fn without_store(options: Options) -> Self {
        Self::of(None, Compress::default(), Options { recent_blocks: 0, ..options })
    }

    fn of(store: Option<Arc<Store>>, compress: Compress, options: Options) -> Self {
        let ns = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
        let (tick_ns, recheck_ns) = (ns(options.tick), ns(options.recheck));
        let block_size = store.as_ref().map_or(0, |store| store.block_size());
        Self {
            file_ids: FileIds::default(),
            stamps: Stamps::new(files(store.as_deref()), tick_ns, recheck_ns),
            coverage: Coverage::by(Arc::clone(&options.clock)),
            is_remote: options.is_remote,
            recent: Recent::new(options.recent_blocks, block_size),
            at_once: options.at_once as u64,
            spill: options.spill,
            shared: options.shared,
            flights: Flights::new(),
            reading: ActiveReads::default(),
            short_reads: ShortReads::new(
                store.as_ref().map_or(0, |store| store.limit().0 / block_size as u64),
            ),
            counters: Counters::default(),
            policy: options.policy,
            clock: options.clock,
            store,
            compress,
        }
    }

    /// A context for one thread.
    pub fn context(&self) -> ReadContext {
        let scratch = self.store.as_ref().and_then(|store| store.scratch().ok());
        ReadContext { scratch, reply: Buffer::of_small_pages(), ..ReadContext::default() }
    }

    /// The id of the file with this device and inode number, constant while the file is used (see [`Tier::give_up_ids`]).
    pub fn id(&self, dev: u64, ino: u64) -> FileId {
        self.file_ids.id(dev, ino)
    }

    /// The same, if it was asked for before.
    pub fn known_id(&self, dev: u64, ino: u64) -> Option<FileId> {
        self.file_ids.known(dev, ino)
    }

    /// If ids are scarce, takes them from files that have no blocks and that `is_used`, by device and inode number, does not know. Call it
    /// every few seconds.
    pub fn give_up_ids(&self, is_used: impl Fn(u64, u64) -> bool) {
        let Some(mut files) = self.file_ids.nearly_full() else { return };
        let stored = self.stored_files();
        files.retain(|((dev, ino), id)| !stored.contains(id) && !is_used(*dev, *ino));
        files.iter().for_each(|(_, id)| self.stamps.forget(*id));
        let unused: Vec<_> = files.into_iter().map(|(file, _)| file).collect();
        self.file_ids.forget(&unused);
    }

    /// The files that have blocks in the store.
    pub fn stored_files(&self) -> HashSet<FileId> {
        let mut files = HashSet::new();
        if let Some(store) = &self.store {
            store.each(|key, _| {
                files.insert(key.file);
            });
        }
        files
    }

    /// With ids for few files on other devices. For tests.
    #[cfg(test)]
    pub(crate) fn with_few_ids(mut self, most: usize) -> Self {
        self.file_ids = FileIds::new(most);
        self
    }

    /// Lets the table of files follow the store's limit. Call it every few seconds.
    pub fn follow_limit(&self) {
        self.stamps.remember(files(self.store.as_deref()));
    }

    /// The memory of tables about files, besides their blocks, and of the spill, in bytes.
    pub fn tables(&self) -> usize {
        let spill = self.spill.as_ref().map_or(0, |spill| spill.memory());
        self.stamps.memory() + self.file_ids.memory() + self.short_reads.memory() + spill
    }

    /// The tier's counters so far.
    pub fn report(&self) -> TierReport {
        self.counters.report()
    }

    /// Reads of backing files under way, without those that nobody requested.
    pub fn active_reads(&self) -> u64 {
        self.reading.count().into()
    }

    /// Compares the file with its last stamp; call it at each open. If it changed, its blocks are dropped. The answer is for the kernel's
    /// pages: they may also be older than blocks that were warmed since. `reporting`, of this file, is called after a write of our own.
    pub fn opened(&self, file: FileId, now: Stamp, reporting: impl FnOnce() -> Reporting) -> Freshness {
        let may_count = self.stamps.is_of_own_write(file, now) && self.coverage.includes(now.changed_ns);
        let is_reported = may_count && reporting() == Reporting::Watched;
        let seen = self.stamps.opened(file, now, self.clock.wall_ns(), is_reported);
        if seen.blocks == Freshness::Changed {
            self.drop_outdated(file);
        }
        seen.pages
    }

    /// What the watch has passed on.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// The file's size when it was last seen. Asks no file system.
    pub fn known_size(&self, file: FileId) -> Option<u64> {
        self.stamps.size(file)
    }

    /// Reads `len` bytes from `offset`; fewer only at the end of the file.
    ///
    /// # Errors
    /// Those of the backing file; `ENOMEM` if there is no memory for the reply.
    pub fn read<'c>(
        &self,
        context: &'c mut ReadContext,
        file: FileId,
        backing: &File,
        offset: u64,
        len: usize,
    ) -> io::Result<&'c [u8]> {
        self.read_prepared(context, Prepared { file, blocks: Vec::new() }, backing, offset, len)
    }

    /// The same, with the blocks that [`Tier::prepare`] found: they are not looked up again.
    ///
    /// # Errors
    /// As [`Tier::read`].
    pub fn read_prepared<'c>(
        &self,
        context: &'c mut ReadContext,
        prepared: Prepared<'_>,
        backing: &File,
        offset: u64,
        len: usize,
    ) -> io::Result<&'c [u8]> {
        context.reply.room(len).ok_or(io::ErrorKind::OutOfMemory)?;
        let Prepared { file, blocks } = prepared;
        let read = match self.store.as_deref().filter(|_| file != NO_FILE) {
            Some(store) => Reading {
                tier: self,
                store,
                context,
                file,
                backing,
                offset,
                len,
                is_alone: false,
                version: None,
            }
            .run(blocks)?,
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
        Ok(self.read_backing(file, backing, context.reply.bytes_mut(len), offset, Measures::Blocks)?.bytes)
    }

    /// The file is gone, or somebody else changed it: forgets its stamp and drops its blocks.
    pub fn forget(&self, file: FileId) {
        self.stamps.forget(file);
        self.drop_file(file);
    }

    /// Drops the file's blocks, because nobody will read them here. Its stamp stays, and what is known of its content.
    pub fn drop_blocks(&self, file: FileId) {
        if let Some(store) = &self.store {
            store.drop_range(file, 0..u64::MAX);
        }
    }

    /// What is known of whether the file compresses.
    pub fn content(&self, file: FileId) -> Content {
        Content::of(self.store.as_ref().and_then(|store| store.failures(file)))
    }

    /// Compresses queued blocks, as one of the workers, until the store is closed. Prefers the queue of `cpu`.
    ///
    /// # Errors
    /// There is no memory for the worker's tables.
    pub fn compress(&self, cpu: usize) -> Result<(), OutOfMemory> {
        let Some(store) = &self.store else { return Ok(()) };
        store.worker(cpu)?.run_by(|worker| {
            let timer = Timer::start(&*self.clock);
            let did = worker.step();
            if let WorkDone::Compressed(blocks) = did {
                self.note_compressed(store, blocks, timer);
            }
            did
        });
        Ok(())
    }

    /// Drops blocks of an earlier content than that of the noted stamp.
    fn drop_outdated(&self, file: FileId) {
        self.drop_file(file);
        self.stamps.dropped(file);
    }

    fn drop_file(&self, file: FileId) {
        self.counters.changed.add(1);
        if let Some(store) = &self.store {
            store.drop_file(file);
        }
    }

    fn admit(&self, store: &Store, scratch: Option<&mut Scratch>, ticket: Ticket, block: &[u8]) -> Admitted {
        let admitted = match (self.compress, scratch) {
            (Compress::Sync, Some(scratch)) => {
                let timer = Timer::start(&*self.clock);
                let admitted = store.admit(scratch, ticket, block);
                self.note_compressed(store, 1, timer);
                admitted
            }
            _ => store.submit(rustix::thread::sched_getcpu(), ticket, block),
        };
        self.counters.note_admitted(admitted);
        admitted
    }

    fn note_hit(&self, file: FileId, bytes: usize, began: Instant) {
        let took = self.clock.now().saturating_duration_since(began);
        self.counters.hits.add(1);
        self.counters.hit.note(bytes, took);
        self.policy.note_hit(file, bytes, took);
    }

    /// Reads the backing file, and records the cost. Bytes that are in the kernel's page cache say nothing about the disk's.
    fn read_backing(
        &self,
        file: FileId,
        backing: &File,
        out: &mut [u8],
        offset: u64,
        of: Measures,
    ) -> io::Result<BackingRead> {
        let pages = backing.pages(offset, out.len());
        self.note_unseen(file, pages);
        let (timer, at_once) = (Timer::start(&*self.clock), self.reading.begin());
        let bytes = backing.read_from(pages, out, offset)?;
        let took = timer.elapsed(&*self.clock);
        // The kernel changes mtime shortly before it marks the page dirty.
        let is_dirty = pages == Pages::Dirty || backing.has_dirty(offset, bytes.max(1)) == Some(true);
        // Again: an open meanwhile has taken the first note.
        self.note_unseen(file, if is_dirty && pages != Pages::Unseen { Pages::Dirty } else { pages });
        self.counters.note_backing_read(bytes, took, of);
        // A disk that serves several reads, at once or in turn, takes this share of the time for each.
        match pages {
            _ if bytes == 0 => {}
            Pages::Settled | Pages::Unseen => {
                let took = took / at_once.count;
                let block_size = self.store.as_ref().map_or(0, |store| store.block_size());
                self.short_reads.note(bytes, block_size, took);
                match of {
                    Measures::Blocks => self.policy.note_backing_read(file, bytes, took),
                    // A miss of unknown cost.
                    Measures::Bytes => self.policy.note_page_cache_read(file, bytes),
                }
            }
            Pages::Cached | Pages::Mixed | Pages::Dirty => self.policy.note_page_cache_read(file, bytes),
        }
        Ok(BackingRead { bytes, is_dirty })
    }

    /// Notes that bytes with such pages may change without a sign. Dirty ones are read for the kernel's pages alone.
    fn note_unseen(&self, file: FileId, pages: Pages) {
        match pages {
            Pages::Settled | Pages::Cached | Pages::Mixed => {}
            Pages::Dirty => self.stamps.pages_may_be_old(file),
            Pages::Unseen => self.stamps.doubt(file),
        }
    }

    fn note_compressed(&self, store: &Store, blocks: usize, timer: Timer) {
        let took = timer.elapsed(&*self.clock);
        self.counters.compress.note(blocks * store.block_size(), took);
        self.policy.note_compressed(blocks, took);
    }
}
