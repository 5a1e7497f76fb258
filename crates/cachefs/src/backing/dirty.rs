//! Dirty pages of backing files that a program has changed through a mapping.
//!
//! The first store to a clean page changes mtime; later ones do not, until the page is written back (`page_mkwrite`,
//! mm/memory.c). So bytes read from a dirty page can change without a sign in the file's times. A page that was written back
//! is write-protected: the next store changes mtime again.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::fcntl_get_seals;

/// Starts to write the dirty pages of this range back. Nobody may call fsync(2) on the descriptor: a writeback error is reported once to
/// each open file description, and this call may take it.
///
/// # Errors
/// Those of sync_file_range(2).
pub(super) fn start_write_back(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<()> {
    sync(file, offset, bytes, libc::SYNC_FILE_RANGE_WRITE)
}

/// The same, and waits for it. It costs little without dirty pages.
///
/// # Errors
/// Those of sync_file_range(2).
pub(super) fn write_back(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<()> {
    let all =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    sync(file, offset, bytes, all)
}

fn sync(file: BorrowedFd<'_>, offset: u64, bytes: u64, flags: libc::c_uint) -> io::Result<()> {
    let at = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    #[expect(unsafe_code, reason = "sync_file_range(2) has no safe wrapper")]
    // SAFETY: no memory is passed, and the descriptor is open while it is borrowed.
    let done = unsafe { libc::sync_file_range(file.as_raw_fd(), at(offset), at(bytes), flags) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// True if it is a file of tmpfs or hugetlbfs. Their pages are never written back, so stores through a mapping never change
/// mtime again. Only such files have seals (fcntl(2)).
pub(super) fn is_memory(file: impl AsFd) -> bool {
    fcntl_get_seals(file).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use eke_linux::page_cache::counts;

    use super::*;

    #[test]
    fn dirty_pages_are_seen_until_they_are_written_back() {
        let file = tempfile::tempfile().unwrap();
        if is_memory(&file) {
            return eke_testkit::real::skip("dirty_pages", "the temporary directory is memory itself");
        }
        file.write_all_at(&[1; 100_000], 0).unwrap();
        let found = counts(&file, 0, 100_000);
        if found.as_ref().is_err_and(|e| e.raw_os_error() == Some(libc::ENOSYS)) {
            return eke_testkit::real::skip("dirty_pages", "no cachestat(2)");
        }
        assert!(found.unwrap().dirty > 0 && counts(&file, 1 << 20, 100_000).unwrap().dirty == 0);
        write_back(file.as_fd(), 0, 100_000).unwrap();
        assert_eq!(counts(&file, 0, 100_000).unwrap().dirty, 0);
    }

    #[test]
    fn memory_files_are_distinguished_from_disk_files() {
        let disk = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let memory = rustix::fs::memfd_create("eke-test", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        assert!(is_memory(memory) && !is_memory(disk));
    }
}
