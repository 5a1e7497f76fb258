//! Reads that bypass the page cache.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

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
    /// Opens a block device, or the file with this inode number, for direct I/O: nothing that a user has put in its place since, as the driver of a device acts as soon as it is opened.
    pub(super) fn open(path: &Path, ino: Option<u64>) -> io::Result<Self> {
        let found = look_up(path, ino)?;
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let name = format!("/proc/self/fd/{}", found.as_raw_fd());
        let mut file = File::from(openat(CWD, name.as_str(), flags, Mode::empty())?);
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

/// The block device or the learned file, by a descriptor that opens nothing. No link is followed; before Linux 5.6 only the last one is not.
#[allow(clippy::unnecessary_cast, reason = "the field's type differs between architectures")]
fn look_up(path: &Path, ino: Option<u64>) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let found = match openat2(CWD, path, flags, Mode::empty(), resolve) {
        // EPERM: a filter of system calls that is older than openat2
        Err(Errno::NOSYS | Errno::PERM) => openat(CWD, path, flags, Mode::empty()),
        found => found,
    }?;
    let stat = fstat(&found)?;
    let is_it = match (ino, FileType::from_raw_mode(stat.st_mode)) {
        (None, kind) => kind == FileType::BlockDevice,
        (Some(ino), kind) => kind == FileType::RegularFile && stat.st_ino as u64 == ino,
    };
    if is_it { Ok(found) } else { Err(io::Error::other("something else is there now")) }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "test code")]

    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    fn why_not(path: &Path, ino: Option<u64>) -> String {
        Direct::open(path, ino).map(|opened| opened.bytes).unwrap_err().to_string()
    }

    #[test]
    fn only_the_learned_file_is_opened() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        fs::create_dir(at("home")).unwrap();
        fs::write(at("home/film"), [1; 8192]).unwrap();
        let (film, ino) = (at("home/film"), Some(fs::metadata(at("home/film")).unwrap().ino()));
        // Not every file system has direct I/O.
        assert!(
            Direct::open(&film, ino).is_ok_and(|film| film.bytes == 8192)
                || why_not(&film, ino).contains("Invalid")
        );
        symlink(at("home"), at("link")).unwrap();
        symlink(&film, at("home/other")).unwrap();
        for by_link in ["link/film", "home/other"] {
            assert!(look_up(&at(by_link), ino).is_err(), "{by_link}");
        }
        let another = "something else is there now";
        assert_eq!(why_not(&film, Some(7)), another);
        assert_eq!(why_not(&film, None), another, "it is no device");
        assert_eq!(why_not(Path::new("/dev/null"), None), another);
    }
}
