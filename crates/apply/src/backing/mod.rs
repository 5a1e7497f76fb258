//! The block device behind a zram device, where no partition is free for writeback: a file without a name, encrypted.
//!
//! Nothing of it outlives the zram device, whatever ends first. The file has no name (`O_TMPFILE`, Linux 3.11), so that its file system frees it with
//! the last descriptor, also after a power cut. The loop device lets go of it when it is closed (`LO_FLAGS_AUTOCLEAR`), and the mapping is removed when
//! it is closed (`DM_DEFERRED_REMOVE`, Linux 3.13); zram closes its backing device at its reset. The key is made for this mapping and is in the
//! kernel's memory alone: what is on the disk nobody can read.

pub(crate) mod loop_device;
pub(crate) mod mapping;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use eke_linux::error::{Error, Result};
use eke_linux::root::Root;
use eke_model::step::UnnamedFile;
use rustix::fs::{FallocateFlags, IFlags, OFlags};

use crate::sys::{self, Sys};

/// A block device that exists while somebody has it open.
#[derive(Debug)]
pub struct OpenDevice {
    /// Its path: `/dev/loop3`.
    pub path: PathBuf,
    /// It, open.
    #[allow(dead_code, reason = "the device exists while this is open")]
    pub file: File,
}

/// The name of the mapping for a zram device.
pub(crate) fn mapping_name(zram: &str) -> String {
    format!("eke-writeback-{zram}")
}

/// Makes the device for the zram device `zram`. Drop it after zram has opened it.
///
/// # Errors
/// What the kernel refused; nothing is left then.
pub(crate) fn make(root: &Root, zram: &str, wanted: &UnnamedFile) -> Result<OpenDevice> {
    let (sys, dir) = (sys::of(root), root.path(&wanted.directory));
    let unnamed = sys.unnamed_file(&dir, wanted.size.0);
    let file = unnamed.map_err(|e| Error::io("make a file without a name in", &dir, e))?;
    let on_loop =
        sys.loop_device(&file).map_err(|e| Error::io("make a loop device for a file in", &dir, e))?;
    if wanted.encrypted { encrypted(sys, &on_loop, zram, wanted.size.0) } else { Ok(on_loop) }
}

fn encrypted(sys: &dyn Sys, below: &OpenDevice, zram: &str, bytes: u64) -> Result<OpenDevice> {
    let mapped = sys.encrypted_device(&mapping_name(zram), &below.path, bytes);
    mapped.map_err(|e| Error::io("encrypt, by dm-crypt,", &below.path, e))
}

/// Removes the mapping of a zram device, if a crash left one that nothing has open. One in use goes with its device anyhow.
///
/// # Errors
/// The kernel's answer.
pub(crate) fn remove(root: &Root, zram: &str) -> Result<()> {
    let name = mapping_name(zram);
    let path = Path::new("/dev/mapper").join(&name);
    sys::of(root).remove_mapping(&name).map_err(|e| Error::io("remove the mapping", &path, e))
}

/// `ioctl(2)`, for what rustix has no call for: it returns a number, or the structure has data behind it.
#[expect(unsafe_code, reason = "a request that rustix does not have")]
fn control<T>(on: &File, request: u32, argument: *mut T) -> io::Result<i32> {
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
