//! Blocks of the tier that a farm shares: asked for before the backing file is read, offered after it.
//!
//! # Rule
//! A block from there is of the version that the file had at its last open here, and has now. A block is offered with the version that the
//! file had before it was read and has after it. Such a version is old enough that no later change can have it. So a block is never of other
//! content than its version, whoever offered it, and a reader gets what it would read from the backing file.

use std::io;
use std::time::Duration;

use eke_cache_shared::shared::{Answer, FoundBlock};
use eke_cache_shared::{FileVersion, Offer, Shared};
use eke_cache_store::{Admitted, CompressedBlock, FileId, Scratch, Store, Ticket};

use super::Tier;
use super::clock::Timer;
use super::file_ids::FileIds;
use super::flight::Lead;
use super::piece::PieceState;
use super::read::Reading;
use crate::backing::{File, Stamp};

/// How a file's stamp is read: as the kernel has it, or from its server.
pub(super) type StampBy = fn(&File) -> io::Result<Stamp>;

/// The unit of costs, in bytes.
const BLOCK: usize = 64 << 10;

/// Leads of missing blocks, by piece. `None`: the block is there, or another thread reads it.
pub(super) type Claimed<'t> = Vec<Option<Option<Lead<'t>>>>;

impl<'t> Reading<'t, '_> {
    /// Claims all missing blocks, and fills those that the shared tier has. Returns the leads of the others. `None`: the tier is not used for
    /// this file now, and nothing is claimed.
    pub fn ask_shared(&mut self) -> Option<Claimed<'t>> {
        let shared = self.tier.shared.as_deref()?;
        self.version = self.shared_version(File::stamp);
        let version = self.version?;
        let mut claimed = Claimed::new();
        claimed.try_reserve(self.context.pieces.len()).ok()?;
        for index in 0..self.context.pieces.len() {
            let lead = match self.context.pieces[index].state {
                PieceState::Missing(ticket) => self.claim_unless_spilled(index, ticket, true),
                _ => None,
            };
            claimed.push(lead);
        }
        let missing = claimed.iter().zip(&self.context.pieces).filter(|(lead, _)| lead.is_some());
        let blocks: Vec<u64> = missing.map(|(_, piece)| piece.block).collect();
        if blocks.is_empty() {
            return Some(claimed);
        }
        let bytes = blocks.len() * self.store.block_size();
        let Some(wait) = self.tier.shared_wait(shared, bytes) else { return Some(claimed) };
        let timer = Timer::start(&*self.tier.clock);
        let answer = shared.get(version, &blocks, wait);
        for block in &answer.found {
            self.take_in(shared, version, block, &mut claimed);
        }
        self.tier.note_asked(shared, &answer, (bytes, timer));
        Some(claimed)
    }

    /// Fills the piece of a block, admits the block and lands, unless its bytes are not right.
    fn take_in(
        &mut self,
        shared: &Shared,
        version: FileVersion,
        block: &FoundBlock,
        claimed: &mut Claimed<'t>,
    ) {
        let first = self.context.pieces.first().map_or(0, |piece| piece.block);
        let index = usize::try_from(block.block.saturating_sub(first)).unwrap_or(usize::MAX);
        let ticket = match self.context.pieces.get(index) {
            Some(piece) if piece.block == block.block => piece.state,
            _ => return,
        };
        let (PieceState::Missing(ticket), Some(lead)) = (ticket, claimed.get_mut(index)) else { return };
        if !self.fill_from_shared(version, index, ticket, block) {
            shared.refuse();
            return;
        }
        shared.hit();
        let is_all = self.context.pieces[index].is_all_of(block.raw_len);
        let mut keep = || self.tier.recent.put(ticket, block.raw_len, &mut self.context.spare);
        match lead.take().flatten() {
            Some(lead) if is_all => lead.land(keep),
            // The rest of the block is probably requested next.
            _ if !is_all => keep(),
            _ => {}
        }
    }

    fn fill_from_shared(
        &mut self,
        version: FileVersion,
        index: usize,
        ticket: Ticket,
        block: &FoundBlock,
    ) -> bool {
        let rest = expected(version, block.block, self.store.block_size());
        let stored = CompressedBlock::new(ticket.key(), block.form, block.raw_len, &block.compressed);
        let Some(out) = self.context.spare.room(block.raw_len).filter(|_| block.raw_len as u64 == rest)
        else {
            return false;
        };
        let Some(scratch) = self.context.scratch.as_mut() else { return false };
        if !self.store.decompress(scratch, &stored, out) {
            return false;
        }
        let piece = &mut self.context.pieces[index];
        piece.copy(self.context.spare.bytes(block.raw_len), self.context.reply.bytes_mut(self.len));
        piece.state = PieceState::Filled(piece.bytes_of(block.raw_len));
        self.tier.counters.bytes_from_shared.add(piece.bytes_of(block.raw_len));
        let admitted = self.store.readmit(ticket, &stored, || true);
        self.tier.counters.note_admitted(admitted);
        true
    }

    /// See [`Tier::shared_version`].
    pub fn shared_version(&self, stamp: StampBy) -> Option<FileVersion> {
        self.tier.shared_version(self.file, self.backing, stamp)
    }
}

