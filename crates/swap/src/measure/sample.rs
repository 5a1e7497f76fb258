//! A sample of pages: which of them are measured, and which train the dictionary.

use super::buffer::Buffer;
use super::decode::Content;
use super::measurements::PageCounts;
use super::variants;
use crate::error::Result;

/// A smaller sample repeats its pages up to this length: with a few dozen, the ratio would be that of the allocator's half-filled groups, and a p99 the
/// worst of a handful.
const LEAST_LEN: usize = 1024;

/// Pages of other programs, ordered by round and process, without zero and same-filled ones. Neither `Debug` nor `Serialize`.
pub(crate) struct Sample {
    pages: Buffer,
    kept: usize,
    held_out: usize,
    /// The time was over before all requested pages were found and copied.
    pub(crate) is_cut: bool,
    /// Counters of the sampling.
    pub(crate) counts: PageCounts,
}

impl Sample {
    /// An empty one, with room for so many pages.
    ///
    /// # Errors
    /// There is no memory for them.
    pub(crate) fn new(pages: usize) -> Result<Self> {
        let counts = PageCounts::default();
        Ok(Self { pages: Buffer::new(pages)?, kept: 0, held_out: 0, is_cut: false, counts })
    }

    /// The place of the next page; empty if there is no room.
    pub(super) fn next_page(&mut self) -> &mut [u8] {
        self.pages.page_mut(self.kept)
    }

    /// Counts the page in the next place, and keeps it if it has to be stored. A shared zero page is the kernel's own: it takes no memory and is not
    /// counted.
    pub(super) fn count(&mut self, content: Content, exclusive: bool) {
        match content {
            Content::Zero if !exclusive => return,
            Content::Zero => self.counts.zero += 1,
            Content::SameFilled => self.counts.same_filled += 1,
            Content::Mixed => self.kept += 1,
        }
        self.counts.sampled += 1;
    }

    /// Its length in pages; a small sample repeats its pages.
    pub(crate) fn len(&self) -> usize {
        if self.kept == 0 { 0 } else { self.kept.max(LEAST_LEN) }
    }

    /// Its length without repetitions.
    pub(crate) fn distinct(&self) -> usize {
        self.kept
    }

    /// Page `index`, below [`Sample::len`].
    pub(crate) fn page(&self, index: usize) -> &[u8] {
        self.pages.page(index % self.kept.max(1))
    }

    /// The share of sampled pages that are not same-filled. 1 for an empty sample.
    pub(crate) fn stored_share(&self) -> f64 {
        let stored = (self.kept + self.held_out) as f64;
        if self.counts.sampled == 0 { 1.0 } else { stored / self.counts.sampled as f64 }
    }

    /// Takes `pages` of its pages out, evenly spread, and returns a copy of them.
    ///
    /// # Errors
    /// There is no memory for the copy.
    pub(crate) fn hold_out(&mut self, pages: usize) -> Result<Buffer> {
        let mut taken = Buffer::new(pages)?;
        let out = variants::spread(&(0..self.kept).collect::<Vec<_>>(), pages);
        for (slot, from) in out.iter().enumerate() {
            taken.page_mut(slot).copy_from_slice(self.pages.page(*from));
        }
        let size = rustix::param::page_size();
        let rest = (0..self.kept).filter(|index| out.binary_search(index).is_err());
        for (to, from) in rest.enumerate() {
            self.pages.bytes_mut().copy_within(from * size..(from + 1) * size, to * size);
        }
        self.held_out += out.len();
        self.kept -= out.len();
        Ok(taken)
    }
}

#[cfg(test)]
impl Sample {
    /// A sample of these pages.
    pub(crate) fn of(pages: &[Vec<u8>]) -> Self {
        let mut sample = Self::new(pages.len()).unwrap();
        for page in pages {
            sample.next_page().copy_from_slice(page);
            sample.count(Content::Mixed, true);
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_are_held_out_are_not_measured_and_count_as_stored() {
        let size = rustix::param::page_size();
        let pages: Vec<Vec<u8>> = (0..8u8).map(|n| vec![n; size]).collect();
        let mut sample = Sample::of(&pages);
        let out = sample.hold_out(2).unwrap();
        assert_eq!((out.page(0)[0], out.page(1)[0]), (0, 4));
        let left: Vec<u8> = (0..sample.distinct()).map(|at| sample.page(at)[0]).collect();
        assert_eq!((left, sample.stored_share()), (vec![1, 2, 3, 5, 6, 7], 1.0));
    }
}
