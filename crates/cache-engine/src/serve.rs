//! Asks of the worker: a thread and a connection for each part of the engine, so that a part that fails keeps no other one waiting.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use eke_cache_shared::frame::{Ask, MESSAGE, Reply};
use eke_cache_shared::key::BlockKey;
use eke_cache_shared::shared::{PARTS, monotonic_us, part};
use redis::{RedisError, RedisResult, Value};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::connect::Connector;
use crate::line::Line;
use crate::send::reply;
use crate::state::State;

/// Asks that wait for one part; readers are fewer.
const QUEUE: usize = 64;

/// Asks in one request.
const AT_ONCE: usize = 16;

/// Without asks, whether it is time to connect is seen so often.
const TICK: Duration = Duration::from_millis(250);

/// Passes asks on until the worker's end of the socket is closed.
///
/// # Errors
/// No thread can be started, or the socket fails.
pub fn run(connector: &Arc<Connector>, state: &Arc<State>, socket: &Arc<OwnedFd>) -> io::Result<()> {
    let parts: Vec<_> = (0..PARTS).map(|_| start(connector, state, socket)).collect::<io::Result<_>>()?;
    let mut buffer = vec![0; MESSAGE];
    loop {
        let len = match recv(socket, &mut buffer[..], RecvFlags::empty()) {
            Err(Errno::INTR) => continue,
            // It was closed before it had read every answer: then this end gets ECONNRESET (unix(7)).
            Ok((0, _)) | Err(Errno::CONNRESET) => return Ok(()),
            got => got?.0,
        };
        let Some(ask) = buffer.get(..len).and_then(Ask::decode) else { continue };
        let Some(part) = parts.get(part(ask.group.slot())) else { continue };
        if let Err(TrySendError::Full(ask) | TrySendError::Disconnected(ask)) = part.try_send(ask) {
            reply(socket, &Reply::Failed(ask.id));
        }
    }
}

fn start(
    connector: &Arc<Connector>,
    state: &Arc<State>,
    socket: &Arc<OwnedFd>,
) -> io::Result<SyncSender<Ask>> {
    let (sender, asks) = sync_channel(QUEUE);
    let part = Part { line: Line::new(connector), state: Arc::clone(state), socket: Arc::clone(socket) };
    std::thread::Builder::new().name("asks".into()).spawn(move || part.run(&asks))?;
    Ok(sender)
}

/// The thread of a part.
struct Part {
    line: Line,
    state: Arc<State>,
    socket: Arc<OwnedFd>,
}

impl Part {
    fn run(mut self, asks: &Receiver<Ask>) {
        loop {
            self.connect();
            let first = match asks.recv_timeout(TICK) {
                Ok(ask) => ask,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let more = asks.try_iter().take(AT_ONCE - 1);
            let now = monotonic_us();
            let (asks, late): (Vec<_>, Vec<_>) =
                std::iter::once(first).chain(more).partition(|ask| ask.until_us > now);
            late.iter().for_each(|ask| self.fail(ask));
            if !asks.is_empty() {
                self.answer(&asks);
            }
        }
    }

    fn connect(&mut self) {
        match self.line.connect() {
            Some(Ok(())) => self.state.connected(),
            Some(Err(e)) => self.state.failed(&e),
            None => {}
        }
    }

    /// Replies to each ask as its answer comes. After a failure the others fail at once, and the connection is made anew.
    fn answer(&mut self, asks: &[Ask]) {
        let commands: Vec<_> = asks.iter().map(command).collect();
        let (mut answered, mut refusal) = (0, None);
        let outcome = self.line.query(&commands, |answer| {
            let failed = asks.get(answered).and_then(|ask| pass_on(&self.socket, ask, answer).err());
            answered += 1;
            refusal = refusal.take().or(failed);
        });
        asks.iter().skip(answered).for_each(|ask| self.fail(ask));
        if let Some(Err(e)) = outcome.map(|done| done.and(refusal.map_or(Ok(()), Err))) {
            self.line.drop_connection();
            self.state.failed(&e);
            self.state.disconnected();
        }
    }

    fn fail(&self, ask: &Ask) {
        reply(&self.socket, &Reply::Failed(ask.id));
    }
}

fn pass_on(socket: &OwnedFd, ask: &Ask, answer: RedisResult<Value>) -> Result<(), RedisError> {
    let values = match answer {
        Ok(Value::Array(values)) if values.len() == ask.indices.len() => values,
        other => {
            reply(socket, &Reply::Failed(ask.id));
            let strange = || RedisError::from((redis::ErrorKind::Parse, "an answer of another command"));
            return Err(other.err().unwrap_or_else(strange));
        }
    };
    let blocks = ask.indices.iter().copied().zip(values.iter().map(bytes)).collect();
    reply(socket, &Reply::Blocks(ask.id, blocks));
    Ok(())
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}

/// One command for all blocks, which have one slot: so a node that hangs is waited for once.
fn command(ask: &Ask) -> redis::Cmd {
    let mut command = redis::cmd("MGET");
    ask.indices.iter().for_each(|index| {
        command.arg(BlockKey { group: ask.group, index: *index }.text());
    });
    command
}
