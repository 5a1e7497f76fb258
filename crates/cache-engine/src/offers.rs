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

use crate::connect::Connector;
use crate::line::Line;
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
        let (line, state, socket) = (Line::new(connector), Arc::clone(state), Arc::clone(&socket));
        let mut thread =
            Offering { source: Source::Offers(number), line, breaker: Breaker::default(), state };
        std::thread::Builder::new().name("offers".into()).spawn(move || {
            let mut buffer = vec![0; MESSAGE];
            while let Some(commands) = receive(&socket, &mut buffer) {
                thread.pass(&commands);
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
    fn pass(&mut self, commands: &[redis::Cmd]) {
        if !self.breaker.allows(monotonic_us()) {
            return self.state.refused(commands.len());
        }
        if let Some(Err(e)) = self.line.connect() {
            self.state.failed(self.source, &e);
        }
        let (mut stored, mut refusal) = (0, None);
        let outcome = self.line.query(commands, |answer| match answer {
            Ok(_) => stored += 1,
            Err(e) => refusal = Some(e),
        });
        self.state.refused(commands.len() - stored);
        match (outcome, refusal) {
            (Some(Err(e)), _) => self.state.failed(self.source, &e),
            (_, Some(e)) => self.refuse(&e, stored),
            (Some(Ok(())), None) => {
                self.breaker.succeeded();
                self.state.works(self.source);
            }
            (None, None) => {}
        }
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
fn receive(socket: &OwnedFd, buffer: &mut [u8]) -> Option<Vec<redis::Cmd>> {
    let (mut commands, mut bytes) = (Vec::new(), 0);
    loop {
        let flags = if commands.is_empty() { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
        let len = match recv(socket, &mut *buffer, flags) {
            Err(Errno::INTR) => continue,
            Err(Errno::AGAIN) => return Some(commands),
            Ok((0, _)) | Err(_) => return None,
            Ok((len, _)) => len,
        };
        if let Some(offer) = buffer.get(..len).and_then(OfferedBlock::decode) {
            let mut command = redis::cmd("SET");
            command.arg(offer.key.text()).arg(offer.value).arg("EX").arg(FORGET_S);
            commands.push(command);
            bytes += len;
        }
        if bytes >= AT_ONCE {
            return Some(commands);
        }
    }
}
