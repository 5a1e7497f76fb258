//! Buffers for direct reads: aligned to a page, and long ones in a huge page.
//!
//! A disk splits a direct read by the pieces of memory: with pages of 4 KiB anywhere in memory, 128 pieces (`max_segments`
//! of many drivers) are 512 KiB. One huge page is one piece.

use std::ptr::{NonNull, null_mut};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

const PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;
/// From this length on a huge page is used.
const LONG: usize = 512 << 10;

/// Bytes aligned to 4096. Grows, and never shrinks.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    bytes: Option<Mapping>,
    no_huge_page: bool,
}

impl Buffer {
    /// A buffer without huge pages, however long.
    pub fn of_small_pages() -> Self {
        Self { bytes: None, no_huge_page: true }
    }

    /// A buffer of `len` bytes with any content. `None`: there is no memory.
    pub fn room(&mut self, len: usize) -> Option<&mut [u8]> {
        if self.bytes.as_ref().is_none_or(|mapping| mapping.len < len) {
            // The old content is not needed.
            self.bytes = None;
            self.bytes = Some(Mapping::new(len, !self.no_huge_page && len >= LONG)?);
        }
        self.bytes.as_mut()?.get_mut().get_mut(..len)
    }

    /// The first `len` bytes, to change.
    pub fn bytes_mut(&mut self, len: usize) -> &mut [u8] {
        self.bytes.as_mut().and_then(|bytes| bytes.get_mut().get_mut(..len)).unwrap_or_default()
    }

    /// The first `len` bytes.
    pub fn bytes(&self, len: usize) -> &[u8] {
        self.bytes.as_ref().and_then(|bytes| bytes.get().get(..len)).unwrap_or_default()
    }
}

/// Private anonymous memory, zero until written.
#[derive(Debug)]
struct Mapping {
    /// As mapped.
    whole: (NonNull<u8>, usize),
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone; no thread owns it.
#[expect(unsafe_code, reason = "a mapping is as movable between threads as a Vec")]
unsafe impl Send for Mapping {}

impl Mapping {
    /// At least `len` bytes, in huge pages as far as the kernel has any. `None`: there is no memory.
    #[expect(unsafe_code, reason = "mmap(2) and madvise(2) have no safe wrappers")]
    fn new(len: usize, huge: bool) -> Option<Self> {
        let page = if huge { HUGE_PAGE } else { PAGE };
        let len = len.max(1).checked_next_multiple_of(page)?;
        let whole = len.checked_add(page - PAGE)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that exists.
        let mapped = unsafe { mmap_anonymous(null_mut(), whole, protection, MapFlags::PRIVATE) };
        let mapped = NonNull::new(mapped.ok()?.cast::<u8>())?;
        let start = NonNull::new(mapped.as_ptr().wrapping_add(mapped.as_ptr().addr().wrapping_neg() % page))?;
        if huge {
            // SAFETY: within the mapping; the advice changes no byte. If the kernel ignores it, there are small pages.
            let _ = unsafe { madvise(start.as_ptr().cast(), len, Advice::LinuxHugepage) };
        }
        Some(Self { whole: (mapped, whole), start, len })
    }

    #[expect(unsafe_code, reason = "the mapping as a slice")]
    fn get(&self) -> &[u8] {
        // SAFETY: `len` bytes from `start` lie in the mapping, are initialised (zero) and live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    #[expect(unsafe_code, reason = "the mapping as a slice")]
    fn get_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else has it.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Mapping {
    #[expect(unsafe_code, reason = "munmap(2) has no safe wrapper")]
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping, and no slice outlives it. munmap(2) fails only for a range that is not
        // mapped.
        let _ = unsafe { munmap(self.whole.0.as_ptr().cast(), self.whole.1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_bytes_are_read_back() {
        for mut buffer in [Buffer::default(), Buffer::of_small_pages()] {
            for len in [0, 1, 4096, 100_000, 5000, LONG, 3 << 20, 7] {
                let room = buffer.room(len).unwrap();
                assert!(room.len() == len && room.as_ptr().addr() % PAGE == 0);
                room.fill(7);
                assert_eq!(buffer.bytes(len), vec![7; len]);
                assert_eq!(buffer.bytes_mut(len).len(), len);
            }
            assert!(buffer.room(usize::MAX / 2).is_none() && buffer.room(usize::MAX).is_none());
        }
    }

    #[test]
    fn a_long_one_begins_where_a_huge_page_can() {
        let mut buffer = Buffer::default();
        assert_eq!(buffer.room(1 << 20).unwrap().as_ptr().addr() % HUGE_PAGE, 0);
    }
}
