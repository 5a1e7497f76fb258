//! The page cache state of a file: cachestat(2), Linux 6.5, and mincore(2).

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

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

/// Is the page at `offset`, a multiple of a page in bytes, resident? Unlike [`counts`] it sees pages below an overlay, whose mappings are of the file
/// below (mincore(2)).
///
/// # Errors
/// The kernel's answer: ENODEV for a file that cannot be mapped. Who neither owns nor may write the file gets true for each page (Linux 5.2).
#[expect(unsafe_code, reason = "mincore(2) has no safe wrapper")]
pub fn is_resident(file: impl AsFd, offset: u64) -> io::Result<bool> {
    let len = rustix::param::page_size();
    // SAFETY: a new mapping of one page, which nothing reads.
    let page =
        unsafe { mmap(ptr::null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file.as_fd(), offset) }?;
    let mut state = 0u8;
    // SAFETY: the page is mapped, and the kernel writes one byte for one page.
    let answer = unsafe { libc::mincore(page, len, &raw mut state) };
    let error = io::Error::last_os_error();
    // SAFETY: it was mapped here, and nothing refers to it.
    unsafe { munmap(page, len) }?;
    if answer == 0 { Ok(state & 1 == 1) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use rustix::fs::{Advice, fadvise, fstatfs};

    use super::*;

    /// TMPFS_MAGIC of include/uapi/linux/magic.h.
    const TMPFS: rustix::fs::FsWord = 0x0102_1994;

    #[test]
    fn a_page_is_resident_until_it_is_dropped() {
        let file = tempfile::tempfile().unwrap();
        let page = rustix::param::page_size();
        file.write_all_at(&vec![1; 2 * page], 0).unwrap();
        file.sync_all().unwrap();
        assert!(is_resident(&file, page as u64).unwrap());
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        if fstatfs(&file).unwrap().f_type == TMPFS {
            return eke_testkit::real::skip("a_page_is_resident", "temporary files are in memory");
        }
        assert!(!is_resident(&file, page as u64).unwrap());
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        assert!(is_resident(rustix::pipe::pipe().unwrap().0, 0).is_err());
    }
}
