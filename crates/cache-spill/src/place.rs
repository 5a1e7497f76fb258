//! Where a block is.

use std::ops::Range;

/// Where a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The number of its segment.
    pub segment: u64,
    /// In the segment.
    pub offset: u32,
    /// With its head.
    pub len: u32,
}

impl Place {
    pub(crate) fn range(self) -> Range<usize> {
        self.offset as usize..self.offset as usize + self.len as usize
    }
}
