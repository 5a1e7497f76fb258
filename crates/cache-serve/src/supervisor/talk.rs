//! What supervisor and worker say to each other: one JSON object a message, over a pair of SOCK_SEQPACKET sockets.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use eke_cache_mounts::status::{Refusal, WorkerStats};

/// More than all stats need.
const LONGEST: usize = 128 << 10;

/// The supervisor asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ask {
    /// What the worker knows. The number comes back.
    WorkerStats(u64),
}

/// The worker says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Say {
    /// It serves, but for what these sentences say.
    Ready(Vec<String>),
    /// It cannot serve, and ends.
    Failed(Refusal),
    /// To `Ask::WorkerStats` with this number.
    WorkerStats(u64, Box<WorkerStats>),
}

/// Two ends.
///
/// # Errors
/// What socketpair(2) answers.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Says something; does not wait for room.
///
/// # Errors
/// What send(2) answers: EPIPE if nobody is there, EAGAIN if the other does not listen.
pub fn tell<T: Serialize>(socket: BorrowedFd<'_>, message: &T) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    send(socket, &bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    Ok(())
}

/// What the other said; none if there is nothing (with `wait`: none ever again).
///
/// # Errors
/// What recv(2) answers; `UnexpectedEof` if the other is gone; bytes that are no message.
pub fn hear<T: DeserializeOwned>(socket: BorrowedFd<'_>, wait: bool) -> io::Result<Option<T>> {
    let mut bytes = vec![0; LONGEST];
    let flags = if wait { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
    loop {
        match recv(socket, &mut bytes[..], flags) {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Ok((0, _)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            got => return Ok(Some(serde_json::from_slice(&bytes[..got?.0])?)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_is_said_is_heard_and_the_end_is_told() {
        let (a, b) = pair().unwrap();
        assert_eq!(hear::<Ask>(b.as_fd(), false).unwrap(), None);
        tell(a.as_fd(), &Ask::WorkerStats(7)).unwrap();
        assert_eq!(hear(b.as_fd(), true).unwrap(), Some(Ask::WorkerStats(7)));
        tell(a.as_fd(), &"something else").unwrap();
        assert!(hear::<Ask>(b.as_fd(), false).is_err());
        drop(a);
        assert_eq!(hear::<Ask>(b.as_fd(), true).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn figures_fit_into_a_message() {
        let (a, b) = pair().unwrap();
        let mut stats = WorkerStats::default();
        stats.admission.reasons =
            vec!["a sentence of eighty bytes or so, with a name of a file in it".repeat(2); 200];
        let say = Say::WorkerStats(1, Box::new(stats));
        tell(a.as_fd(), &say).unwrap();
        assert_eq!(hear(b.as_fd(), false).unwrap(), Some(say));
    }
}
