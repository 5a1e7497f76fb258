//! Reads a piece or lists a directory.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use rustix::fs::RawDir;

/// The data is discarded: all parts of a read go to the same few pages, which stay in the CPU's cache. Each thread has its own.
const SINK_BYTES: usize = 16 << 10;
const PARTS: usize = 64;
/// The most bytes per call.
const CALL_BYTES: u64 = (SINK_BYTES * PARTS) as u64;
/// Buffer for directory entries, and how often it is filled at most: no directory that a launch lists has 64 MiB of entries.
const ENTRIES_BYTES: usize = 32 << 10;
const MOST_FILLS: usize = 2048;

/// Memory that is written and never read.
pub struct Sink(Vec<u8>);

/// A read that failed part-way.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub struct ReadFailure {
    /// Bytes that were read before.
    pub done: u64,
    /// The kernel's answer.
    pub source: io::Error,
}

impl Default for Sink {
    fn default() -> Self {
        Self(vec![0; SINK_BYTES])
    }
}

impl Sink {
    /// Reads a range into the page cache and waits for it. Returns the number of bytes.
    ///
    /// Uses pread(2) on a file with POSIX_FADV_RANDOM: exactly these pages, requests as large as the device accepts, a return when they are in
    /// memory, and errors. readahead(2) reports no result and cannot be stopped. It is faster only with a single thread: on a slow disk of 500 MB/s
    /// and 0.1 ms, ranges of 64 KiB arrived at 234 MB/s with one thread's pread, 498 with its readahead, and 457 with four threads' pread; whole
    /// files at 387, 470 and 489 (`fetch_rates.rs` of commit 2f2a92bf, Linux 6.18).
    ///
    /// # Errors
    /// The kernel's answer, and the bytes read before it, which stay in the cache.
    pub fn read(&mut self, file: impl AsFd, offset: u64, bytes: u64) -> Result<u64, ReadFailure> {
        let mut done = 0;
        while done < bytes {
            let at = i64::try_from(offset.saturating_add(done));
            let read = at
                .map_err(io::Error::other)
                .and_then(|at| self.call(file.as_fd(), at, (bytes - done).min(CALL_BYTES) as usize));
            match read {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(ReadFailure { done, source }),
            }
        }
        Ok(done)
    }

    fn call(&mut self, file: BorrowedFd<'_>, offset: i64, bytes: usize) -> io::Result<u64> {
        let base = self.0.as_mut_ptr().cast::<libc::c_void>();
        let mut left = bytes;
        let parts = std::array::from_fn::<_, PARTS, _>(|_| {
            let iov_len = left.min(SINK_BYTES);
            left -= iov_len;
            libc::iovec { iov_base: base, iov_len }
        });
        #[expect(unsafe_code, reason = "parts that overlap are what safe wrappers rightly do not allow")]
        // SAFETY: every part is the begin of our own buffer and no longer than it; nothing else refers to the buffer during the call, and the kernel
        // may write the same bytes repeatedly. 64: the offset has 64 bits on 32-bit machines, too.
        let read = unsafe { libc::preadv64(file.as_raw_fd(), parts.as_ptr(), PARTS as libc::c_int, offset) };
        u64::try_from(read).map_err(|_| io::Error::last_os_error())
    }
}

/// Lists a directory, so that its blocks are in memory. Returns the number of names.
///
/// # Errors
/// The kernel's answer.
pub(crate) fn list(directory: impl AsFd) -> io::Result<u64> {
    let mut buffer = vec![MaybeUninit::<u8>::uninit(); ENTRIES_BYTES];
    let mut entries = RawDir::new(directory, &mut buffer);
    let (mut names, mut fills) = (0, 0);
    while let Some(entry) = entries.next() {
        entry?;
        names += 1;
        if entries.is_buffer_empty() {
            fills += 1;
            if fills >= MOST_FILLS {
                break;
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "test code")]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_read_ends_with_the_file() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 3_000_000]).unwrap();
        let mut sink = Sink::default();
        for (offset, bytes, expected) in [
            (0, 4096, 4096),
            (0, 1 << 20, 1 << 20),
            (4096, 70_000, 70_000),
            (0, 5 << 20, 3_000_000),
            (2_999_000, 4096, 1000),
            (4 << 20, 1, 0),
        ] {
            assert_eq!(sink.read(&file, offset, bytes).unwrap(), expected, "{offset} {bytes}");
        }
        assert!(sink.read(&file, u64::MAX - 1, 1).is_err());
    }

    #[test]
    fn a_directory_is_gone_through_to_its_end() {
        let dir = tempfile::tempdir().unwrap();
        for n in 0..3000 {
            std::fs::File::create(dir.path().join(format!("a-rather-long-name-{n}"))).unwrap();
        }
        let open = std::fs::File::open(dir.path()).unwrap();
        assert_eq!(list(&open).unwrap(), 3002);
        assert!(list(tempfile::tempfile().unwrap()).is_err());
    }
}
