//! Reads around the page cache.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use super::plan::{LARGE_BYTES, SMALL_BYTES};

/// A device or file whose reads go to the disk.
pub(super) struct Direct {
    file: File,
    /// Its size in bytes.
    pub(super) bytes: u64,
}

/// Room for a read: direct I/O wants it where a sector could begin.
pub(super) struct Room {
    memory: Vec<u8>,
    start: usize,
}

impl Room {
    pub(super) fn new() -> Self {
        let align = SMALL_BYTES as usize;
        let memory = vec![0; LARGE_BYTES as usize + align];
        let start = memory.as_ptr().align_offset(align).min(align);
        Self { memory, start }
    }
}

impl Direct {
    /// Opens for direct reads.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let bytes = file.seek(SeekFrom::End(0))?;
        Ok(Self { file, bytes })
    }

    /// Reads so many bytes, and says how long that took.
    pub(super) fn read(&self, room: &mut Room, offset: u64, bytes: u64) -> io::Result<Duration> {
        let bytes = bytes.min(LARGE_BYTES) as usize;
        let into = &mut room.memory[room.start..][..bytes];
        let began = Instant::now();
        self.file.read_exact_at(into, offset)?;
        Ok(began.elapsed())
    }
}
