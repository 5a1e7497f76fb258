//! What the page cache has of a file: cachestat(2), Linux 6.5.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `__NR_cachestat`, the same on all architectures that came after the common table (arch/*/tools/syscall.tbl); libc has it only
/// for some.
const CACHESTAT: libc::c_long = 451;

/// struct cachestat_range, include/uapi/linux/mman.h.
#[repr(C)]
struct Range {
    off: u64,
    len: u64,
}

/// struct cachestat, ibidem: counts in pages of the machine.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageCounts {
    /// In memory, also while they are being read, and those that could not be read.
    pub cached: u64,
    /// Changed, and not yet being written back.
    pub dirty: u64,
    /// Being written back.
    pub writeback: u64,
    /// Dropped since they were read.
    pub evicted: u64,
    /// Dropped so lately that they would still be there with a little more memory.
    pub recently_evicted: u64,
}

/// The pages of a range of a file, both in bytes.
///
/// # Errors
/// The kernel's answer: ENOSYS from an older one, EOPNOTSUPP for hugetlbfs, EPERM if this user may not write the file and does not own
/// it (Linux 6.14).
pub fn counts(file: impl AsFd, offset: u64, bytes: u64) -> io::Result<PageCounts> {
    let range = Range { off: offset, len: bytes };
    let mut counts = PageCounts::default();
    let fd = file.as_fd().as_raw_fd();
    #[expect(unsafe_code, reason = "cachestat(2) has no safe wrapper")]
    // SAFETY: the descriptor is open while it is borrowed; the kernel reads one range and writes one set of counts, whose layouts
    // are its own.
    let answer = unsafe { libc::syscall(CACHESTAT, fd, &raw const range, &raw mut counts, 0) };
    if answer == 0 { Ok(counts) } else { Err(io::Error::last_os_error()) }
}
