//! Neighbouring blocks that are read at once.

use std::ops::Range;

use eke_cache_store::Ticket;

use super::flight::Lead;

/// The most blocks that are read at once: with 64 KiB each a huge page, which a disk gets as one piece of memory.
pub(super) const MOST: usize = 32;

/// Neighbouring missing blocks, by their pieces' places in the list.
#[derive(Default)]
pub(super) struct Run<'t> {
    pub pieces: Range<usize>,
    pub leads: [Option<Lead<'t>>; MOST],
}

impl<'t> Run<'t> {
    pub fn first(&self) -> usize {
        self.pieces.start
    }

    pub fn end(&self) -> usize {
        self.pieces.end
    }

    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    pub fn has_room_for(&self, index: usize) -> bool {
        self.pieces.is_empty() || (self.pieces.end == index && self.pieces.len() < MOST)
    }

    pub fn push(&mut self, index: usize, lead: Option<Lead<'t>>) {
        let start = if self.pieces.is_empty() { index } else { self.pieces.start };
        self.leads[index - start] = lead;
        self.pieces = start..index + 1;
    }
}

/// Blocks that follow a run, each to be brought in by its ticket.
pub(super) type Ahead<'t> = [Option<(Ticket, Lead<'t>)>; MOST];
