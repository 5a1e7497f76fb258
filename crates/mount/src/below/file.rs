//! A regular file below, open. Its content is read without filling the kernel's cache, where that can be had.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, StatxFlags, statx};
use rustix::io::{pread, pwrite};

use super::Stamp;

/// An open file below.
#[derive(Debug)]
pub struct File {
    plain: OwnedFd,
}

impl File {
    /// Of a descriptor that is open for reading, or for both.
    pub fn new(plain: OwnedFd) -> Self {
        Self { plain }
    }

    /// What it is now.
    ///
    /// # Errors
    /// What fstat(2) answers.
    pub fn stamp(&self) -> io::Result<Stamp> {
        let flags = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        Ok(Stamp::of(&statx(&self.plain, c"", AtFlags::EMPTY_PATH, flags)?))
    }

    /// Reads from `offset`; less than asked for only at the end.
    ///
    /// # Errors
    /// What pread(2) answers.
    pub fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while done < out.len() {
            match pread(&self.plain, &mut out[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(done)
    }

    /// Writes at `offset`, once.
    ///
    /// # Errors
    /// What pwrite(2) answers.
    pub fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        Ok(pwrite(&self.plain, data, offset)?)
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.plain.as_fd()
    }
}
