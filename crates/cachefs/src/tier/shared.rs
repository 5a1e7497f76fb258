//! Blocks of the tier that a farm shares: asked for before the backing file is read, offered after it.
//!
//! # Rule
//! A block from there is of the version that the file had at its last open here, and has now. A block is offered with the version that the
//! file had before it was read and has after it. Such a version is old enough that no later change can have it. So a block is never of other
//! content than its version, whoever offered it, and a reader gets what it would read from the backing file.

use std::io;

use eke_cache_shared::shared::FoundBlock;
use eke_cache_shared::{FileVersion, Offer, Shared};
use eke_cache_store::{Admitted, CompressedBlock, Ticket};

use super::Tier;
use super::clock::Timer;
use super::file_ids::FileIds;
use super::flight::Lead;
use super::piece::PieceState;
use super::read::Reading;
use crate::backing::{File, Stamp};

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
        let origin_us = self.tier.counters.origin_us(blocks.len() * self.store.block_size());
        if blocks.is_empty() {
            return Some(claimed);
        }
        let (cost, nth) = (self.tier.counters.shared.us(), self.tier.counters.next_shared());
        let Some(wait) = shared.wait_for(cost, (origin_us, blocks.len()), nth) else { return Some(claimed) };
        let timer = Timer::start(&*self.tier.clock);
        let found = shared.get(version, &blocks, wait);
        let bytes: usize = found.iter().map(|block| block.raw_len).sum();
        for block in &found {
            self.take_in(shared, version, block, &mut claimed);
        }
        self.tier.counters.shared.note(bytes, timer.elapsed(&*self.tier.clock));
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
        let size = self.store.block_size() as u64;
        let rest = version.size.saturating_sub(block.block.saturating_mul(size)).min(size);
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

    /// The file's version, if its blocks may be shared: any later change makes another one.
    pub fn shared_version(&self, stamp: impl FnOnce(&File) -> io::Result<Stamp>) -> Option<FileVersion> {
        let shared = self.tier.shared.as_deref().filter(|_| FileIds::is_inode(self.file.0))?;
        // The time first: what changes after the stat is later than it.
        let now_ns = self.tier.clock.wall_ns();
        let stamp = stamp(self.backing).ok()?;
        let saved = self.tier.stamps.settled_version(self.file, stamp, (now_ns, shared.settled_ns()))?;
        Some(FileVersion { file: saved.file, size: saved.size, times_ns: saved.times_ns })
    }
}

impl Tier {
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
