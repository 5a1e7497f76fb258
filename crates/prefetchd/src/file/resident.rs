//! Counts resident pages of files.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use eke_linux::page_cache;
use eke_model::units::PageSize;

use eke_prefetch_model::pages::PAGE_BYTES;

/// Bytes of this range of a file of `size` bytes that are not in memory, in whole pages of 4 KiB. The kernel counts in the machine's pages, of size
/// `page`: if these are larger, a page with any missing byte counts as missing.
///
/// Uses cachestat(2), Linux 6.5, or mincore(2) of a mapping, which answers only to the owner of the file or a user who may write to it (Linux 5.2),
/// so also to root. A filter of system calls may refuse either one (`units/eke.service`). cachestat counts pages under read, and pages whose read failed, as resident.
///
/// # Errors
/// The kernel's answer.
pub fn missing_bytes(page: PageSize, file: impl AsFd, offset: u64, bytes: u64, size: u64) -> io::Result<u64> {
    let range = PageRange::new(page, offset, bytes, size);
    if range.pages == 0 {
        return Ok(0);
    }
    let cached = match by_cachestat(file.as_fd(), &range) {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOSYS | libc::EOPNOTSUPP | libc::EPERM)) => {
            by_mincore(file.as_fd(), &range)?
        }
        answer => answer?,
    };
    Ok(range.missing(cached))
}

/// Pages of 4 KiB of a range, up to the end of a file of this size.
pub(crate) fn pages_in(offset: u64, bytes: u64, size: u64) -> u64 {
    size.min(offset.saturating_add(bytes)).saturating_sub(offset).div_ceil(PAGE_BYTES)
}

/// A range of a file in the machine's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct PageRange {
    page: PageSize,
    /// Offset of the first page in bytes.
    first: u64,
    pages: u64,
    /// Bytes of the range itself, in whole pages of 4 KiB.
    bytes: u64,
}

impl PageRange {
    fn new(page: PageSize, offset: u64, bytes: u64, size: u64) -> Self {
        let end = size.min(offset.saturating_add(bytes));
        let bytes = pages_in(offset, bytes, size).saturating_mul(PAGE_BYTES);
        Self { page, first: page.begin(offset), pages: page.touched(offset, end), bytes }
    }

    /// Missing bytes if this many of the pages are in memory.
    fn missing(&self, cached: u64) -> u64 {
        self.page.of(self.pages.saturating_sub(cached)).0.min(self.bytes)
    }
}

fn by_cachestat(file: BorrowedFd<'_>, range: &PageRange) -> io::Result<u64> {
    Ok(page_cache::counts(file, range.first, range.page.of(range.pages).0)?.cached)
}

/// An unused mapping, removed on drop.
struct Mapping {
    address: *mut libc::c_void,
    bytes: usize,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the mapping is no memory of Rust's")]
        // SAFETY: this type made the mapping, and nothing points into it.
        let _ = unsafe { rustix::mm::munmap(self.address, self.bytes) };
    }
}

