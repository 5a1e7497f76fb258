//! Anonymous pages, passthrough from the kernel, so that what is given back really goes back.

use std::ptr::{NonNull, null_mut};

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// A private anonymous mapping. Zero until written; takes memory only where it was written.
#[derive(Debug)]
pub(super) struct Pages {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value alone; no thread owns it.
#[expect(unsafe_code, reason = "a mapping is as movable between threads as a Vec")]
unsafe impl Send for Pages {}

/// Bytes of a mapping, without a lifetime. Whoever makes a slice of it says why the bytes still are what they were.
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
        // SAFETY: inside one mapping, as `Pages::raw` has checked; the caller answers for the rest.
        unsafe { std::slice::from_raw_parts(self.start, self.len) }
    }
}

impl Pages {
    /// Maps `len` bytes, a multiple of the page size. `None`: the kernel gives no memory.
    ///
    /// Without huge pages: khugepaged would fill what [`Pages::release`] gave back (max_ptes_none,
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

    /// Gives the memory back at once; the addresses stay. The bytes are zero from now on.
    pub fn release(&mut self) {
        self.advise(Advice::LinuxDontNeed);
    }

    /// Where bytes are; panics outside the mapping, as a slice would.
    pub fn raw(&self, at: usize, len: usize) -> RawBytes {
        assert!(at <= self.len && len <= self.len - at, "outside the slab");
        RawBytes { start: self.start.as_ptr().wrapping_add(at), len }
    }

    /// Writes `bytes` at `at`. They must not be pinned: the arena gives out no range twice.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        let to = self.raw(at, bytes.len());
        copy(to, RawBytes { start: bytes.as_ptr(), len: bytes.len() });
    }

    /// Moves bytes, within or between mappings.
    pub fn move_bytes(&mut self, at: usize, from: RawBytes) {
        let to = self.raw(at, from.len);
        copy(to, from);
    }

    /// Flips a bit: for tests of what a fault in memory does.
    #[expect(unsafe_code, reason = "reads a byte of the mapping")]
    pub fn flip_bit(&mut self, at: usize) {
        // SAFETY: one byte inside the mapping, which nobody writes: this is the only `&mut`.
        let byte = unsafe { self.raw(at, 1).get() }[0];
        self.write(at, &[byte ^ 0x10]);
    }

    #[expect(unsafe_code, reason = "madvise(2) has no safe wrapper")]
    fn advise(&self, advice: Advice) {
        // SAFETY: exactly this mapping. DONTNEED zeroes it: `release` has it to itself, and the arena calls it only for
        // slabs without a single extent.
        let _ = unsafe { madvise(self.start.as_ptr().cast(), self.len, advice) };
    }
}

/// Copies what may overlap.
#[expect(unsafe_code, reason = "slices of a mapping whose other parts are being read would be undefined")]
fn copy(to: RawBytes, from: RawBytes) {
    // SAFETY: both ranges were checked by `Pages::raw` or come from a slice, and are of one length; the target is free:
    // nobody else reads or writes it.
    unsafe { std::ptr::copy(from.start, to.start.cast_mut(), from.len) }
}

impl Drop for Pages {
    #[expect(unsafe_code, reason = "munmap(2) has no safe wrapper")]
    fn drop(&mut self) {
        // SAFETY: exactly this mapping; pins borrow the store that it belongs to, so none is left.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}
