//! Where a log's bytes are.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, fstat, memfd_create};
use rustix::io::{Errno, pread, pwrite};

/// Bytes at offsets, zero where nothing was written.
pub trait Medium: Send + Sync {
    /// Writes all of it. What a crash leaves is the first part of it.
    ///
    /// # Errors
    /// The kernel's answer, above all ENOSPC and ENOMEM.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// What is there of `len` bytes: less at the end.
    ///
    /// # Errors
    /// The kernel's answer.
    fn read_at(&self, offset: u64, len: usize) -> io::Result<Vec<u8>>;

    /// Gives the memory of a range back; it reads as zero then.
    ///
    /// # Errors
    /// The kernel's answer.
    fn punch(&self, offset: u64, len: u64) -> io::Result<()>;

    /// Where the last byte ends.
    ///
    /// # Errors
    /// The kernel's answer.
    fn end(&self) -> io::Result<u64>;
}

/// Anonymous memory with a descriptor (memfd_create(2)).
///
/// It is written to by pwrite(2), not mapped: what lacks memory is an error then, not SIGBUS.
#[derive(Debug)]
pub struct Memfd(OwnedFd);

impl Memfd {
    /// Empty.
    ///
    /// # Errors
    /// What memfd_create(2) answers.
    pub fn new() -> io::Result<Self> {
        Ok(Self(memfd_create("eke-cache-ledger", MemfdFlags::CLOEXEC)?))
    }

    /// One that is there.
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
