//! Reads that bypass the page cache.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};

use crate::plan::{LARGE_BYTES, SMALL_BYTES};

/// A device or file opened for direct I/O.
pub(super) struct Direct {
    file: File,
    /// Its size in bytes.
    pub(super) bytes: u64,
}

/// A buffer with the alignment that direct I/O requires.
pub(super) struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
}

impl AlignedBuffer {
    pub(super) fn new() -> Self {
        let align = SMALL_BYTES as usize;
        let memory = vec![0; LARGE_BYTES as usize + align];
        let start = memory.as_ptr().align_offset(align).min(align);
        Self { memory, start }
    }
}

impl Direct {
    /// Opens `path` for direct I/O.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        let bytes = file.seek(SeekFrom::End(0))?;
        Ok(Self { file, bytes })
    }

    /// Reads `bytes` at `offset`; returns the time it took.
    pub(super) fn read(&self, buffer: &mut AlignedBuffer, offset: u64, bytes: u64) -> io::Result<Duration> {
        let bytes = bytes.min(LARGE_BYTES) as usize;
        let into = &mut buffer.memory[buffer.start..][..bytes];
        let began = Instant::now();
        self.file.read_exact_at(into, offset)?;
        Ok(began.elapsed())
    }
}
