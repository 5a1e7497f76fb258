//! Conversion of errors for the kernel.

use std::io;

/// The kernel's number for an error; EIO for an error without one.
pub(super) fn errno(e: io::Error) -> fuser::Errno {
    e.raw_os_error().map_or(fuser::Errno::EIO, |_| fuser::Errno::from(e))
}

/// True if the result is this error.
pub(super) fn is<T>(result: &io::Result<T>, errno: rustix::io::Errno) -> bool {
    matches!(result, Err(e) if e.raw_os_error() == Some(errno.raw_os_error()))
}
