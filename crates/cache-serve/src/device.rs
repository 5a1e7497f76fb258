//! The connection's device: `/dev/fuse`, its clones, and the order to resend unanswered requests.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open as open_file};

/// `FUSE_DEV_IOC_CLONE` of the kernel's `uapi/linux/fuse.h`: `_IOR(229, 0, uint32_t)`.
const IOC_CLONE: u32 = 0x8004_e500;
/// `FUSE_NOTIFY_RESEND` of the same file (since Linux 6.9).
const NOTIFY_RESEND: i32 = 7;

/// Opens a device that belongs to no connection yet.
///
/// # Errors
/// What open(2) answers: ENOENT without the module, EPERM or EACCES without permission.
pub fn open() -> io::Result<OwnedFd> {
    Ok(open_file("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?)
}

/// Opens one more device of the connection of `live`, with its own queue of requests that are being answered.
///
/// The supervisor opens and keeps the clones: when the last descriptor of a device closes, the kernel ends the requests that were
/// read from it with ECONNABORTED. A clone that a worker opened would die with that worker.
///
/// # Errors
/// What open(2) or ioctl(2) answers.
pub fn open_clone(live: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let new = open()?;
    attach(new.as_fd(), live)?;
    Ok(new)
}

#[expect(unsafe_code, reason = "rustix has no ioctl of FUSE")]
fn attach(new: BorrowedFd<'_>, live: BorrowedFd<'_>) -> io::Result<()> {
    let mut number = live.as_raw_fd().unsigned_abs();
    // SAFETY: FUSE_DEV_IOC_CLONE only reads the u32, which lives until the call returns.
    let answer = unsafe { libc::ioctl(new.as_raw_fd(), IOC_CLONE.into(), &raw mut number) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Is the connection alive? Not after an unmount (`fuse_dev_poll()` in the kernel's `fs/fuse/dev.c`).
pub fn is_connected(live: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(live, PollFlags::IN)];
    match poll(&mut polled, Some(&Timespec::default())) {
        Ok(_) => polled.iter().all(|fd| !fd.revents().contains(PollFlags::ERR)),
        Err(_) => true,
    }
}

/// Has the kernel send every request again that was read and not answered, with the highest bit of its number set. Call it only
/// when no process is left that could still answer one.
///
/// # Errors
/// What write(2) answers: EINVAL before Linux 6.9.
pub fn resend(live: BorrowedFd<'_>) -> io::Result<()> {
    let mut header = [0u8; 16];
    header[..4].copy_from_slice(&16u32.to_ne_bytes());
    header[4..8].copy_from_slice(&NOTIFY_RESEND.to_ne_bytes());
    rustix::io::write(live, &header)?;
    Ok(())
}
