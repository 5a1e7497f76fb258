//! What is missing, from below: neighbouring blocks at once.

use std::io;
use std::ops::Range;

use eke_cache::Ticket;

use super::Hands;
use super::flight::{Claim, Lead};
use super::piece::{Found, Piece};
use super::read::Reading;

/// The most blocks that are read at once.
const MOST: usize = 16;

/// Neighbouring missing blocks, by their pieces' places in the list.
#[derive(Default)]
struct Run<'t> {
    pieces: Range<usize>,
    leads: [Option<Lead<'t>>; MOST],
}

impl<'t> Run<'t> {
    fn has_room_for(&self, index: usize) -> bool {
        self.pieces.is_empty() || (self.pieces.end == index && self.pieces.len() < MOST)
    }

    fn push(&mut self, index: usize, lead: Option<Lead<'t>>) {
        let start = if self.pieces.is_empty() { index } else { self.pieces.start };
        self.leads[index - start] = lead;
        self.pieces = start..index + 1;
    }
}

impl Reading<'_, '_> {
    /// Reads what nobody else is reading, and lists what others read.
    pub fn fetch(&mut self) -> io::Result<()> {
        let tier = self.tier;
        let mut run = Run::default();
        for index in 0..self.hands.pieces.len() {
            let Found::Missing(ticket) = self.hands.pieces[index].found else { continue };
            let lead = match tier.flights.claim(ticket) {
                Claim::Wait(wait) => {
                    self.hands.waits.push((index, wait));
                    continue;
                }
                Claim::Lead(lead) => Some(lead),
                Claim::Alone => None,
            };
            if lead.is_some() && self.came_in(index, ticket) {
                continue;
            }
            if !run.has_room_for(index) {
                self.read_run(std::mem::take(&mut run))?;
            }
            run.push(index, lead);
        }
        self.read_run(run)
    }

    /// Has another read the block and landed, between our look and our claim?
    fn came_in(&mut self, index: usize, ticket: Ticket) -> bool {
        if !self.store.contains(ticket.key()) {
            return false;
        }
        self.look_for(index);
        matches!(self.hands.pieces[index].found, Found::Bytes(_))
    }

    /// Reads a piece that is missing still.
    pub fn fetch_alone(&mut self, index: usize) -> io::Result<()> {
        let mut run = Run::default();
        if matches!(self.hands.pieces[index].found, Found::Missing(_)) {
            run.push(index, None);
        }
        self.read_run(run)
    }

    /// Reads whole blocks, fills the reply, and takes them in. Where that fails, only what was asked for is read: the rest of
    /// a block may be what cannot be.
    fn read_run(&mut self, run: Run<'_>) -> io::Result<()> {
        let Some(first) = self.hands.pieces[run.pieces.clone()].first() else { return Ok(()) };
        self.tier.counters.misses.add(run.pieces.len());
        let (size, began, first_block) = (self.store.block_size(), self.tier.clock.now(), first.block);
        let offset = first.block * size as u64;
        let room = self.hands.below.room(run.pieces.len() * size);
        let Some(read) = room.and_then(|room| self.below.read_at(room, offset).ok()) else {
            return self.read_asked(run.pieces);
        };
        self.tier.note_below(self.file, read, began);
        let worth = self.tier.judge.admit(self.file, first_block);
        for (turn, (index, lead)) in run.pieces.zip(run.leads).enumerate() {
            let block = (turn * size).min(read)..((turn + 1) * size).min(read);
            self.bring_in(index, block, worth, lead);
        }
        Ok(())
    }

    /// Reads neighbouring pieces straight into the reply.
    fn read_asked(&mut self, pieces: Range<usize>) -> io::Result<()> {
        let asked = &self.hands.pieces[pieces.clone()];
        let (from, to) = (asked[0].at, asked[asked.len() - 1].reply().end);
        let end = from + self.straight(from..to)?;
        for piece in &mut self.hands.pieces[pieces] {
            piece.found = Found::Bytes(end.saturating_sub(piece.at).min(piece.len()));
        }
        Ok(())
    }

    /// Fills a piece in from its block, which lies so in what was read, and takes the block in. Lands the flight last: who
    /// waited looks then.
    fn bring_in(&mut self, index: usize, block: Range<usize>, worth: bool, lead: Option<Lead<'_>>) {
        let Hands { reply, below, pieces, spare, scratch, .. } = &mut *self.hands;
        let piece = &mut pieces[index];
        let Found::Missing(ticket) = piece.found else { return };
        let block = below.bytes(block.end).get(block).unwrap_or_default();
        piece.copy(block, reply.bytes_mut(self.len));
        piece.found = Found::Bytes(piece.bytes_of(block.len()));
        if worth && !block.is_empty() {
            self.tier.admit(self.store, scratch.as_mut(), ticket, block);
        }
        self.tier.counters.not_worth.add(usize::from(!worth));
        let mut keep = || self.tier.keep(ticket, block, spare);
        if is_partial(piece, block) {
            keep();
        } else if let Some(lead) = lead {
            lead.land(keep);
        }
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
