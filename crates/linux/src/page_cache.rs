//! The page cache state of a file: cachestat(2), Linux 6.5.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// `__NR_cachestat`, the same on all architectures that use the common table (arch/*/tools/syscall.tbl). libc defines
/// it for only some of them.
const CACHESTAT: libc::c_long = 451;

/// struct cachestat_range of include/uapi/linux/mman.h.
#[repr(C)]
struct Range {
    off: u64,
    len: u64,
}

/// struct cachestat of the same file; counts are in the machine's pages.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageCounts {
    /// Resident pages, including those under read and those whose read failed.
    pub cached: u64,
    /// Dirty pages that are not under writeback.
    pub dirty: u64,
    /// Pages under writeback.
    pub writeback: u64,
    /// Pages that were evicted.
    pub evicted: u64,
    /// Pages evicted so recently that a little more memory would have kept them.
    pub recently_evicted: u64,
}

/// Counts the pages of a range of a file; `offset` and `bytes` are in bytes.
///
/// # Errors
/// The kernel's answer: ENOSYS before Linux 6.5, EOPNOTSUPP for hugetlbfs, EPERM if the caller neither owns nor may
/// write the file (Linux 6.14).
pub fn counts(file: impl AsFd, offset: u64, bytes: u64) -> io::Result<PageCounts> {
    let range = Range { off: offset, len: bytes };
    let mut counts = PageCounts::default();
    let fd = file.as_fd().as_raw_fd();
    #[expect(unsafe_code, reason = "cachestat(2) has no safe wrapper")]
    // SAFETY: the descriptor stays open while it is borrowed. The kernel reads one range and writes one set of counts,
    // both with its own layout.
    let answer = unsafe { libc::syscall(CACHESTAT, fd, &raw const range, &raw mut counts, 0) };
    if answer == 0 { Ok(counts) } else { Err(io::Error::last_os_error()) }
}
