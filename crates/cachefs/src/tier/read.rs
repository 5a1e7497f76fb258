//! A read, block by block: first what is held, then what nobody else is reading (see `fetch`), last what others read.

use std::io;
use std::ops::Range;

use eke_cache_store::{FileId, Key, Resident, Store, Ticket};

use super::flight::Wait;
use super::piece::{Found, Piece, cut};
use super::ready::{Block, Bytes};
use super::{ReadContext, Tier};
use crate::backing::File;

/// One read under way.
pub(super) struct Reading<'t, 'h> {
    pub tier: &'t Tier,
    pub store: &'t Store,
    pub context: &'h mut ReadContext,
    pub file: FileId,
    pub backing: &'h File,
    pub offset: u64,
    pub len: usize,
}

impl Reading<'_, '_> {
    /// Puts the bytes into the reply, which has room for them; how many. `found` are the first blocks, if they were looked for.
    pub fn run(mut self, found: Vec<Block<'_>>) -> io::Result<usize> {
        let size = self.store.block_size();
        self.context.pieces.clear();
        self.context.waits.clear();
        let most = self.len / size + 2;
        if self.context.pieces.try_reserve(most).is_err() || self.context.waits.try_reserve(most).is_err() {
            return self.read_direct(0..self.len);
        }
        self.context.pieces.extend(cut(self.offset, self.len, size));
        let looked_for = found.len().min(self.context.pieces.len());
        found.into_iter().take(looked_for).enumerate().for_each(|(index, block)| self.fill(index, block));
        (looked_for..self.context.pieces.len()).for_each(|index| self.look_for(index));
        self.fetch()?;
        for turn in 0..self.context.waits.len() {
            let (index, wait) = self.context.waits[turn];
            self.await_other(index, wait)?;
        }
        Ok(total(&self.context.pieces))
    }

    /// Reads a part of the reply from below, and nothing else; how much.
    pub fn read_direct(&mut self, reply: Range<usize>) -> io::Result<usize> {
        let offset = self.offset + reply.start as u64;
        let out = &mut self.context.reply.bytes_mut(self.len)[reply];
        self.tier.read_backing(self.file, self.backing, out, offset)
    }

    /// Waits for another's read, then looks again; what is not there then is read alone.
    fn await_other(&mut self, index: usize, wait: Wait) -> io::Result<()> {
        self.tier.counters.waits.add(1);
        self.tier.flights.wait(wait);
        self.look_for(index);
        self.fetch_alone(index)
    }

    /// Fills a piece in if its block is resident.
    pub fn look_for(&mut self, index: usize) {
        let key = Key::new(self.file, self.context.pieces[index].block);
        match self.tier.find(self.store, key) {
            Ok(block) => self.fill(index, block),
            Err(ticket) => {
                self.store.note_miss();
                self.context.pieces[index].found = Found::Missing(ticket);
            }
        }
    }

    /// Fills a piece in from its block.
    fn fill(&mut self, index: usize, block: Block<'_>) {
        let ticket = block.ticket;
        let len = match block.bytes {
            Bytes::Recent(bytes, len) => self.copy(index, bytes.get(..len)),
            Bytes::Stored(resident) => self.decompress(index, ticket, resident),
        };
        let piece = &self.context.pieces[index];
        let found = match len {
            Some(len) if self.is_whole(piece, len) => Found::Bytes(piece.bytes_of(len)),
            // The file ended with it once, and has grown.
            Some(_) => Found::Missing(self.store.drop_block(ticket.key())),
            None => Found::Missing(ticket),
        };
        if let Found::Bytes(bytes) = found {
            self.tier.counters.bytes_from_store.add(bytes);
        }
        self.context.pieces[index].found = found;
    }

    /// May a held block of `len` bytes be served? One that ends before what is asked for does only if the file ends there.
    fn is_whole(&self, piece: &Piece, len: usize) -> bool {
        let end = (piece.block * self.store.block_size() as u64).saturating_add(len as u64);
        piece.within.end <= len || self.backing.stamp().is_ok_and(|stamp| stamp.size == end)
    }

    /// From a recent block; its length.
    fn copy(&mut self, index: usize, block: Option<&[u8]>) -> Option<usize> {
        let block = block?;
        let reply = self.context.reply.bytes_mut(self.len);
        self.context.pieces[index].copy(block, reply);
        self.tier.counters.recent_hits.add(1);
        Some(block.len())
    }

    /// From the store; the block's length. A block that is asked for as a whole is decompressed right into the reply; another is
    /// kept as it is too, since the rest of it is perhaps asked for next.
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

/// How many bytes the reply has: up to the first piece that is shorter than asked for.
fn total(pieces: &[Piece]) -> usize {
    let mut total = 0;
    for piece in pieces {
        let Found::Bytes(bytes) = piece.found else { break };
        total += bytes;
        if bytes < piece.len() {
            break;
        }
    }
    total
}
