//! Memory for pages of other programs: page-aligned, locked, excluded from core dumps, wiped when dropped.

use std::fs::File;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::error::{Error, Result};

/// Page-aligned memory of whole pages. It has neither `Debug` nor `Serialize`, so that it cannot get into a log.
///
/// It is locked in RAM if the process's limit allows it (`RLIMIT_MEMLOCK`), so that swap does not write it to a disk. It is excluded from core dumps
/// (`MADV_DONTDUMP`, Linux 3.4) and from children (`MADV_DONTFORK`).
pub(crate) struct Buffer {
    start: NonNull<u8>,
    len: usize,
}

impl Buffer {
    /// `pages` pages of zeros, at least one.
    ///
    /// # Errors
    /// There is no memory.
    #[expect(unsafe_code, reason = "mmap, mlock and madvise are unsafe calls in rustix")]
    pub(crate) fn new(pages: usize) -> Result<Self> {
        let bytes = pages.max(1).saturating_mul(rustix::param::page_size());
        let no_memory = |e: rustix::io::Errno| Error::NoMemory { bytes, source: e.into() };
        // SAFETY: a new private mapping at an address of the kernel's choice overlaps nothing that exists.
        let start = unsafe {
            rustix::mm::mmap_anonymous(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )
        };
        let start =
            NonNull::new(start.map_err(no_memory)?.cast()).ok_or(no_memory(rustix::io::Errno::NOMEM))?;
        let buffer = Self { start, len: bytes };
        // SAFETY: the range is the mapping made above. None of the three changes what it holds.
        unsafe {
            let _ = rustix::mm::madvise(start.as_ptr().cast(), bytes, Advice::LinuxDontDump);
            let _ = rustix::mm::madvise(start.as_ptr().cast(), bytes, Advice::LinuxDontFork);
            let _ = rustix::mm::mlock(start.as_ptr().cast(), bytes);
        }
        Ok(buffer)
    }

    /// All bytes.
    #[expect(unsafe_code, reason = "a slice of memory that Rust's allocator does not know")]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is readable, initialised (the kernel zeroes it), and lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// All bytes, to write to.
    #[expect(unsafe_code, reason = "a slice of memory that Rust's allocator does not know")]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; writable, and `&mut self` makes it the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Page `index`; empty if there is no such page.
    pub(crate) fn page(&self, index: usize) -> &[u8] {
        let size = rustix::param::page_size();
        self.bytes().get(index * size..(index + 1) * size).unwrap_or_default()
    }

    /// Page `index` to write to; empty if there is no such page.
    pub(crate) fn page_mut(&mut self, index: usize) -> &mut [u8] {
        let size = rustix::param::page_size();
        self.bytes_mut().get_mut(index * size..(index + 1) * size).unwrap_or_default()
    }
}

impl Drop for Buffer {
    #[expect(unsafe_code, reason = "munmap is an unsafe call in rustix")]
    fn drop(&mut self) {
        self.bytes_mut().fill(0);
        // the compiler must not drop a write to memory that is unmapped next
        std::hint::black_box(self.bytes().first());
        // SAFETY: the mapping was made in `new`, and no reference to it outlives `self`.
        unsafe {
            let _ = rustix::mm::munmap(self.start.as_ptr().cast(), self.len);
        }
    }
}

/// A file in memory that is only read: locked in RAM if the process's limit allows it, and excluded from core dumps and from children.
#[derive(Debug)]
pub(crate) struct LockedFile {
    file: File,
    /// Its mapping, which holds the lock; `None` if there is no memory for one.
    mapped: Option<(NonNull<u8>, usize)>,
}

// SAFETY: nothing reads or writes the mapping, which only holds a lock; only drop uses its address.
#[expect(unsafe_code, reason = "the address of a mapping is a pointer")]
unsafe impl Send for LockedFile {}
// SAFETY: as above
#[expect(unsafe_code, reason = "the address of a mapping is a pointer")]
unsafe impl Sync for LockedFile {}

impl LockedFile {
    /// Locks the first `len` bytes of a file in memory.
    #[expect(unsafe_code, reason = "mmap, mlock and madvise are unsafe calls in rustix")]
    pub(crate) fn new(file: File, len: usize) -> Self {
        // SAFETY: a new mapping at an address of the kernel's choice overlaps nothing that exists. The others do not change what it holds.
        let mapped = unsafe {
            let at = rustix::mm::mmap(std::ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, &file, 0);
            at.ok().and_then(|at| {
                let _ = rustix::mm::madvise(at, len, Advice::LinuxDontDump);
                let _ = rustix::mm::madvise(at, len, Advice::LinuxDontFork);
                let _ = rustix::mm::mlock(at, len);
                Some((NonNull::new(at.cast())?, len))
            })
        };
        Self { file, mapped }
    }

    /// The file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for LockedFile {
    #[expect(unsafe_code, reason = "munmap is an unsafe call in rustix")]
    fn drop(&mut self) {
        if let Some((start, len)) = self.mapped {
            // SAFETY: the mapping was made in `new`, and nothing refers to it.
            unsafe {
                let _ = rustix::mm::munmap(start.as_ptr().cast(), len);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_aligned_and_has_whole_pages() {
        let mut b = Buffer::new(3).unwrap();
        let size = rustix::param::page_size();
        assert_eq!((b.bytes().len(), b.bytes().as_ptr() as usize % size), (3 * size, 0));
        b.page_mut(2).fill(9);
        assert_eq!((b.page(1)[0], b.page(2)[0], b.page(3).len()), (0, 9, 0));
    }
}
