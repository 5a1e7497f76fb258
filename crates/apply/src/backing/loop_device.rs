//! Loop devices (`linux/loop.h`).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use super::device::{OpenDevice, control};

pub(crate) const CONTROL: &str = "/dev/loop-control";
const LOOP_CTL_GET_FREE: u32 = 0x4C82;
/// Since Linux 5.8.
const LOOP_CONFIGURE: u32 = 0x4C0A;
const LO_FLAGS_AUTOCLEAR: u32 = 4;
/// With the page cache in between, memory would hold what zram wrote to the disk.
const LO_FLAGS_DIRECT_IO: u32 = 16;
/// zram writes whole pages.
const BLOCK_BYTES: u32 = 4096;
/// Another process may take the free device first.
const ATTEMPTS: usize = 8;

/// `struct loop_config`, whose `struct loop_info64` begins with `device`.
#[repr(C)]
struct Config {
    fd: u32,
    block_size: u32,
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    /// The names of file and cipher, and a key: all unused.
    names_and_key: [u64; 20],
    init: [u64; 2],
    reserved: [u64; 8],
}

/// A loop device for `file`, until the last descriptor of it is closed.
///
/// # Errors
/// The kernel's answer: ENOTTY before Linux 5.8.
pub(crate) fn add(file: &File) -> io::Result<OpenDevice> {
    let free = OpenOptions::new().read(true).write(true).open(CONTROL)?;
    let mut last = io::Error::from(rustix::io::Errno::BUSY);
    for _ in 0..ATTEMPTS {
        let number = control(&free, LOOP_CTL_GET_FREE, std::ptr::null_mut::<()>())?;
        let path = PathBuf::from(format!("/dev/loop{number}"));
        let device = OpenOptions::new().read(true).write(true).open(&path)?;
        match configure(&device, file) {
            Ok(()) => return Ok(OpenDevice { path, file: device }),
            Err(e) if e.raw_os_error() == Some(libc::EBUSY) => last = e,
            Err(e) => return Err(e),
        }
    }
    Err(last)
}

fn configure(device: &File, file: &File) -> io::Result<()> {
    let mut config = Config {
        fd: u32::try_from(file.as_raw_fd()).unwrap_or(u32::MAX),
        block_size: BLOCK_BYTES,
        device: 0,
        inode: 0,
        rdevice: 0,
        offset: 0,
        sizelimit: 0,
        number: 0,
        encrypt_type: 0,
        encrypt_key_size: 0,
        flags: LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO,
        names_and_key: [0; 20],
        init: [0; 2],
        reserved: [0; 8],
    };
    control(device, LOOP_CONFIGURE, &raw mut config).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_is_the_kernels() {
        assert_eq!(size_of::<Config>(), 4 + 4 + 232 + 64);
        assert_eq!(std::mem::offset_of!(Config, flags), 8 + 52);
    }
}
