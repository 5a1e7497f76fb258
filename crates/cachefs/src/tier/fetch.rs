//! What is missing, from below: neighbouring blocks at once.

use std::io;
use std::ops::Range;

use eke_cache_store::Ticket;

use super::ReadContext;
use super::flight::{Claim, Lead};
use super::piece::{Found, Piece};
use super::read::Reading;
use super::run::{Ahead, Run};

impl<'t> Reading<'t, '_> {
    /// Reads what nobody else is reading, and lists what others read. Of a file that the policy declines, only what was asked for,
    /// and without waiting for others: they leave nothing.
    pub fn fetch(&mut self) -> io::Result<()> {
        let missing = |piece: &Piece| matches!(piece.found, Found::Missing(_));
        let Some(first) = self.context.pieces.iter().find(|piece| missing(piece)) else { return Ok(()) };
        let admits = self.tier.judge.admit(self.file, first.block);
        let mut run = Run::default();
        for index in 0..self.context.pieces.len() {
            let Found::Missing(ticket) = self.context.pieces[index].found else { continue };
            let Some(lead) = self.claim(index, ticket, admits) else { continue };
            if !run.has_room_for(index) {
                self.read_run(std::mem::take(&mut run), Ahead::default(), admits)?;
            }
            run.push(index, lead);
        }
        let ahead = if admits && run.len() > 0 { self.ahead(&run) } else { Ahead::default() };
        self.read_run(run, ahead, admits)
    }

    /// Is this piece ours to read, and do others wait for it? `None`: it is not.
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

    /// Has another read the block and landed, between our look and our claim?
    fn came_in(&mut self, index: usize, ticket: Ticket) -> bool {
        if !self.store.contains(ticket.key()) {
            return false;
        }
        self.look_for(index);
        matches!(self.context.pieces[index].found, Found::Bytes(_))
    }

    /// Reads a piece that is missing still.
    pub fn fetch_alone(&mut self, index: usize) -> io::Result<()> {
        let mut run = Run::default();
        if matches!(self.context.pieces[index].found, Found::Missing(_)) {
            run.push(index, None);
        }
        self.read_run(run, Ahead::default(), true)
    }

    /// Reads neighbouring blocks from below, fills the reply, and takes them in. Where whole blocks cannot be read, only what
    /// was asked for is: the rest of a block may be what is bad.
    fn read_run(&mut self, run: Run<'_>, ahead: Ahead<'_>, admits: bool) -> io::Result<()> {
        if run.pieces.is_empty() {
            return Ok(());
        }
        self.tier.counters.misses.add(run.pieces.len());
        if !admits {
            self.tier.counters.declined.add(run.pieces.len());
        }
        let more = ahead.iter().flatten().count();
        let read = if admits { self.read_blocks(run.pieces.clone(), more) } else { None };
        let Some(read) = read else {
            return self.read_asked(run.pieces);
        };
        let size = self.store.block_size();
        let block = |turn: usize| (turn * size).min(read)..((turn + 1) * size).min(read);
        let asked = run.pieces.len();
        for (turn, (index, lead)) in run.pieces.zip(run.leads).enumerate() {
            self.bring_in(index, block(turn), lead);
        }
        for (turn, (ticket, lead)) in ahead.into_iter().flatten().enumerate() {
            self.bring_ahead(ticket, block(asked + turn), lead);
        }
        Ok(())
    }

    /// Reads whole blocks, and so many after them; how many bytes. `None`: there is no memory, or an error.
    fn read_blocks(&mut self, pieces: Range<usize>, more: usize) -> Option<usize> {
        let size = self.store.block_size();
        let offset = self.context.pieces.get(pieces.start)?.block * size as u64;
        let room = self.context.backing.room((pieces.len() + more) * size)?;
        self.tier.read_backing(self.file, self.backing, room, offset).ok()
    }

    /// Reads neighbouring pieces directly into the reply.
    fn read_asked(&mut self, pieces: Range<usize>) -> io::Result<()> {
        let asked = &self.context.pieces[pieces.clone()];
        let (Some(first), Some(last)) = (asked.first(), asked.last()) else { return Ok(()) };
        let (from, to) = (first.at, last.reply().end);
        let end = from + self.read_direct(from..to)?;
        for piece in &mut self.context.pieces[pieces] {
            piece.found = Found::Bytes(end.saturating_sub(piece.at).min(piece.len()));
        }
        Ok(())
    }

    /// Fills a piece in from its block, which lies so in what was read, and takes the block in. Lands the flight last: who
    /// waited looks then.
    fn bring_in(&mut self, index: usize, block: Range<usize>, lead: Option<Lead<'_>>) {
        let ReadContext { reply, backing, pieces, spare, scratch, .. } = &mut *self.context;
        let piece = &mut pieces[index];
        let Found::Missing(ticket) = piece.found else { return };
        let block = backing.bytes(block.end).get(block).unwrap_or_default();
        piece.copy(block, reply.bytes_mut(self.len));
        piece.found = Found::Bytes(piece.bytes_of(block.len()));
        if !block.is_empty() {
            self.tier.admit(self.store, scratch.as_mut(), ticket, block);
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
    /// Takes a block in that nobody asked for yet, and leaves it among the recent ones: it is asked for before it is compressed.
    fn bring_ahead(&mut self, ticket: Ticket, block: Range<usize>, lead: Lead<'_>) {
        let ReadContext { backing, spare, scratch, .. } = &mut *self.context;
        let block = backing.bytes(block.end).get(block).unwrap_or_default();
        if !block.is_empty() {
            self.tier.admit(self.store, scratch.as_mut(), ticket, block);
            self.tier.keep(ticket, block, spare);
        }
        drop(lead);
    }
}

/// Is there more of the block than was asked for?
fn is_partial(piece: &Piece, block: &[u8]) -> bool {
    !block.is_empty() && !piece.is_all_of(block.len())
}

impl super::Tier {
    /// Leaves a block, read after the ticket was given, among the recent ones.
    fn keep(&self, ticket: Ticket, block: &[u8], spare: &mut super::recent::Spare) {
        if let Some(room) = spare.room(block.len()) {
            room.copy_from_slice(block);
            self.recent.put(ticket, block.len(), spare);
        }
    }
}
