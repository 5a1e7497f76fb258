//! Neighbouring blocks that are fetched by one read.

use std::ops::Range;

use eke_cache_store::Ticket;

use super::flight::Lead;

/// The most blocks of one read: 64 KiB each, they fill a huge page, which is one piece of memory for the disk.
pub(super) const MOST: usize = 32;

/// Neighbouring missing blocks, by the indices of their pieces, with short gaps of others.
#[derive(Default)]
pub(super) struct BlockRun<'t> {
    pub pieces: Range<usize>,
    pub leads: [Option<Lead<'t>>; MOST],
}

impl<'t> BlockRun<'t> {
    pub fn first(&self) -> usize {
        self.pieces.start
    }

    pub fn end(&self) -> usize {
        self.pieces.end
    }

    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// True if the run can reach that piece. Up to `gap` pieces between may have been found already: they are read again.
    pub fn has_room_for(&self, index: usize, gap: usize) -> bool {
        self.pieces.is_empty() || (index - self.pieces.end <= gap && index - self.pieces.start < MOST)
    }

    pub fn push(&mut self, index: usize, lead: Option<Lead<'t>>) {
        let start = if self.pieces.is_empty() { index } else { self.pieces.start };
        self.leads[index - start] = lead;
        self.pieces = start..index + 1;
    }
}

/// The blocks after a run, each to be admitted by its ticket; `None` for a block in a gap, which is read but not needed.
#[derive(Default)]
pub(super) struct Ahead<'t> {
    pub blocks: [Option<(Ticket, Lead<'t>)>; MOST],
    /// As far as it is read: up to the last needed one.
    pub len: usize,
}
