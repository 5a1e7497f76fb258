//! Asks of the worker: a thread and a connection for each part of the engine, so that a part that fails keeps no other one waiting.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use eke_cache_shared::frame::{Ask, MESSAGE, Reply};
use eke_cache_shared::key::BlockKey;
use eke_cache_shared::shared::{PARTS, monotonic_us, part};
use redis::Value;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::connect::{Connection, Connector};
use crate::send::reply;
use crate::state::State;

/// Asks that wait for one part; readers are fewer.
const QUEUE: usize = 64;

/// Asks in one request.
const AT_ONCE: usize = 16;

/// Between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(500);

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
    let part = Part {
        connector: Arc::clone(connector),
        state: Arc::clone(state),
        socket: Arc::clone(socket),
        connection: None,
        tried: None,
    };
    std::thread::Builder::new().name("asks".into()).spawn(move || part.run(&asks))?;
    Ok(sender)
}

/// The thread of a part.
struct Part {
    connector: Arc<Connector>,
    state: Arc<State>,
    socket: Arc<OwnedFd>,
    connection: Option<Connection>,
    tried: Option<Instant>,
}

impl Part {
    fn run(mut self, asks: &Receiver<Ask>) {
        loop {
            self.connect();
            let first = match asks.recv_timeout(PAUSE) {
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

    /// Connects unless that was tried just now.
    fn connect(&mut self) {
        if self.connection.is_some() || self.tried.is_some_and(|at| at.elapsed() < PAUSE) {
            return;
        }
        self.tried = Some(Instant::now());
        match self.connector.connect() {
            Ok(connection) => {
                self.state.connected();
                self.connection = Some(connection);
            }
            Err(e) => self.state.failed(&e),
        }
    }

    fn answer(&mut self, asks: &[Ask]) {
        let Some(connection) = &mut self.connection else {
            return asks.iter().for_each(|ask| self.fail(ask));
        };
        let commands: Vec<_> = asks.iter().flat_map(commands).collect();
        match connection.query(&commands) {
            Ok(answers) if answers.len() == commands.len() => {
                let mut rest = &answers[..];
                for ask in asks {
                    let (own, others) = rest.split_at(ask.indices.len());
                    self.pass_on(ask, own);
                    rest = others;
                }
            }
            other => {
                if let Err(e) = other {
                    self.state.failed(&e);
                }
                self.connection = None;
                self.state.disconnected();
                asks.iter().for_each(|ask| self.fail(ask));
            }
        }
    }

    fn pass_on(&self, ask: &Ask, values: &[Value]) {
        let blocks = ask.indices.iter().copied().zip(values.iter().map(bytes)).collect();
        reply(&self.socket, &Reply::Blocks(ask.id, blocks));
    }

    fn fail(&self, ask: &Ask) {
        reply(&self.socket, &Reply::Failed(ask.id));
    }
}

fn bytes(value: &Value) -> Option<&[u8]> {
    match value {
        Value::BulkString(bytes) => Some(bytes),
        _ => None,
    }
}

/// One command for each block: the library sends all at once, to whichever node has their slot.
fn commands(ask: &Ask) -> impl Iterator<Item = redis::Cmd> + '_ {
    ask.indices.iter().map(|index| {
        let mut command = redis::cmd("GET");
        command.arg(BlockKey { group: ask.group, index: *index }.text());
        command
    })
}
