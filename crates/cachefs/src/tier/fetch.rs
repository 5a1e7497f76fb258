//! Reads missing blocks from the spill, then from the shared tier, or else from the backing file, neighbouring ones in one read.

use std::io;
use std::ops::Range;

use eke_cache_store::{Key, Ticket};

use super::block_run::{Ahead, BlockRun};
use super::flight::{Claim, Lead};
use super::piece::{Piece, PieceState};
use super::read::Reading;
use super::short_reads::ShortReads;
use super::{BackingRead, Measures, ReadContext};
use crate::backing::File;

impl<'t> Reading<'t, '_> {
    /// Reads what nobody else is reading, and lists what others read. If the policy declines the file, reads only the
    /// requested bytes and waits for nobody: other readers leave no blocks.
    pub fn fetch(&mut self) -> io::Result<()> {
        let missing = |piece: &Piece| matches!(piece.state, PieceState::Missing(_));
        let Some(first) = self.context.pieces.iter().find(|piece| missing(piece)) else { return Ok(()) };
        let (block, may) = (first.block, self.tier.policy.admit(self.file, first.block));
        self.is_alone = may && self.is_read_alone(block);
        let admits = may && !self.is_alone;
        let mut claimed = if admits { self.ask_shared() } else { None };
        let (mut run, gap) = (BlockRun::default(), self.tier.counters.gap());
        for index in 0..self.context.pieces.len() {
            let PieceState::Missing(ticket) = self.context.pieces[index].state else { continue };
            let lead = match &mut claimed {
                Some(claimed) => claimed.get_mut(index).and_then(Option::take),
                None => self.claim_unless_spilled(index, ticket, admits),
            };
            let Some(lead) = lead else { continue };
            if !run.has_room_for(index, if admits { gap } else { 0 }) {
                self.read_run(std::mem::take(&mut run), Ahead::default(), admits)?;
            }
            run.push(index, lead);
        }
        let ahead = if admits && run.len() > 0 { self.ahead(&run) } else { Ahead::default() };
        self.read_run(run, ahead, admits)
    }

    /// True if the requested bytes alone are read: a few anywhere in the file. Other places than the origin have whole blocks.
    fn is_read_alone(&self, block: u64) -> bool {
        let (tier, pieces) = (self.tier, &self.context.pieces);
        let is_short =
            block > 0 && pieces.len() == 1 && ShortReads::is_short(self.len, self.store.block_size());
        // At the end of the file a block may be no longer than the request.
        let goes_on = || {
            let end = self.offset + self.len as u64;
            tier.known_size(self.file).is_none_or(|size| size.saturating_sub(end) >= self.len as u64)
        };
        is_short
            && goes_on()
            && tier.spill.is_none()
            && tier.shared.is_none()
            && self.read_before(block) == 0
            && tier.short_reads.suffices(Key::new(self.file, block))
    }

    /// Claims a missing piece that is not in the spill. `None`: it is filled, or another thread reads it.
    pub fn claim_unless_spilled(
        &mut self,
        index: usize,
        ticket: Ticket,
        admits: bool,
    ) -> Option<Option<Lead<'t>>> {
        let lead = self.claim(index, ticket, admits)?;
        if admits { self.unless_spilled(index, ticket, lead) } else { Some(lead) }
    }

    /// Claims a missing piece. `None`: another thread reads it. `Some(None)`: read it; nobody waits for it.
    fn claim(&mut self, index: usize, ticket: Ticket, admits: bool) -> Option<Option<Lead<'t>>> {
        if !admits {
            return Some(None);
        }
        match self.tier.flights.claim(ticket) {
            Claim::Lead(_) if self.came_in(index, ticket) => None,
            Claim::Lead(lead) => Some(Some(lead)),
            Claim::Alone => Some(None),
            Claim::Wait(wait) => {
                self.context.waits.push((index, wait));
                None
            }
        }
    }

    /// True if another thread read the block and landed between our lookup and our claim.
    fn came_in(&mut self, index: usize, ticket: Ticket) -> bool {
        if !self.store.contains(ticket.key()) {
            return false;
        }
        self.look_up(index);
        matches!(self.context.pieces[index].state, PieceState::Filled(_))
    }

    /// Reads a piece that is still missing.
    pub fn fetch_alone(&mut self, index: usize) -> io::Result<()> {
        let mut run = BlockRun::default();
        if matches!(self.context.pieces[index].state, PieceState::Missing(_)) {
            run.push(index, None);
        }
        self.read_run(run, Ahead::default(), true)
    }

    /// Reads neighbouring blocks, fills the reply, and admits them. If whole blocks cannot be read, reads only the requested
    /// bytes: the rest of a block may be the bad part.
    fn read_run(&mut self, run: BlockRun<'_>, ahead: Ahead<'_>, admits: bool) -> io::Result<()> {
        if run.pieces.is_empty() {
            return Ok(());
        }
        self.tier.counters.misses.add(run.pieces.len());
        if !admits {
            self.tier.counters.declined.add(run.pieces.len());
        }
        let read = if admits { self.read_blocks(run.pieces.clone(), ahead.len) } else { None };
        let Some(read) = read else {
            return self.read_asked(run.pieces);
        };
        let size = self.store.block_size();
        let BackingRead { bytes, is_dirty } = read;
        let block = |nth: usize| (nth * size).min(bytes)..((nth + 1) * size).min(bytes);
        let asked = run.pieces.len();
        for (nth, (index, lead)) in run.pieces.zip(run.leads).enumerate() {
            self.bring_in(index, (block(nth), is_dirty), lead);
        }
        for (nth, needed) in ahead.blocks.into_iter().enumerate() {
            if let Some((ticket, lead)) = needed {
                self.bring_ahead(ticket, (block(asked + nth), is_dirty), lead);
            }
        }
        Ok(())
    }

    /// Reads whole blocks and `more` after them. `None`: no memory, or an error.
    fn read_blocks(&mut self, pieces: Range<usize>, more: usize) -> Option<BackingRead> {
        let size = self.store.block_size();
        let offset = self.context.pieces.get(pieces.start)?.block * size as u64;
        let room = self.context.backing.room((pieces.len() + more) * size)?;
        let read = self.tier.read_backing(self.file, self.backing, room, offset, Measures::Blocks).ok()?;
        // What was read is of this version if the file has it before and after, also on its server.
        if let Some(before) = self.version.take() {
            self.version = self.shared_version(File::fresh_stamp).filter(|version| *version == before);
        }
        Some(read)
    }

    /// Reads neighbouring pieces directly into the reply.
    fn read_asked(&mut self, pieces: Range<usize>) -> io::Result<()> {
        let asked = &self.context.pieces[pieces.clone()];
        let (Some(first), Some(last)) = (asked.first(), asked.last()) else { return Ok(()) };
        let (from, to) = (first.at, last.reply().end);
        let end = from + self.read_direct(from..to)?;
        for piece in &mut self.context.pieces[pieces] {
            piece.state = PieceState::Filled(end.saturating_sub(piece.at).min(piece.len()));
        }
        Ok(())
    }

    /// Fills a piece from its block, which is at `block` in the read buffer, and admits the block. Lands last, because
    /// waiting readers look the block up then. A dirty block is neither admitted nor kept: it may change without a sign.
    fn bring_in(&mut self, index: usize, (block, is_dirty): (Range<usize>, bool), lead: Option<Lead<'_>>) {
        let ReadContext { reply, backing, pieces, spare, scratch, .. } = &mut *self.context;
        let piece = &mut pieces[index];
        let PieceState::Missing(ticket) = piece.state else { return };
        let block = backing.bytes(block.end).get(block).unwrap_or_default();
        piece.copy(block, reply.bytes_mut(self.len));
        piece.state = PieceState::Filled(piece.bytes_of(block.len()));
        if is_dirty {
            return;
        }
        if !block.is_empty() {
            let admitted = self.tier.admit(self.store, scratch.as_mut(), ticket, block);
            self.tier.offer(self.version, ticket, block, admitted);
        }
        let mut keep = || self.tier.keep(ticket, block, spare);
        if is_partial(piece, block) {
            keep();
        } else if let Some(lead) = lead {
            lead.land(keep);
        }
    }
}

impl Reading<'_, '_> {
    /// Admits a block that nobody requested yet, and keeps it among the recent ones, because it is requested before it is
    /// compressed.
    fn bring_ahead(&mut self, ticket: Ticket, (block, is_dirty): (Range<usize>, bool), lead: Lead<'_>) {
        let ReadContext { backing, spare, scratch, .. } = &mut *self.context;
        let block = backing.bytes(block.end).get(block).unwrap_or_default();
        if !block.is_empty() && !is_dirty {
            let admitted = self.tier.admit(self.store, scratch.as_mut(), ticket, block);
            self.tier.offer(self.version, ticket, block, admitted);
            self.tier.keep(ticket, block, spare);
        }
        drop(lead);
    }
}

/// True if only a part of the block was requested.
fn is_partial(piece: &Piece, block: &[u8]) -> bool {
    !block.is_empty() && !piece.is_all_of(block.len())
}

impl super::Tier {
    /// Keeps a block, read after the ticket was issued, among the recent ones.
    fn keep(&self, ticket: Ticket, block: &[u8], spare: &mut super::recent::Spare) {
        if let Some(room) = spare.room(block.len()) {
            room.copy_from_slice(block);
            self.recent.put(ticket, block.len(), spare);
        }
    }
}
