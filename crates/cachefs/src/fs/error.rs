//! Errors on their way to the kernel.

use std::io;

/// The kernel's number for an error; one without a number is `EIO`.
pub(super) fn errno(e: io::Error) -> fuser::Errno {
    e.raw_os_error().map_or(fuser::Errno::EIO, |_| fuser::Errno::from(e))
}

/// Is it this error?
pub(super) fn is<T>(result: &io::Result<T>, errno: rustix::io::Errno) -> bool {
    matches!(result, Err(e) if e.raw_os_error() == Some(errno.raw_os_error()))
}
