//! A session of fuser on a device whose `FUSE_INIT` is long answered.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use fuser::{Config, Filesystem, Session, SessionACL};
use rustix::io::write;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::bytes::{Grant, made_up};

/// A session that serves `live`. fuser 0.18 starts with `FUSE_INIT` and fails on anything else, so it gets a made-up one
/// through a pair of sockets, and then the live device in the socket's place.
///
/// # Errors
/// What the kernel or the file system's `init` answers.
pub fn session<F: Filesystem>(fs: F, live: &OwnedFd, grant: &Grant) -> io::Result<Session<F>> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    write(&ours, &made_up(grant))?;
    // Who may use the mount is the kernel's business (allow_other, default_permissions).
    let session = Session::from_fd(fs, theirs, SessionACL::All, Config::default())?;
    put_in_place_of(live.as_fd(), session.as_fd())?;
    Ok(session)
}

#[expect(unsafe_code, reason = "rustix's dup3 wants to own what it replaces, and this is fuser's")]
fn put_in_place_of(live: BorrowedFd<'_>, socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: both are open; the socket's number stays fuser's, who closes it, and only what it stands for changes.
    let answer = unsafe { libc::dup3(live.as_raw_fd(), socket.as_raw_fd(), libc::O_CLOEXEC) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
