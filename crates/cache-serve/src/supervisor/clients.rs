//! Clients of the mount's socket: one line in, one line out.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Instant;

use rustix::net::sockopt::socket_peercred;

use eke_cache_mounts::line::{REQUEST_MOST, message};
use eke_cache_mounts::status::{Refusal, RefusalKind, Request, Response};

/// Clients at a time. Further ones are disconnected.
const MOST: usize = 32;

/// What a client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pending {
    /// Nothing: it may send a request.
    Nothing,
    /// The worker's stats with this number, until this moment.
    WorkerStats(u64, Instant),
    /// The end of the attempt to unmount.
    Unmount,
    /// The end of the warming with this number.
    Warming(u64),
}

/// One connection.
#[derive(Debug)]
pub(super) struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    uid: u32,
    pub(super) pending: Pending,
}

impl Client {
    /// Accepts the next client, if there is one and `others` are not too many.
    pub(super) fn accept(listener: &UnixListener, others: usize) -> Option<Self> {
        let (stream, _) = listener.accept().ok()?;
        stream.set_nonblocking(true).ok()?;
        let uid = socket_peercred(&stream).ok()?.uid.as_raw();
        (others < MOST).then_some(Self { stream, input: Vec::new(), uid, pending: Pending::Nothing })
    }

    pub(super) fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }

    /// The next request; `None` if its line has not arrived yet.
    ///
    /// # Errors
    /// The client is gone, or sends something else.
    pub(super) fn request(&mut self) -> Result<Option<Request>, Gone> {
        let mut piece = [0; 1024];
        match self.stream.read(&mut piece) {
            Ok(0) => return Err(Gone),
            Ok(len) => self.input.extend(&piece[..len]),
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(None),
            Err(_) => return Err(Gone),
        }
        let Some(end) = self.input.iter().position(|b| *b == b'\n') else {
            return if self.input.len() > REQUEST_MOST { Err(Gone) } else { Ok(None) };
        };
        let line: Vec<u8> = self.input.drain(..=end).collect();
        match serde_json::from_slice(&line) {
            Ok(request) => Ok(Some(request)),
            Err(e) => {
                let what = format!("eke-cache does not understand this request: {e}");
                self.answer(&Response::Refused(Refusal { what, kind: RefusalKind::Usage }));
                Ok(None)
            }
        }
    }

    /// Is it root or the user who mounted? Only they may unmount, and have files read into the store.
    pub(super) fn is_owner(&self) -> bool {
        self.uid == 0 || self.uid == rustix::process::geteuid().as_raw()
    }

    /// Sends something before the answer. False: it is gone, or does not read.
    pub(super) fn tell(&mut self, response: &Response) -> bool {
        self.stream.write_all(&message(response)).is_ok()
    }

    /// Sends the answer. A client that does not read loses it.
    pub(super) fn answer(&mut self, response: &Response) {
        self.pending = Pending::Nothing;
        let _ = self.stream.write_all(&message(response));
    }
}

/// The client is disconnected or sends no requests.
#[derive(Debug)]
pub(super) struct Gone;
