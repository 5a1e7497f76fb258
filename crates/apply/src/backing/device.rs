//! An open block device, and a file without a name.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, IFlags, OFlags};

/// A block device that exists while somebody has it open.
#[derive(Debug)]
pub struct OpenDevice {
    /// Its path: `/dev/loop3`.
    pub path: PathBuf,
    /// It, open.
    #[allow(dead_code, reason = "the device exists while this is open")]
    pub file: File,
}

/// `ioctl(2)`, for what rustix has no call for: it returns a number, or the structure has data behind it.
#[expect(unsafe_code, reason = "a request that rustix does not have")]
pub(super) fn control<T>(on: &File, request: u32, argument: *mut T) -> io::Result<i32> {
    use std::os::fd::AsRawFd;
    // SAFETY: the callers pair each request with the structure that the kernel has for it, or with null where it has none. The type of the request
    // differs between C libraries.
    match unsafe { libc::ioctl(on.as_raw_fd(), request as _, argument) } {
        -1 => Err(io::Error::last_os_error()),
        answer => Ok(answer),
    }
}

/// A file without a name, with all its blocks.
pub(crate) fn unnamed_file(dir: &Path, bytes: u64) -> io::Result<File> {
    let flags = (OFlags::TMPFILE | OFlags::EXCL).bits() as i32;
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).mode(0o600).open(dir)?;
    // Btrfs: written in place, or each page would fragment it. Other file systems may not know the flag.
    let _ = rustix::fs::ioctl_getflags(&file)
        .and_then(|old| rustix::fs::ioctl_setflags(&file, old | IFlags::NOCOW));
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_file_has_all_its_blocks_and_no_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = unnamed_file(dir.path(), 1 << 20).unwrap();
        let of = file.metadata().unwrap();
        assert_eq!((of.len(), of.nlink(), of.mode() & 0o777), (1 << 20, 0, 0o600));
        assert!(of.blocks() * 512 >= 1 << 20);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_place_that_is_no_directory_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(unnamed_file(file.path(), 4096).is_err());
    }
}
