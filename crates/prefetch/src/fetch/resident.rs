//! Which pages are in the page cache already.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use crate::pages::PAGE_BYTES;

/// `__NR_cachestat`, the same on all architectures that came after the common table (arch/*/tools/syscall.tbl); libc has it only
/// for some.
const CACHESTAT: libc::c_long = 451;

/// struct cachestat_range, include/uapi/linux/mman.h.
#[repr(C)]
struct Range {
    off: u64,
    len: u64,
}

/// struct cachestat, ibidem.
#[repr(C)]
#[derive(Default)]
struct Counts {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// How many bytes of this range are not in memory, of a file that has `size` bytes; whole pages. `offset` is a whole number of
/// pages.
///
/// By cachestat(2), Linux 6.5; before that by mincore(2) of a mapping, which tells only who may write to the file or owns it
/// (Linux 5.2), as root may. cachestat counts pages that are being read, and those that could not be read, as there.
///
/// # Errors
/// The kernel's answer.
pub fn missing_bytes(file: impl AsFd, offset: u64, bytes: u64, size: u64) -> io::Result<u64> {
    let pages = pages_in(offset, bytes, size);
    if pages == 0 {
        return Ok(0);
    }
    let cached = match by_cachestat(file.as_fd(), offset, pages * PAGE_BYTES) {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::EOPNOTSUPP)) => {
            by_mincore(file.as_fd(), offset, pages)?
        }
        answer => answer?,
    };
    Ok(pages.saturating_sub(cached) * PAGE_BYTES)
}

/// Pages of a range that a file of this size has.
pub(super) fn pages_in(offset: u64, bytes: u64, size: u64) -> u64 {
    size.min(offset.saturating_add(bytes)).saturating_sub(offset).div_ceil(PAGE_BYTES)
}

fn by_cachestat(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<u64> {
    let range = Range { off: offset, len: bytes };
    let mut counts = Counts::default();
    #[expect(unsafe_code, reason = "cachestat(2) has no safe wrapper")]
    // SAFETY: the descriptor is open while it is borrowed; the kernel reads one range and writes one set of counts, whose layouts
    // are its own.
    let answer = unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut counts, 0) };
    if answer == 0 { Ok(counts.cached) } else { Err(io::Error::last_os_error()) }
}

/// A mapping without any access to it, gone when dropped.
struct Mapping {
    address: *mut libc::c_void,
    bytes: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the mapping is no memory of Rust's")]
        // SAFETY: it was mapped by us, and nobody has a pointer into it.
        let _ = unsafe { rustix::mm::munmap(self.address, self.bytes) };
    }
}

fn by_mincore(file: BorrowedFd<'_>, offset: u64, pages: u64) -> io::Result<u64> {
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    let bytes = usize::try_from(pages * PAGE_BYTES).map_err(io::Error::other)?;
    #[expect(unsafe_code, reason = "mmap(2) and mincore(2) have no safe wrapper")]
    // SAFETY: the kernel chooses a new place, which is never read or written; it writes one byte for each page into a buffer of
    // that many.
    unsafe {
        let address = mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file, offset)?;
        let mapping = Mapping { address, bytes };
        let mut there = vec![0u8; bytes / PAGE_BYTES as usize];
        if libc::mincore(mapping.address, mapping.bytes, there.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(there.iter().filter(|page| **page & 1 == 1).count() as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    #[test]
    fn pages_of_a_range_end_with_the_file() {
        let table = [
            (0, 4096, 4096, 1),
            (0, 8192, 4097, 2),
            (4096, 8192, 4096, 0),
            (8192, 4096, 100_000, 1),
            (0, 1, 0, 0),
        ];
        for (offset, bytes, size, expected) in table {
            assert_eq!(pages_in(offset, bytes, size), expected, "{offset} {bytes} {size}");
        }
        assert_eq!(pages_in(u64::MAX - 1, u64::MAX, u64::MAX), 1);
    }

    #[test]
    fn what_was_written_is_there_and_both_ways_say_so() {
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(16 * PAGE_BYTES).unwrap();
        file.seek(io::SeekFrom::Start(4 * PAGE_BYTES)).unwrap();
        file.write_all(&[7; 2 * PAGE_BYTES as usize]).unwrap();
        let size = 16 * PAGE_BYTES;
        assert_eq!(missing_bytes(&file, 0, size, size).unwrap(), 14 * PAGE_BYTES);
        assert_eq!(missing_bytes(&file, 4 * PAGE_BYTES, 2 * PAGE_BYTES, size).unwrap(), 0);
        assert_eq!(by_mincore(file.as_fd(), 0, 16).unwrap(), 2);
        assert_eq!(by_mincore(file.as_fd(), 5 * PAGE_BYTES, 4).unwrap(), 1);
    }
}
