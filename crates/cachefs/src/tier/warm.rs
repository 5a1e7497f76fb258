//! Reads blocks that nobody has requested, to have them in the store.
//!
//! It claims no flight: a reader that needs one of these blocks reads it, and never waits for a read of idle priority. The costs of such
//! reads are not those of requests, so the admission policy does not hear of them.

use std::io;
use std::ops::Range;

use eke_cache_shared::FileVersion;
use eke_cache_store::{Admitted, FileId, Key, Scratch, Store, Ticket};

use super::file_ids::NO_FILE;
use super::{Freshness, ReadContext, Tier};
use crate::backing::{File, Pages, Stamp};

/// What a piece of warming did, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Warmed {
    /// Read from the backing file.
    pub read: u64,
    /// Of the file, in the store now. Those that were there before count, too.
    pub kept: u64,
    /// Memory that the blocks admitted now take.
    pub taken: u64,
    /// Of the file, rejected because they do not compress.
    pub incompressible: u64,
    /// Of the file, rejected because the store has no room.
    pub no_room: u64,
}

impl std::ops::AddAssign for Warmed {
    fn add_assign(&mut self, other: Self) {
        self.read += other.read;
        self.kept += other.kept;
        self.taken += other.taken;
        self.incompressible += other.incompressible;
        self.no_room += other.no_room;
    }
}

/// A missing block: its ticket from before the read, and its bytes in the file.
struct MissingBlock {
    ticket: Ticket,
    bytes: Range<u64>,
}

impl Tier {
    /// Compares the file with its last stamp before it is warmed. A change drops its blocks. The kernel may have older pages of it, so the
    /// next open counts as one of a changed file.
    pub fn visited(&self, file: FileId, now: Stamp) {
        if self.stamps.visited(file, now, self.clock.wall_ns()) == Freshness::Changed {
            self.drop_outdated(file);
        }
    }

    /// The bytes that one call of [`Tier::warm`] should read, a multiple of the block size.
    pub fn warm_at_once(&self) -> u64 {
        self.at_once * self.block_size()
    }

    /// The size of a block in bytes; 64 KiB without a store.
    pub fn block_size(&self) -> u64 {
        self.store.as_ref().map_or(64 << 10, |store| store.block_size() as u64)
    }

    /// Reads the missing blocks of `bytes`, which begins with a block and ends with one or with the file, and stores them. With `stay`
    /// they enter the main queue. Compresses on this thread.
    ///
    /// # Errors
    /// Those of the backing file; `ENOMEM`.
    pub fn warm(
        &self,
        context: &mut ReadContext,
        (file, backing): (FileId, &File),
        bytes: Range<u64>,
        stay: bool,
    ) -> io::Result<Warmed> {
        let Some(store) = self.store.as_deref().filter(|_| file != NO_FILE) else {
            return Ok(Warmed::default());
        };
        let (mut done, missing) = self.missing(store, file, bytes, stay);
        let version = self.shared_version(file, backing, File::stamp);
        let missing =
            self.without_shared(store, (context.scratch.as_mut(), version), (missing, stay), &mut done);
        let (Some(first), Some(last)) = (missing.first(), missing.last()) else { return Ok(done) };
        let from = first.bytes.start;
        let whole = blocks_of(from..last.bytes.end, self.block_size()).count() * store.block_size();
        let ReadContext { backing: buffer, scratch, .. } = context;
        let room = buffer.room(whole).ok_or(io::ErrorKind::OutOfMemory)?;
        let read = self.read_unasked(file, backing, room, from)?;
        done.read = read as u64;
        // As for a request: of this version if the file has it before and after.
        let version =
            version.filter(|version| self.shared_version(file, backing, File::fresh_stamp) == Some(*version));
        for block in missing {
            let start = usize::try_from(block.bytes.start - from).unwrap_or(usize::MAX);
            let end = start.saturating_add(store.block_size()).min(read);
            let Some(content) = buffer.bytes(read).get(start..end).filter(|c| !c.is_empty()) else { break };
            let (admitted, taken) = admit(store, scratch.as_mut(), (block.ticket, stay), content);
            self.offer(version, block.ticket, content, admitted);
            done.count(admitted, content.len() as u64);
            done.taken += taken as u64;
        }
        Ok(done)
    }