impl Tier {
    /// The file's version, if its blocks may be shared: any later change makes another one.
    pub(super) fn shared_version(&self, file: FileId, backing: &File, stamp: StampBy) -> Option<FileVersion> {
        let shared = self.shared.as_deref().filter(|_| FileIds::is_inode(file.0))?;
        // The time first: what changes after the stat is later than it.
        let now_ns = self.clock.wall_ns();
        let stamp = stamp(backing).ok()?;
        let saved = self.stamps.settled_version(file, stamp, (now_ns, shared.settled_ns()))?;
        Some(FileVersion { file: saved.file, size: saved.size, times_ns: saved.times_ns })
    }

    /// Stores those of these blocks that the shared tier has, though nobody requested them. Returns the others.
    pub(super) fn warm_from_shared(
        &self,
        (store, scratch): (&Store, &mut Scratch),
        version: Option<FileVersion>,
        missing: Vec<Ticket>,
        mut stored: impl FnMut(Admitted, &FoundBlock),
    ) -> Vec<Ticket> {
        let (Some(shared), Some(version)) = (&self.shared, version) else { return missing };
        let blocks: Vec<u64> = missing.iter().map(|ticket| ticket.key().block).collect();
        let bytes = blocks.len() * store.block_size();
        let Some(wait) = self.shared_wait(shared, bytes) else { return missing };
        let timer = Timer::start(&*self.clock);
        let (answer, mut raw) = (shared.get(version, &blocks, wait), Vec::new());
        let mut lacks = |ticket: &Ticket| {
            let of = answer.found.iter().find(|block| block.block == ticket.key().block);
            let Some(block) = of else { return true };
            let compressed = CompressedBlock::new(ticket.key(), block.form, block.raw_len, &block.compressed);
            raw.resize(block.raw_len, 0);
            let is_right = block.raw_len as u64 == expected(version, block.block, store.block_size());
            if !is_right || !store.decompress(scratch, &compressed, &mut raw) {
                shared.refuse();
                return true;
            }
            shared.hit();
            stored(store.readmit(*ticket, &compressed, || true), block);
            false
        };
        let others = missing.into_iter().filter(|ticket| lacks(ticket)).collect();
        self.note_asked(shared, &answer, (bytes, timer));
        others
    }

    /// How long a read of so many bytes waits for the tier. `None`: it does not ask.
    fn shared_wait(&self, shared: &Shared, bytes: usize) -> Option<Duration> {
        let nth = self.counters.next_shared();
        shared.wait_for((self.counters.origin_us(bytes), bytes.div_ceil(BLOCK)), nth)
    }

    /// Notes what a read of so many bytes took to ask the tier.
    fn note_asked(&self, shared: &Shared, answer: &Answer, (bytes, timer): (usize, Timer)) {
        let took = timer.elapsed(&*self.clock);
        self.counters.shared.note(answer.found.iter().map(|block| block.raw_len).sum(), took);
        shared.note(answer, took, self.counters.origin_us(bytes));
    }

    /// Offers a block that was read from the backing file and entered the store. Nobody waits for it.
    pub(super) fn offer(
        &self,
        version: Option<FileVersion>,
        ticket: Ticket,
        block: &[u8],
        admitted: Admitted,
    ) {
        let (Some(shared), Some(version)) = (&self.shared, version) else { return };
        if matches!(admitted, Admitted::Stored | Admitted::Queued) {
            shared.offer(Offer { ticket, version, sum: Offer::sum(block) });
        }
    }
}

/// The bytes that a block of this version has.
fn expected(version: FileVersion, block: u64, block_size: usize) -> u64 {
    let size = block_size as u64;
    version.size.saturating_sub(block.saturating_mul(size)).min(size)
}
