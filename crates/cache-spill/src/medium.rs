//! The file with the segments.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;

use eke_model::units::Bytes;
use rustix::fs::{Advice, fadvise, fstatvfs};

/// The free and all space of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Free for this user.
    pub free: Bytes,
    /// Of the whole file system.
    pub all: Bytes,
}

/// A file, or what stands for it in a test.
pub trait Medium: Debug + Send + Sync {
    /// Reads exactly these bytes.
    ///
    /// # Errors
    /// Those of pread(2); `UnexpectedEof`.
    fn read(&self, out: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all bytes.
    ///
    /// # Errors
    /// Those of pwrite(2).
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Waits until all that was written is on the disk.
    ///
    /// # Errors
    /// Those of fdatasync(2), which reports failed writes.
    fn sync(&self) -> io::Result<()>;

    /// The room on its disk.
    ///
    /// # Errors
    /// Those of fstatvfs(3).
    fn room(&self) -> io::Result<Room>;
}

/// A file on a disk. Its bytes do not stay in the page cache, which would hold compressed blocks twice.
#[derive(Debug)]
pub struct DiskFile(File);

impl DiskFile {
    /// Of an open file.
    pub fn new(file: File) -> Self {
        // Blocks are read here and there, so the kernel's readahead would read what nobody needs.
        let _ = fadvise(&file, 0, None, Advice::Random);
        Self(file)
    }

    fn drop_pages(&self, offset: u64, bytes: usize) {
        let _ = fadvise(&self.0, offset, NonZeroU64::new(bytes as u64), Advice::DontNeed);
    }
}

impl Medium for DiskFile {
    fn read(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(out, offset)?;
        self.drop_pages(offset, out.len());
        Ok(())
    }

    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()?;
        // All of the file: its pages are clean now, and those of reads are gone already.
        let _ = fadvise(&self.0, 0, None, Advice::DontNeed);
        Ok(())
    }

    fn room(&self) -> io::Result<Room> {
        let fs = fstatvfs(&self.0)?;
        let bytes = |blocks: u64| Bytes(blocks.saturating_mul(fs.f_frsize));
        Ok(Room { free: bytes(fs.f_bavail), all: bytes(fs.f_blocks) })
    }
}
