//! fork(2).
//!
//! A worker is a fork that executes no program. It must start while nobody serves the directory, and that directory may contain the
//! loader, the libraries or eke-cache itself (`eke cache mount /usr`).

use std::io;

use rustix::process::Pid;

/// Forks. Returns the child's number; `None` in the child.
///
/// # Errors
/// What fork(2) answers: EAGAIN at the limit of processes, ENOMEM.
#[expect(unsafe_code, reason = "rustix has no fork")]
pub fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the supervisor has one thread, so no other thread's lock stays locked in the child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}
