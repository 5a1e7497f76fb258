//! Descriptors that the other end of a Unix socket passes (SCM_RIGHTS, unix(7)).
//!
//! Who reads them, or closes a socket in which they wait, drops them, and whoever drops the last reference of a file closes it. That can take as long as another
//! user likes: a TCP socket with SO_LINGER, a file with unwritten pages on a FUSE mount that does not answer. So a process that serves other users must not even
//! drop them.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

/// From `asm-generic/socket.h`, Linux 6.16.
const SO_PASSRIGHTS: i32 = 83;

/// Has the kernel refuse descriptors to the other end of this socket, and to the clients of this listener (EPERM).
///
/// # Errors
/// ENOPROTOOPT before Linux 6.16.
#[expect(unsafe_code, reason = "rustix does not have SO_PASSRIGHTS yet")]
pub fn refuse(socket: impl AsFd) -> io::Result<()> {
    let off: libc::c_int = 0;
    let length = libc::socklen_t::try_from(size_of_val(&off)).map_err(io::Error::other)?;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `off` outlives the call, and `length` is its size.
    match unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, SO_PASSRIGHTS, (&raw const off).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// What was read from a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// So many bytes. 0: the other end has closed, or there was no room.
    Bytes(usize),
    /// Nothing: descriptors come with these bytes.
    Descriptors,
}

/// Reads at most `buffer`, and no descriptors, if out-of-band bytes are in line (SO_OOBINLINE). Only one thread may read from a socket.
///
/// # Errors
/// EAGAIN if nothing has arrived on a socket that does not block.
pub fn read(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<Next> {
    let mut into = [IoSliceMut::new(buffer)];
    let seen = recvmsg(&socket, &mut into, &mut RecvAncillaryBuffer::default(), RecvFlags::PEEK)?;
    // Without room for them, this is how the kernel reports them.
    if seen.flags.contains(ReturnFlags::CTRUNC) {
        return Ok(Next::Descriptors);
    }
    match seen.bytes {
        // A read of no bytes would take descriptors, too.
        0 => Ok(Next::Bytes(0)),
        count => Ok(Next::Bytes(rustix::io::read(socket, &mut buffer[..count])?)),
    }
}

/// Has the other end send no more, and reads what it has sent. Returns whether descriptors wait, which only another process may drop.
pub fn are_left(connection: &UnixStream) -> bool {
    let _ = connection.shutdown(Shutdown::Read);
    let mut buffer = [0; 4096];
    loop {
        match read(connection, &mut buffer) {
            Ok(Next::Bytes(1..)) => {}
            Ok(Next::Bytes(0)) => return false,
            Ok(Next::Descriptors) => return true,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
}

/// At most so many sockets go to a process.
pub const MOST_OF_A_PROCESS: usize = 32;
/// The process waits until this one has no copy any more, and then is killed: an exit does not linger.
const PROCESS: [&str; 3] = ["/bin/sh", "-c", "read -r end; kill -KILL $$"];

/// Starts a process that closes the first [`MOST_OF_A_PROCESS`] sockets, and drops them here. It ends at once, unless what it closes hangs.
///
/// # Errors
/// The process cannot be started: all sockets are still in `sockets`.
pub fn close_elsewhere<S: AsFd>(sockets: &mut Vec<S>) -> io::Result<Child> {
    // What is sent keeps the sockets open until the last copy of `there` is closed: that of the process.
    let (here, there) = UnixStream::pair()?;
    let now = sockets.len().min(MOST_OF_A_PROCESS);
    send(&here, &sockets[..now])?;
    let mut command = Command::new(PROCESS[0]);
    command.args(&PROCESS[1..]).env_clear().stdin(Stdio::piped()).stderr(Stdio::null());
    let mut process = command.stdout(OwnedFd::from(there)).spawn()?;
    drop(command);
    sockets.drain(..now);
    // Now it ends.
    drop(process.stdin.take());
    Ok(process)
}

fn send<S: AsFd>(here: &UnixStream, sockets: &[S]) -> io::Result<()> {
    let descriptors: Vec<BorrowedFd<'_>> = sockets.iter().map(AsFd::as_fd).collect();
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_OF_A_PROCESS))];
    let mut control = SendAncillaryBuffer::new(&mut room);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    sendmsg(here, &[IoSlice::new(b"x")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use eke_testkit::passed::pass;
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn descriptors_are_seen_and_not_read() {
        let (mut there, mut here) = UnixStream::pair().unwrap();
        there.write_all(b"abc").unwrap();
        assert_eq!(read(&here, &mut []).unwrap(), Next::Bytes(0));
        assert_eq!(read(&here, &mut [0; 2]).unwrap(), Next::Bytes(2));
        assert_eq!(read(&here, &mut [0; 10]).unwrap(), Next::Bytes(1));
        assert_eq!(pass(&there, &there, SendFlags::empty()), Ok(1));
        assert_eq!(read(&here, &mut [0; 10]).unwrap(), Next::Descriptors);
        assert_eq!(read(&here, &mut [0; 10]).unwrap(), Next::Descriptors, "they are still there");
        drop(there);
        here.read_exact(&mut [0]).unwrap();
        assert_eq!(read(&here, &mut [0; 10]).unwrap(), Next::Bytes(0));
    }

    #[test]
    fn another_process_drops_them() {
        let (mut there, here) = UnixStream::pair().unwrap();
        assert!(!are_left(&here));
        let (there_too, here_too) = UnixStream::pair().unwrap();
        let (mut end, other_end) = UnixStream::pair().unwrap();
        assert_eq!(pass(&there_too, &other_end, SendFlags::empty()), Ok(1));
        drop(other_end);
        assert!(are_left(&here_too));
        let mut sockets = vec![here, here_too];
        let mut process = close_elsewhere(&mut sockets).unwrap();
        assert!(sockets.is_empty());
        process.wait().unwrap();
        assert_eq!(end.read(&mut [0]).unwrap(), 0, "nobody has the other end");
        assert_eq!(there.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_byte_out_of_band_hides_no_descriptor() {
        let (there, here) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        rustix::net::sockopt::set_socket_oobinline(&here, true).unwrap();
        // Linux before 5.15 has none on Unix sockets, and some kernels have no descriptors with them.
        if pass(&there, &there, SendFlags::OOB).is_ok() {
            let next = read(&here, &mut [0; 10]).unwrap();
            assert!([Next::Descriptors, Next::Bytes(1)].contains(&next), "{next:?}");
        }
    }

    #[test]
    fn the_kernel_refuses_them_where_it_can() {
        let (there, here) = UnixStream::pair().unwrap();
        let sent = refuse(&here).map(|()| pass(&there, &there, SendFlags::empty()));
        match sent {
            Ok(sent) => assert_eq!(sent, Err(Errno::PERM)),
            Err(e) => assert_eq!(e.raw_os_error(), Some(libc::ENOPROTOOPT)),
        }
    }
}
