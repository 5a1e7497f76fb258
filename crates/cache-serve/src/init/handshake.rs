//! A session of fuser on a device whose `FUSE_INIT` was answered before.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use fuser::{Config, Filesystem, Session, SessionACL};
use rustix::io::write;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::bytes::{Grant, encode_request};

/// A session that serves `live`. fuser 0.18 starts with `FUSE_INIT` and fails on anything else. So it first gets a synthetic
/// `FUSE_INIT` through a pair of sockets; then the live device replaces the socket.
///
/// # Errors
/// What the kernel or the file system's `init` answers.
pub fn session<F: Filesystem>(fs: F, live: &OwnedFd, grant: &Grant) -> io::Result<Session<F>> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    write(&ours, &encode_request(grant))?;
    // The kernel decides which users may use the mount (allow_other, default_permissions).
    let session = Session::from_fd(fs, theirs, SessionACL::All, Config::default())?;
    replace(session.as_fd(), live.as_fd())?;
    Ok(session)
}

#[expect(
    unsafe_code,
    reason = "rustix's dup3 must own the descriptor that it replaces, and fuser owns this one"
)]
fn replace(socket: BorrowedFd<'_>, live: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both are open. fuser still owns the socket's number and closes it; only the open file behind it changes.
    let answer = unsafe { libc::dup3(live.as_raw_fd(), socket.as_raw_fd(), libc::O_CLOEXEC) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
