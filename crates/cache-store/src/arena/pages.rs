//! Anonymous pages from mmap(2), not from the allocator, so that released memory leaves the process.

use std::ptr::{NonNull, null_mut};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// A private anonymous mapping. It is zero until written and uses memory only where it was written.
#[derive(Debug)]
pub(super) struct Pages {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone; no thread owns it.
#[expect(unsafe_code, reason = "a mapping is as movable between threads as a Vec")]
unsafe impl Send for Pages {}

/// Bytes of a mapping, without a lifetime. Code that makes a slice of them states why they are still valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawBytes {
    start: *const u8,
    len: usize,
}

impl RawBytes {
    /// The bytes.
    ///
    /// # Safety
    /// The mapping must exist, and nothing may write these bytes, for `'a`.
    #[expect(unsafe_code, reason = "the bytes of a pinned block are read without the lock")]
    pub unsafe fn get<'a>(self) -> &'a [u8] {
        // SAFETY: `Pages::raw` checked that the range is inside one mapping; the caller guarantees the rest.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl Pages {
    /// Maps `len` bytes, a multiple of the page size. `None`: the kernel has no memory.
    ///
    /// Huge pages are off: khugepaged would refill what [`Pages::release`] gave back (`max_ptes_none`,
    /// Documentation/admin-guide/mm/transhuge.rst).
    #[expect(unsafe_code, reason = "mmap(2) has no safe wrapper")]
    pub fn map(len: usize) -> Option<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that exists.
        let start =
            unsafe { mmap_anonymous(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) };
        let pages = Self { start: NonNull::new(start.ok()?.cast())?, len };
        pages.advise(Advice::LinuxNoHugepage);
        Some(pages)
    }

    /// Gives the memory back at once and keeps the addresses. The bytes are zero from now on.
    pub fn release(&mut self) {
        self.advise(Advice::LinuxDontNeed);
    }

    /// The bytes from `at` on. Panics outside the mapping, as a slice does.
    pub fn raw(&self, at: usize, len: usize) -> RawBytes {
        assert!(at <= self.len && len <= self.len - at, "outside the slab");
        RawBytes { start: self.start.as_ptr().wrapping_add(at), len }
    }

    /// Writes `bytes` at `at`. The range must not be pinned.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        let to = self.raw(at, bytes.len());
        copy(to, RawBytes { start: bytes.as_ptr(), len: bytes.len() });
    }

    /// Moves bytes within this mapping, or here from another one.
    pub fn move_bytes(&mut self, at: usize, from: RawBytes) {
        let to = self.raw(at, from.len);
        copy(to, from);
    }

    /// Flips a bit, as a memory fault does. For tests.
    #[expect(unsafe_code, reason = "reads a byte of the mapping")]
    pub fn flip_bit(&mut self, at: usize) {
        // SAFETY: one byte inside the mapping. Nobody writes it, because this is the only `&mut`.
        let byte = unsafe { self.raw(at, 1).get() }[0];
        self.write(at, &[byte ^ 0x10]);
    }

    #[expect(unsafe_code, reason = "madvise(2) has no safe wrapper")]
    fn advise(&self, advice: Advice) {
        // SAFETY: exactly this mapping. DONTNEED zeroes it: `release` has exclusive access, and the arena calls it only for
        // slabs without an extent.
        let _ = unsafe { madvise(self.start.as_ptr().cast(), self.len, advice) };
    }
}

/// Copies bytes between ranges that may overlap.
#[expect(unsafe_code, reason = "slices of a mapping whose other parts are being read would be undefined")]
fn copy(to: RawBytes, from: RawBytes) {
    // SAFETY: `Pages::raw` checked both ranges, or they come from a slice; their lengths are equal; nobody else reads or
    // writes the target.
    unsafe { std::ptr::copy(from.start, to.start.cast_mut(), from.len) }
}

impl Drop for Pages {
    #[expect(unsafe_code, reason = "munmap(2) has no safe wrapper")]
    fn drop(&mut self) {
        // SAFETY: exactly this mapping. Pins borrow the store that owns it, so none is left.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}
