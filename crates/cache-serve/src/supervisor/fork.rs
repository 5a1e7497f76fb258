//! A copy of this process.
//!
//! A worker is a fork that starts no program: a worker must come up while nobody answers for the directory, and that
//! directory may hold the loader, the libraries or eke-cache itself (`eke cache mount /usr`).

use std::io;

use rustix::process::Pid;

/// The child's number; none in the child.
///
/// # Errors
/// What fork(2) answers: EAGAIN at the limit of processes, ENOMEM.
#[expect(unsafe_code, reason = "rustix has no fork")]
pub(super) fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the supervisor has one thread, so no lock of another one can stay locked in the child.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(Pid::from_raw(pid)),
    }
}
