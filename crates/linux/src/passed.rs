//! Descriptors that the other end of a Unix socket passes (SCM_RIGHTS, unix(7)).
//!
//! Who reads them, or closes a socket in which they wait, drops them, and whoever drops the last reference of a file closes it. That can take as long as another
//! user likes: a TCP socket with SO_LINGER, a file with unwritten pages on a FUSE mount that does not answer. So a process that serves other users must not even
//! drop them.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd};

use rustix::net::{RecvAncillaryBuffer, RecvFlags, ReturnFlags, recvmsg};

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

/// What the next bytes of a socket are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// So many bytes, without descriptors. 0: the other end has closed.
    Bytes(usize),
    /// Descriptors come with them.
    Descriptors,
}

/// Reads ahead, at most `buffer`, and takes nothing: what is not read is not dropped. Reading so many bytes afterwards drops no descriptor, if out-of-band bytes
/// are in line (SO_OOBINLINE).
///
/// # Errors
/// EAGAIN if nothing has arrived on a socket that does not block.
pub fn peek(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<Next> {
    let mut into = [IoSliceMut::new(buffer)];
    let got = recvmsg(&socket, &mut into, &mut RecvAncillaryBuffer::default(), RecvFlags::PEEK)?;
    // Without room for them, this is how the kernel reports them.
    Ok(if got.flags.contains(ReturnFlags::CTRUNC) { Next::Descriptors } else { Next::Bytes(got.bytes) })
}

#[cfg(test)]
mod tests {
    use std::io::{IoSlice, Read, Write};
    use std::os::unix::net::UnixStream;

    use rustix::io::Errno;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use super::*;

    fn pass(stream: &UnixStream, flags: SendFlags) -> Result<usize, Errno> {
        let mut room = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut room);
        let passed = [stream.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&passed)));
        sendmsg(stream, &[IoSlice::new(b"x")], &mut control, flags)
    }

    #[test]
    fn descriptors_are_seen_before_they_are_read() {
        let (mut there, mut here) = UnixStream::pair().unwrap();
        there.write_all(b"abc").unwrap();
        assert_eq!(peek(&here, &mut [0; 2]).unwrap(), Next::Bytes(2));
        assert_eq!(peek(&here, &mut [0; 10]).unwrap(), Next::Bytes(3));
        here.read_exact(&mut [0; 3]).unwrap();
        assert_eq!(pass(&there, SendFlags::empty()), Ok(1));
        assert_eq!(peek(&here, &mut [0; 10]).unwrap(), Next::Descriptors);
        assert_eq!(peek(&here, &mut [0; 10]).unwrap(), Next::Descriptors, "they are still there");
        drop(there);
        here.read_exact(&mut [0]).unwrap();
        assert_eq!(peek(&here, &mut [0; 10]).unwrap(), Next::Bytes(0));
    }

    #[test]
    fn a_byte_out_of_band_hides_no_descriptor() {
        let (there, here) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        rustix::net::sockopt::set_socket_oobinline(&here, true).unwrap();
        // Linux before 5.15 has none on Unix sockets, and some kernels have no descriptors with them.
        if pass(&there, SendFlags::OOB).is_ok() {
            let next = peek(&here, &mut [0; 10]).unwrap();
            assert!([Next::Descriptors, Next::Bytes(1)].contains(&next), "{next:?}");
        }
    }

    #[test]
    fn the_kernel_refuses_them_where_it_can() {
        let (there, here) = UnixStream::pair().unwrap();
        let sent = refuse(&here).map(|()| pass(&there, SendFlags::empty()));
        match sent {
            Ok(sent) => assert_eq!(sent, Err(Errno::PERM)),
            Err(e) => assert_eq!(e.raw_os_error(), Some(libc::ENOPROTOOPT)),
        }
    }
}
