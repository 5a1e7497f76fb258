//! The storage of a log's bytes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, fstat, memfd_create};
use rustix::io::{Errno, pread, pwrite};

/// Bytes at offsets, zero where nothing was written.
pub trait Medium: Send + Sync {
    /// Writes all bytes. A crash may leave a prefix of them.
    ///
    /// # Errors
    /// The kernel's answer, mostly ENOSPC and ENOMEM.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Reads `len` bytes; fewer at the end.
    ///
    /// # Errors
    /// The kernel's answer.
    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>>;

    /// Frees the memory of a range, which then reads as zero.
    ///
    /// # Errors
    /// The kernel's answer.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;

    /// The offset after the last byte.
    ///
    /// # Errors
    /// The kernel's answer.
    fn end(&self) -> io::Result<u64>;
}

/// Anonymous memory with a descriptor (memfd_create(2)).
///
/// It is written by pwrite(2), not mapped: so lack of memory is an error and not SIGBUS.
#[derive(Debug)]
pub struct Memfd(OwnedFd);

impl Memfd {
    /// An empty one.
    ///
    /// # Errors
    /// What memfd_create(2) answers.
    pub fn new() -> io::Result<Self> {
        Ok(Self(memfd_create("eke-cache-ledger", MemfdFlags::CLOEXEC)?))
    }

    /// An existing one.
    pub fn of(memfd: OwnedFd) -> Self {
        Self(memfd)
    }
}

impl AsFd for Memfd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Medium for Memfd {
    fn write_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match pwrite(&self.0, bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = &bytes[written..];
                    offset += written as u64;
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        let mut done = 0;
        while done < len {
            match pread(&self.0, &mut bytes[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        bytes.truncate(done);
        Ok(bytes)
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if len > 0 {
            fallocate(&self.0, flags, offset, len)?;
        }
        Ok(())
    }

    fn end(&self) -> io::Result<u64> {
        Ok(fstat(&self.0)?.st_size.unsigned_abs())
    }
}

impl From<Memfd> for OwnedFd {
    fn from(memfd: Memfd) -> Self {
        memfd.0
    }
}