/// A mapping begins at a machine page, and mincore returns one byte per machine page.
fn by_mincore(file: BorrowedFd<'_>, range: &PageRange) -> io::Result<u64> {
    use rustix::mm::{MapFlags, ProtFlags, mmap};
    let bytes = usize::try_from(range.page.of(range.pages).0).map_err(io::Error::other)?;
    let pages = usize::try_from(range.pages).map_err(io::Error::other)?;
    #[expect(unsafe_code, reason = "mmap(2) and mincore(2) have no safe wrapper")]
    // SAFETY: the kernel chooses a new address, which is never read or written; mincore writes one byte per page into a buffer of that many.
    unsafe {
        let address =
            mmap(std::ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file, range.first)?;
        let mapping = Mapping { address, bytes };
        let mut resident = vec![0u8; pages];
        if libc::mincore(mapping.address, mapping.bytes, resident.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(resident.iter().filter(|page| **page & 1 == 1).count() as u64)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{Seek, Write};

    use super::*;

    /// The calls that count resident pages; cachestat(2) has this number on all architectures.
    pub(crate) const CALLS: [libc::c_long; 2] = [451, libc::SYS_mincore];

    /// Acts in a thread whose system calls of these numbers are refused, as a service manager's filter does.
    #[expect(unsafe_code, reason = "prctl(2) has no safe wrapper for filters")]
    pub(crate) fn refusing<T: Send>(calls: &[libc::c_long], act: impl FnOnce() -> T + Send) -> T {
        let instruction = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
        let answer = |value| instruction(libc::BPF_RET | libc::BPF_K, 0, 0, value);
        let mut filter = vec![instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
        for call in calls {
            filter.push(instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, *call as u32));
            filter.push(answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
        }
        filter.push(answer(libc::SECCOMP_RET_ALLOW));
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        let confine = || {
            // SAFETY: the kernel copies the filter, which lives until the end of this function.
            let done = unsafe {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                    && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
            };
            assert!(done, "{}", io::Error::last_os_error());
            act()
        };
        struct Sent<F>(F);
        // SAFETY: the pointer in it is to a vector that outlives the thread.
        unsafe impl<F> Send for Sent<F> {}
        let confine = Sent(confine);
        std::thread::scope(|scope| {
            let thread = scope.spawn(move || {
                let confine = confine;
                (confine.0)()
            });
            thread.join().unwrap()
        })
    }

    #[test]
    fn what_one_call_may_not_tell_the_other_does() {
        let page = eke_linux::Root::host().page_size();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![7; page.bytes() as usize]).unwrap();
        let size = 2 * page.bytes();
        file.set_len(size).unwrap();
        let missing =
            |refused: &[libc::c_long]| refusing(refused, || missing_bytes(page, &file, 0, size, size));
        assert_eq!(missing(&CALLS[..1]).unwrap(), page.bytes());
        assert_eq!(missing(&CALLS).unwrap_err().raw_os_error(), Some(libc::EPERM));
    }

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

    /// Page sizes of real kernels.
    fn sizes() -> [PageSize; 3] {
        [4, 16, 64].map(|kib| PageSize::new(kib << 10).unwrap())
    }

    proptest::proptest! {
        /// Compares with a page cache that is a set of machine pages.
        #[test]
        fn what_the_kernel_counts_in_its_pages_is_missing_in_bytes(
            resident in proptest::collection::btree_set(0u64..64, 0..64), first in 0u64..600, count in 1u64..600, size in 1u64..2_400_000
        ) {
            for page in sizes() {
                let (offset, bytes) = (first * PAGE_BYTES, count * PAGE_BYTES);
                let range = PageRange::new(page, offset, bytes, size);
                proptest::prop_assert_eq!(range.first % page.bytes(), 0);
                let first_page = range.first / page.bytes();
                let cached = resident.range(first_page..first_page + range.pages).count() as u64;
                let in_file = (first..first + count).filter(|n| n * PAGE_BYTES < size);
                let truth = in_file.filter(|n| !resident.contains(&(n * PAGE_BYTES / page.bytes()))).count() as u64 * PAGE_BYTES;
                let missing = range.missing(cached);
                proptest::prop_assert!(missing >= truth && (missing == 0) == (truth == 0), "{missing} {truth} {range:?}");
                let is_whole = offset % page.bytes() == 0 && (offset + bytes).min(size.div_ceil(page.bytes()) * page.bytes()) % page.bytes() == 0;
                if is_whole && offset + bytes <= size {
                    proptest::prop_assert_eq!(missing, truth);
                }
            }
        }
    }

    #[test]
    fn a_range_after_the_end_of_a_file_has_no_pages() {
        for page in sizes() {
            assert_eq!(PageRange::new(page, 1 << 20, 4096, 1 << 20).pages, 0);
            assert_eq!(PageRange::new(page, u64::MAX - 1, u64::MAX, u64::MAX).missing(0), PAGE_BYTES);
        }
    }

    #[test]
    fn both_methods_find_written_pages() {
        let page = eke_linux::Root::host().page_size();
        let bytes = page.bytes();
        let mut file = tempfile::tempfile().unwrap();
        file.set_len(16 * bytes).unwrap();
        file.seek(io::SeekFrom::Start(4 * bytes)).unwrap();
        file.write_all(&vec![7; 2 * bytes as usize]).unwrap();
        let size = 16 * bytes;
        assert_eq!(missing_bytes(page, &file, 0, size, size).unwrap(), 14 * bytes);
        assert_eq!(missing_bytes(page, &file, 4 * bytes, 2 * bytes, size).unwrap(), 0);
        for (first, pages, cached) in [(0, 16, 2), (5, 4, 1)] {
            let range = PageRange::new(page, first * bytes, pages * bytes, size);
            assert_eq!(by_mincore(file.as_fd(), &range).unwrap(), cached);
            assert_eq!(by_cachestat(file.as_fd(), &range).unwrap_or(cached), cached);
        }
    }
}