    /// Those of the blocks that the shared tier does not have; it stores the others.
    fn without_shared(
        &self,
        store: &Store,
        (scratch, version): (Option<&mut Scratch>, Option<FileVersion>),
        (mut missing, stay): (Vec<MissingBlock>, bool),
        done: &mut Warmed,
    ) -> Vec<MissingBlock> {
        let Some(scratch) = scratch.filter(|_| version.is_some()) else { return missing };
        let tickets = missing.iter().map(|block| block.ticket).collect();
        let left = self.warm_from_shared((store, scratch), version, tickets, |admitted, block| {
            done.count(admitted, block.raw_len as u64);
            done.taken += if admitted == Admitted::Stored { block.compressed.len() as u64 } else { 0 };
        });
        missing.retain(|block| {
            let is_left = left.contains(&block.ticket);
            if !is_left && stay {
                store.keep(block.ticket.key());
            }
            is_left
        });
        missing
    }

    /// The blocks to read, and what is there already.
    fn missing(
        &self,
        store: &Store,
        file: FileId,
        bytes: Range<u64>,
        stay: bool,
    ) -> (Warmed, Vec<MissingBlock>) {
        let (mut done, mut missing) = (Warmed::default(), Vec::new());
        for block in blocks_of(bytes.clone(), self.block_size()) {
            let key = Key::new(file, block.start / self.block_size());
            let ticket = store.ticket(key);
            let within = block.start..block.end.min(bytes.end);
            let is_stored = if stay { store.keep(key) } else { store.contains(key) };
            if is_stored {
                done.kept += within.end - within.start;
            } else {
                missing.push(MissingBlock { ticket, bytes: within });
            }
        }
        (done, missing)
    }

    /// Reads the backing file without recording a cost.
    fn read_unasked(&self, file: FileId, backing: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let pages = backing.settle(offset, out.len());
        let is_settled = matches!(pages, Pages::Settled | Pages::Cached | Pages::Mixed);
        if !is_settled {
            self.stamps.doubt(file);
        }
        let read = backing.read_from(pages, out, offset)?;
        // As for a request: the kernel changes mtime shortly before it marks the page dirty.
        if !is_settled || backing.has_dirty(offset, read.max(1)) == Some(true) {
            self.stamps.doubt(file);
        }
        self.counters.bytes_warmed.add(read);
        Ok(read)
    }
}

impl Warmed {
    fn count(&mut self, admitted: Admitted, bytes: u64) {
        match admitted {
            Admitted::Stored | Admitted::Present | Admitted::Queued => self.kept += bytes,
            Admitted::Incompressible => self.incompressible += bytes,
            Admitted::NoRoom | Admitted::NoMemory | Admitted::Overrun => self.no_room += bytes,
            // It changed meanwhile, so whoever changed it will read it again.
            Admitted::Stale | Admitted::BadLength => {}
        }
    }
}

/// Admits a block by its ticket. Without memory for a compressor, one of the store's workers compresses it.
fn admit(
    store: &Store,
    scratch: Option<&mut Scratch>,
    (ticket, stay): (Ticket, bool),
    block: &[u8],
) -> (Admitted, usize) {
    match scratch {
        Some(scratch) if stay => store.admit_to_stay(scratch, ticket, block),
        Some(scratch) => (store.admit(scratch, ticket, block), 0),
        None => (store.submit(rustix::thread::sched_getcpu(), ticket, block), 0),
    }
}

/// The whole blocks that these bytes touch.
fn blocks_of(bytes: Range<u64>, size: u64) -> impl Iterator<Item = Range<u64>> {
    let numbers = bytes.start / size..bytes.end.div_ceil(size);
    numbers.map(move |block| block * size..(block + 1).saturating_mul(size))
}
