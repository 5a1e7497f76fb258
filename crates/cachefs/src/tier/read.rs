//! A read, block by block: first resident blocks, then blocks that nobody else is reading (see `fetch`), last those that
//! others read.

use std::io;
use std::ops::Range;

use eke_cache_shared::FileVersion;
use eke_cache_store::{FileId, Key, Resident, Store, Ticket};

use super::flight::Wait;
use super::piece::{Piece, PieceState, cut};
use super::ready::{BlockBytes, ResidentBlock};
use super::{Measures, ReadContext, Tier};
use crate::backing::File;

/// One read under way.
pub(super) struct Reading<'t, 'c> {
    pub tier: &'t Tier,
    pub store: &'t Store,
    pub context: &'c mut ReadContext,
    pub file: FileId,
    pub backing: &'c File,
    pub offset: u64,
    pub len: usize,
    /// The bytes are read without their block, though the file is admitted.
    pub is_alone: bool,
    /// The file's version, if its blocks may be shared with a farm.
    pub version: Option<FileVersion>,
}

impl Reading<'_, '_> {
    /// Fills the reply, which has room for it. Returns the bytes. `found` are the first blocks, if they were looked up
    /// already.
    pub fn run(mut self, found: Vec<ResidentBlock<'_>>) -> io::Result<usize> {
        let size = self.store.block_size();
        self.context.pieces.clear();
        self.context.waits.clear();
        let most = self.len / size + 2;
        if self.context.pieces.try_reserve(most).is_err() || self.context.waits.try_reserve(most).is_err() {
            return self.read_direct(0..self.len);
        }
        self.context.pieces.extend(cut(self.offset, self.len, size));
        let looked_up = found.len().min(self.context.pieces.len());
        found.into_iter().take(looked_up).enumerate().for_each(|(index, block)| self.fill(index, block));
        (looked_up..self.context.pieces.len()).for_each(|index| self.look_up(index));
        self.fetch()?;
        for number in 0..self.context.waits.len() {
            let (index, wait) = self.context.waits[number];
            self.await_other(index, wait)?;
        }
        Ok(total(&self.context.pieces))
    }

    /// Reads a part of the reply from the backing file, without admission. Returns the bytes.
    pub fn read_direct(&mut self, reply: Range<usize>) -> io::Result<usize> {
        let offset = self.offset + reply.start as u64;
        let out = &mut self.context.reply.bytes_mut(self.len)[reply];
        let of = if self.is_alone { Measures::Bytes } else { Measures::Blocks };
        Ok(self.tier.read_backing(self.file, self.backing, out, offset, of)?.bytes)
    }

    /// Waits for another thread's read, then looks the block up again. If it is still missing, reads it alone.
    fn await_other(&mut self, index: usize, wait: Wait) -> io::Result<()> {
        self.tier.counters.waits.add(1);
        self.tier.flights.wait(wait);
        self.look_up(index);
        self.fetch_alone(index)
    }

    /// Fills a piece if its block is resident.
    pub fn look_up(&mut self, index: usize) {
        let key = Key::new(self.file, self.context.pieces[index].block);
        match self.tier.find(self.store, key) {
            Ok(block) => self.fill(index, block),
            Err(ticket) => {
                self.store.note_miss();
                self.context.pieces[index].state = PieceState::Missing(ticket);
            }
        }
    }

    /// Fills a piece from its block.
    fn fill(&mut self, index: usize, block: ResidentBlock<'_>) {
        let ticket = block.ticket;
        let len = match block.bytes {
            BlockBytes::Recent(bytes, len) => self.copy(index, bytes.get(..len)),
            BlockBytes::Stored(resident) => self.decompress(index, ticket, resident),
        };
        let piece = &self.context.pieces[index];
        let found = match len {
            Some(len) if self.is_whole(piece, len) => PieceState::Filled(piece.bytes_of(len)),
            // The file once ended with this block, and has grown.
            Some(_) => PieceState::Missing(self.store.drop_block(ticket.key())),
            None => PieceState::Missing(ticket),
        };
        if let PieceState::Filled(bytes) = found {
            self.tier.counters.bytes_from_store.add(bytes);
        }
        self.context.pieces[index].state = found;
    }

    /// True if a block of `len` bytes may be served. If it is shorter than the request, the file must end there.
    pub fn is_whole(&self, piece: &Piece, len: usize) -> bool {
        let end = (piece.block * self.store.block_size() as u64).saturating_add(len as u64);
        piece.within.end <= len || self.backing.stamp().is_ok_and(|stamp| stamp.size == end)
    }

    /// Copies from a recent block. Returns the block's length.
    fn copy(&mut self, index: usize, block: Option<&[u8]>) -> Option<usize> {
        let block = block?;
        let reply = self.context.reply.bytes_mut(self.len);
        self.context.pieces[index].copy(block, reply);
        self.tier.counters.recent_hits.add(1);
        Some(block.len())
    }

    /// Decompresses a stored block. Returns its length. If all of it is requested, it is decompressed into the reply.
    /// Otherwise it is also kept uncompressed, because the rest is probably requested next.
    fn decompress(&mut self, index: usize, ticket: Ticket, resident: Resident<'_>) -> Option<usize> {
        let began = self.tier.clock.now();
        let ReadContext { scratch, reply, spare, pieces, .. } = &mut *self.context;
        let (piece, reply, len) = (&pieces[index], reply.bytes_mut(self.len), resident.block_len());
        let is_all = piece.is_all_of(len);
        let out = if is_all { reply.get_mut(piece.at..piece.at + len) } else { spare.room(len) };
        if !resident.read_into(scratch.as_mut()?, out?) {
            return None;
        }
        self.tier.note_hit(self.file, len, began);
        if !is_all {
            piece.copy(spare.bytes(len), reply);
            self.tier.recent.put(ticket, len, spare);
        }
        Some(len)
    }
}

/// The bytes of the reply, up to the first piece that is shorter than requested.
fn total(pieces: &[Piece]) -> usize {
    let mut total = 0;
    for piece in pieces {
        let PieceState::Filled(bytes) = piece.state else { break };
        total += bytes;
        if bytes < piece.len() {
            break;
        }
    }
    total
}
