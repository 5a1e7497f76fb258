//! Messages between supervisor and worker: one JSON object each, over a pair of SOCK_SEQPACKET sockets. And the line of the start.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, socketpair};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use eke_cache_mounts::line::message;
use eke_cache_mounts::status::{Refusal, Start, WarmProgress, WorkerStats};
use eke_cache_policy::aside::Left;

/// The longest message in bytes. Stats need less.
const LONGEST: usize = 128 << 10;

/// A message from the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToWorker {
    /// Send the stats, with this number.
    WorkerStats(u64),
    /// Read all files below this path into the store, under this number.
    Warm(u64, #[serde(with = "eke_model::path_text")] PathBuf),
    /// Nobody waits for the warming with this number any more.
    StopWarming(u64),
    /// Nobody keeps the mount in the directory tree.
    MayLeave,
    /// The mount has this number now.
    ServedBy(u64),
    /// The mount has left the directory tree, or was there no more.
    Left(Left),
    /// It has returned to it, or was there still.
    Returned,
}

/// A message from the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromWorker {
    /// It goes on reading what earlier workers recorded.
    Starts,
    /// It serves. The sentences are warnings.
    Ready(Vec<String>),
    /// It cannot serve, and exits.
    Failed(Refusal),
    /// The answer to `ToWorker::WorkerStats` with this number.
    WorkerStats(u64, Box<WorkerStats>),
    /// How far the warming with this number is.
    Warming(u64, WarmProgress),
    /// It has ended.
    Warmed(u64, WarmProgress),
    /// Does anybody keep the mount in the directory tree?
    MayLeave,
    /// The mount is of no use in the directory tree.
    Leave(Left),
    /// It would be of use again.
    Return,
}

/// The two ends of a channel.
///
/// # Errors
/// What socketpair(2) answers.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?)
}

/// Sends a message; does not wait for room.
///
/// # Errors
/// What send(2) answers: EPIPE if the other end is closed, EAGAIN if its queue is full.
pub fn send<T: Serialize>(socket: BorrowedFd<'_>, message: &T) -> io::Result<()> {
    let bytes = serde_json::to_vec(message)?;
    rustix::net::send(socket, &bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)?;
    Ok(())
}

/// Receives a message. `None`: there is none, and `wait` is false.
///
/// # Errors
/// What recv(2) answers; `UnexpectedEof` if the other end is closed; the bytes are no message.
pub fn receive<T: DeserializeOwned>(socket: BorrowedFd<'_>, wait: bool) -> io::Result<Option<T>> {
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

/// Writes the line of the start for `eke cache mount`. If nobody reads it any more, the mount is served all the same.
pub fn report_start(mut to: &File, start: &Start) {
    let _ = to.write_all(&message(start));
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_sent_message_is_received_and_so_is_the_end() {
        let (a, b) = pair().unwrap();
        assert_eq!(receive::<ToWorker>(b.as_fd(), false).unwrap(), None);
        send(a.as_fd(), &ToWorker::WorkerStats(7)).unwrap();
        assert_eq!(receive(b.as_fd(), true).unwrap(), Some(ToWorker::WorkerStats(7)));
        send(a.as_fd(), &"something else").unwrap();
        assert!(receive::<ToWorker>(b.as_fd(), false).is_err());
        drop(a);
        assert_eq!(receive::<ToWorker>(b.as_fd(), true).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn stats_fit_into_a_message() {
        let (a, b) = pair().unwrap();
        let mut stats = WorkerStats::default();
        stats.admission.reasons =
            vec!["a sentence of eighty bytes or so, with a name of a file in it".repeat(2); 200];
        let message = FromWorker::WorkerStats(1, Box::new(stats));
        send(a.as_fd(), &message).unwrap();
        assert_eq!(receive(b.as_fd(), false).unwrap(), Some(message));
    }
}
