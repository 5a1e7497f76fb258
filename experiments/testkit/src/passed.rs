//! Descriptors that one end of a Unix socket passes, and that hang when they are closed.

use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// A connection whose close lingers for longer than any test waits: its other end, which is the second, does not read.
///
/// # Errors
/// There is no network of this machine.
pub fn lingering() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut here = TcpStream::connect(listener.local_addr()?)?;
    let there = listener.accept()?.0;
    here.set_nonblocking(true)?;
    while here.write(&[0; 1 << 16]).is_ok() {}
    set_socket_linger(&here, Some(Duration::from_secs(600)))?;
    Ok((here, there))
}

/// Sends a byte with a descriptor.
///
/// # Errors
/// What sendmsg(2) answers.
pub fn pass(to: &UnixStream, passed: impl AsFd, flags: SendFlags) -> rustix::io::Result<usize> {
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    let descriptors = [passed.as_fd()];
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(to, &[IoSlice::new(b"{")], &mut control, flags | SendFlags::NOSIGNAL)
}
