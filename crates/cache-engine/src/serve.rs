//! Asks of the worker: a thread and a connection for neighbouring parts of the engine, so that those of a lost node keep no others waiting.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use eke_cache_mounts::engine_url::LIVED;
use eke_cache_shared::frame::{Ask, MESSAGE, Reply};
use eke_cache_shared::key::BlockKey;
use eke_cache_shared::shared::{CONNECTIONS, connection, monotonic_us};
use redis::{RedisError, RedisResult, Value};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::connect::Connector;
use crate::line::Line;
use crate::refusal::{self, is_of_credentials};
use crate::send::reply;
use crate::state::{Source, State};

/// Asks that wait for one connection; readers are fewer.
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
    let threads: Vec<_> =
        (0..CONNECTIONS).map(|n| start(n, connector, state, socket)).collect::<io::Result<_>>()?;
    let mut buffer = vec![0; MESSAGE];
    loop {
        let len = match recv(socket, &mut buffer[..], RecvFlags::empty()) {
            Err(Errno::INTR) => continue,
            // It was closed before it had read every answer: then this end gets ECONNRESET (unix(7)).
            Ok((0, _)) | Err(Errno::CONNRESET) => return Ok(()),
            got => got?.0,
        };
        let Some(ask) = buffer.get(..len).and_then(Ask::decode) else { continue };
        let Some(thread) = threads.get(connection(ask.group.slot())) else { continue };
        if let Err(TrySendError::Full(ask) | TrySendError::Disconnected(ask)) = thread.try_send(ask) {
            reply(socket, &Reply::Failed(ask.id));
        }
    }
}

fn start(
    number: usize,
    connector: &Arc<Connector>,
    state: &Arc<State>,
    socket: &Arc<OwnedFd>,
) -> io::Result<SyncSender<Ask>> {
    let (sender, asks) = sync_channel(QUEUE);
    let (line, state, socket) = (Line::new(connector), Arc::clone(state), Arc::clone(socket));
    let thread = Asking { number, since: Instant::now(), line, state, socket };
    std::thread::Builder::new().name("asks".into()).spawn(move || thread.run(&asks))?;
    Ok(sender)
}

/// A thread with its connection.
struct Asking {
    number: usize,
    since: Instant,
    line: Line,
    state: Arc<State>,
    socket: Arc<OwnedFd>,
}

impl Asking {
    fn run(mut self, asks: &Receiver<Ask>) {
        loop {
            self.connect();
            let first = match asks.recv_timeout(TICK) {
                Ok(ask) => ask,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            self.answer(std::iter::once(first).chain(asks.try_iter().take(AT_ONCE - 1)).collect());
        }
    }

    fn connect(&mut self) {
        let source = Source::Connection(self.number);
        match self.line.connect() {
            Some(Ok(())) => self.state.connected(source),
            Some(Err(e)) => {
                self.state.failed(source, &e);
                // An engine keeps connections whose password has changed.
                let is_alone = !self.state.is_connected() && self.since.elapsed() > LIVED;
                if is_alone && is_of_credentials(&e.to_string()) {
                    self.end();
                }
            }
            None => {}
        }
    }

    /// The supervisor starts another process, which reads the files of passwords and certificates as they are then.
    fn end(&self) -> ! {
        reply(&self.socket, &Reply::Engine(self.state.last()));
        eprintln!(
            "eke-cache-shared: the engine refuses the password or certificate, or its own is refused; the next process reads their files again"
        );
        std::process::exit(3)
    }

    /// Replies to each ask as its answer comes. One whose answer does not come fails alone: the others go on over another connection, once.
    fn answer(&mut self, mut asks: Vec<Ask>) {
        for _ in 0..2 {
            let now = monotonic_us();
            asks.iter().filter(|ask| ask.until_us <= now).for_each(|ask| self.fail(ask));
            asks.retain(|ask| ask.until_us > now);
            asks.drain(..self.query(&asks));
            if asks.is_empty() {
                return;
            }
            self.connect();
        }
        asks.iter().for_each(|ask| self.fail(ask));
    }

    /// Asks until the connection fails. Returns how many asks have a reply.
    fn query(&mut self, asks: &[Ask]) -> usize {
        let commands: Vec<_> = asks.iter().map(command).collect();
        let (mut replied, mut refused) = (0, None);
        let outcome = self.line.query(&commands, |answer| {
            let failed = asks.get(replied).and_then(|ask| pass_on(&self.socket, ask, answer).err());
            replied += 1;
            refused = refused.take().or(failed);
        });
        let lost = match outcome {
            None => return 0,
            Some(outcome) => outcome.err(),
        };
        if let (true, Some(ask)) = (lost.is_some(), asks.get(replied)) {
            self.fail(ask);
            replied += 1;
        }
        let breaks = lost.is_some() || refused.as_ref().is_some_and(|e| refusal::breaks(e.code()));
        match lost.or(refused) {
            Some(e) => self.state.failed(Source::Asks(self.number), &e),
            None if replied > 0 => self.state.works(Source::Asks(self.number)),
            None => {}
        }
        if breaks {
            self.line.drop_connection();
            self.state.disconnected();
        }
        replied
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
