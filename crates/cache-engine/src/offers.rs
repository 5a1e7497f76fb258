//! Blocks for the engine.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use eke_cache_shared::breaker::Breaker;
use eke_cache_shared::frame::{MESSAGE, OfferedBlock};
use eke_cache_shared::shared::monotonic_us;
use redis::RedisError;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::connect::{Connector, Request};
use crate::line::Line;
use crate::lost::To;
use crate::refusal::stores_nothing;
use crate::state::{Source, State};

/// Threads: while one waits for a node that does not answer, others go on.
const THREADS: usize = 2;

/// The most bytes in one request.
const AT_ONCE: usize = 512 << 10;

/// Seconds after which the engine forgets a block: versions that are gone are never asked for again.
const FORGET_S: u64 = 7 * 86_400;

/// Starts the threads.
///
/// # Errors
/// No thread can be started.
pub fn start(connector: &Arc<Connector>, state: &Arc<State>, socket: OwnedFd) -> io::Result<()> {
    let socket = Arc::new(socket);
    for number in 0..THREADS {
        let (line, state, socket) =
            (Line::new(connector, To::Masters), Arc::clone(state), Arc::clone(&socket));
        let mut thread =
            Offering { source: Source::Offers(number), line, breaker: Breaker::default(), state };
        std::thread::Builder::new().name("offers".into()).spawn(move || {
            let mut buffer = vec![0; MESSAGE];
            while let Some(requests) = receive(&socket, &mut buffer) {
                thread.pass(&requests);
            }
        })?;
    }
    Ok(())
}

/// A thread with its connection.
struct Offering {
    source: Source,
    line: Line,
    /// Open while the engine stores nothing.
    breaker: Breaker,
    state: Arc<State>,
}

impl Offering {
    /// Sends blocks, and counts those that the engine does not store.
    fn pass(&mut self, requests: &[Request]) {
        if !self.breaker.allows(monotonic_us()) {
            return self.state.refused(requests.len());
        }
        if let Some(Err(e)) = self.line.connect() {
            self.state.failed(self.source, &e);
        }
        let (stored, lost, refusal) = self.send(requests);
        self.line.prepare(false);
        self.state.refused(requests.len() - stored);
        match (lost, refusal) {
            (Some(e), _) => self.state.failed(self.source, &e),
            (_, Some(e)) => self.refuse(&e, stored),
            (None, None) if stored > 0 => {
                self.breaker.succeeded();
                self.state.works(self.source);
            }
            (None, None) => {}
        }
    }

    /// Sends all, also after one whose answer does not come: those after it may be for other members. Returns how many were stored, and the last error of
    /// each kind.
    fn send(&mut self, requests: &[Request]) -> (usize, Option<RedisError>, Option<RedisError>) {
        let (mut rest, mut stored, mut lost, mut refusal) = (requests, 0, None, None);
        while !rest.is_empty() {
            let mut answered = 0;
            let outcome = self.line.query(rest, |answer| {
                answered += 1;
                match answer {
                    Ok(_) => stored += 1,
                    Err(e) => refusal = Some(e),
                }
            });
            let Some(Err(e)) = outcome else { break };
            lost = Some(e);
            rest = rest.get(answered + 1..).unwrap_or_default();
        }
        (stored, lost, refusal)
    }

    /// "No room" and the like: the connection is good. A replica was the master before.
    fn refuse(&mut self, error: &RedisError, stored: usize) {
        self.state.failed(self.source, error);
        if error.code() == Some("READONLY") {
            self.line.drop_connection();
        }
        if stored > 0 {
            self.breaker.succeeded();
        } else if stores_nothing(error.code()) {
            self.breaker.failed(monotonic_us());
        }
    }
}

/// All blocks that wait, at least one. `None`: the worker's end of the socket is closed.
fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Option<Vec<Request>> {
    let (mut requests, mut bytes) = (Vec::new(), 0);
    loop {
        let flags = if requests.is_empty() { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        let len = match recv(socket, &mut *buffer, flags) {
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => return Some(requests),
            Ok((0, _)) | Err(_) => return None,
            Ok((len, _)) => len,
        };
        if let Some(offer) = buffer.get(..len).and_then(OfferedBlock::decode) {
            let mut command = redis::cmd("SET");
            command.arg(offer.key.text()).arg(offer.value).arg("EX").arg(FORGET_S);
            requests.push((offer.key.group.slot(), command));
            bytes += len;
        }
        if bytes >= AT_ONCE {
            return Some(requests);
        }
    }
}
