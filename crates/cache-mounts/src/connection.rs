//! A connection to a supervisor, which may be another user's.

use std::io::{self, ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::sync::Mutex;

use eke_linux::passed::{self, Next};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_oobinline;

/// Most processes at a time that close connections. Each ends at once, unless what it closes hangs.
const MOST_PROCESSES: usize = 8;
/// Of all connections of this process.
static PROCESSES: Mutex<Vec<Child>> = Mutex::new(Vec::new());

/// A connected socket. This process neither reads nor drops descriptors that the other end passes ([`eke_linux::passed`]).
#[derive(Debug)]
pub struct Connection {
    /// One, until it is dropped.
    sockets: Vec<UnixStream>,
}

impl Connection {
    /// Of a socket that is not connected yet.
    ///
    /// # Errors
    /// What setsockopt(2) answers; `EBUSY` while [`MOST_PROCESSES`] hang.
    pub(crate) fn new(socket: UnixStream) -> io::Result<Self> {
        if passed::refuse(&socket).is_err() {
            // Before Linux 6.16. Out-of-band bytes could hide descriptors.
            set_socket_oobinline(&socket, true)?;
            let mut processes = processes();
            processes.retain_mut(|process| matches!(process.try_wait(), Ok(None)));
            if processes.len() >= MOST_PROCESSES {
                return Err(Errno::BUSY.into());
            }
        }
        Ok(Self { sockets: vec![socket] })
    }

    pub(crate) fn stream(&self) -> io::Result<&UnixStream> {
        self.sockets.first().ok_or_else(|| ErrorKind::NotConnected.into())
    }
}

impl Read for &Connection {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match passed::read(self.stream()?, buffer)? {
            Next::Bytes(count) => Ok(count),
            Next::Descriptors => Err(io::Error::other("it passed descriptors, and eke takes none")),
        }
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.sockets[0].as_fd()
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if !self.sockets.first().is_some_and(passed::are_left) {
            return;
        }
        match passed::close_elsewhere(&mut self.sockets) {
            Ok(process) => processes().push(process),
            // Left open until this process ends, whose exit does not linger.
            Err(_) => std::mem::forget(std::mem::take(&mut self.sockets)),
        }
    }
}

fn processes() -> std::sync::MutexGuard<'static, Vec<Child>> {
    PROCESSES.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use eke_testkit::passed::{lingering, pass};
    use rustix::net::SendFlags;

    use super::*;

    /// As before Linux 6.16. The last reference of what was passed is in the connection.
    fn connection(before: &[u8]) -> (Connection, UnixStream, std::net::TcpStream) {
        let (mut there, here) = UnixStream::pair().unwrap();
        there.write_all(before).unwrap();
        let (passed, other) = lingering().unwrap();
        pass(&there, &passed, SendFlags::empty()).unwrap();
        // Should this be the last reference, a thread lingers, and not the test.
        std::thread::spawn(move || drop(passed)).join().unwrap();
        (Connection { sockets: vec![here] }, there, other)
    }

    /// A close here would take ten minutes.
    #[test]
    fn what_is_passed_is_not_closed_here() {
        for before in [&b""[..], b"{}\n", &[b'x'; 50_000]] {
            let (connection, mut there, _other) = connection(before);
            assert!(!before.is_empty() || (&connection).read(&mut [0; 10]).is_err());
            drop(connection);
            assert_eq!(there.write(b"x").unwrap_err().kind(), ErrorKind::BrokenPipe);
        }
    }

    #[test]
    fn what_is_not_read_is_taken_and_an_end_is_seen() {
        let (mut there, here) = UnixStream::pair().unwrap();
        there.write_all(b"ab").unwrap();
        let connection = Connection { sockets: vec![here] };
        assert_eq!((&connection).read(&mut [0; 1]).unwrap(), 1);
        drop(connection);
        let (there, here) = UnixStream::pair().unwrap();
        drop(there);
        assert_eq!((&Connection { sockets: vec![here] }).read(&mut [0; 1]).unwrap(), 0);
    }
}
