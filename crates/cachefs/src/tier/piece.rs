//! A read split at the borders of blocks.

use std::ops::Range;

use eke_cache_store::Ticket;

/// The part of a read that lies in one block.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// The block's number in the file.
    pub block: u64,
    /// The bytes of the block.
    pub within: Range<usize>,
    /// Where in the reply they go.
    pub at: usize,
    pub state: PieceState,
}

/// The progress of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PieceState {
    /// Not looked up.
    Unknown,
    /// Not stored; to be admitted by the ticket.
    Missing(Ticket),
    /// The reply has this many of its bytes: fewer than requested only at the end of the file.
    Filled(usize),
}

impl Piece {
    /// The number of requested bytes.
    pub fn len(&self) -> usize {
        self.within.len()
    }

    /// Where in the reply its bytes go.
    pub fn reply(&self) -> Range<usize> {
        self.at..self.at + self.len()
    }

    /// True if it covers all of a block of `len` bytes.
    pub fn is_all_of(&self, len: usize) -> bool {
        self.within.start == 0 && len <= self.within.end
    }

    /// Copies the requested part of a block into the reply.
    pub fn copy(&self, block: &[u8], reply: &mut [u8]) {
        let bytes = self.bytes_of(block.len());
        let from = self.within.start..self.within.start + bytes;
        // A block that ends earlier has nothing to copy.
        if let (Some(from), Some(to)) = (block.get(from), reply.get_mut(self.at..self.at + bytes)) {
            to.copy_from_slice(from);
        }
    }

    /// How many of the requested bytes a block of `len` bytes has.
    pub fn bytes_of(&self, len: usize) -> usize {
        len.min(self.within.end).saturating_sub(self.within.start)
    }
}

/// Splits a read of `len` bytes from `offset`.
pub(super) fn cut(offset: u64, len: usize, block_size: usize) -> impl Iterator<Item = Piece> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let from = offset.checked_add(at as u64).filter(|_| at < len)?;
        let start = (from % block_size as u64) as usize;
        let end = block_size.min(start + len - at);
        let piece =
            Piece { block: from / block_size as u64, within: start..end, at, state: PieceState::Unknown };
        at += end - start;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 64 << 10;

    fn cuts(offset: u64, len: usize) -> Vec<(u64, Range<usize>, usize)> {
        cut(offset, len, BLOCK).map(|piece| (piece.block, piece.within, piece.at)).collect()
    }

    #[test]
    fn a_window_that_is_not_aligned_has_two_parts_and_what_lies_between() {
        let window = cuts(136 << 10, 128 << 10);
        let expected = [(2, 8 << 10..BLOCK, 0), (3, 0..BLOCK, 56 << 10), (4, 0..8 << 10, 120 << 10)];
        assert_eq!(window, expected);
    }

    #[test]
    fn a_read_inside_one_block_is_one_piece() {
        assert_eq!(cuts(4096, 4096), [(0, 4096..8192, 0)]);
        assert_eq!(cuts(65_536, BLOCK), [(1, 0..BLOCK, 0)]);
        assert_eq!(cuts(5, 0), []);
    }

    #[test]
    fn nothing_lies_beyond_the_last_offset() {
        assert_eq!(cuts(u64::MAX, 4096).len(), 1);
    }

    #[test]
    fn a_short_block_gives_what_it_has() {
        let piece = cut(4096, 8192, BLOCK).next().unwrap();
        assert_eq!([0, 4096, 5000, 12_288, BLOCK].map(|len| piece.bytes_of(len)), [0, 0, 904, 8192, 8192]);
        assert!(!piece.is_all_of(5000));
        assert!(cut(0, 12_288, BLOCK).next().unwrap().is_all_of(10_000));
    }
}
