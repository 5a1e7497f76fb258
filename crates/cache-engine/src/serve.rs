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

use crate::connect::{Connector, Request};
use crate::line::Line;
use crate::lost::To;
use crate::refusal::{self, is_of_credentials};
use crate::send::reply;
use crate::state::{Source, State};

/// Asks that wait for one connection; readers are fewer.
const QUEUE: usize = 64;

/// Asks in one request. A cluster gets one after the other, so that none is passed on for which nobody waits any more.
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
    let (line, state, socket) = (Line::new(connector, To::Any), Arc::clone(state), Arc::clone(socket));
    let at_once = if connector.is_cluster() { 1 } else { AT_ONCE };
    let thread =
        Asking { number, at_once, since: Instant::now(), line, is_counted: false, loss: None, state, socket };
    std::thread::Builder::new().name("asks".into()).spawn(move || thread.run(&asks))?;
    Ok(sender)
}

/// A thread with its connection.
struct Asking {
    number: usize,
    at_once: usize,
    since: Instant,
    line: Line,
    /// The state knows that it has a connection.
    is_counted: bool,
    /// What of the cluster is lost, as the state knows it.
    loss: Option<String>,
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
            self.answer(std::iter::once(first).chain(asks.try_iter().take(self.at_once - 1)).collect());
        }
    }

    fn connect(&mut self) {
        let source = Source::Connection(self.number);
        match self.line.connect() {
            Some(Ok(())) => self.state.works(source),
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
        self.line.prepare(false);
        self.report();
    }

    /// Reports to the state whether there is a connection, and what of the cluster is lost to it, if that has changed.
    fn report(&mut self) {
        if self.line.is_connected() != self.is_counted {
            self.is_counted = self.line.is_connected();
            if self.is_counted { self.state.connected() } else { self.state.disconnected() }
        }
        if self.line.loss() != self.loss.as_deref() {
            self.loss = self.line.loss().map(str::to_owned);
            self.state.lost(Source::Members(self.number), self.loss.clone());
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

    /// Replies to each ask as its answer comes. One whose answer does not come is passed on once more where another member has its slot, and fails alone
    /// elsewhere: the others go on over another connection, once.
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

    /// Asks until an answer does not come. Returns how many asks have a reply.
    fn query(&mut self, asks: &[Ask]) -> usize {
        let requests: Vec<_> = asks.iter().map(request).collect();
        let (mut replied, mut refused) = (0, None);
        let outcome = self.line.query(&requests, |answer| {
            let failed = asks.get(replied).and_then(|ask| pass_on(&self.socket, ask, answer).err());
            replied += 1;
            refused = refused.take().or(failed);
        });
        let lost = match outcome {
            None => return 0,
            Some(outcome) => outcome.err(),
        };
        if let (true, Some(ask)) = (lost.is_some(), asks.get(replied)) {
            if !self.line.has_route(ask.group.slot()) {
                self.fail(ask);
                replied += 1;
            }
        }
        if refused.as_ref().is_some_and(|e| refusal::breaks(e.code())) {
            self.line.drop_connection();
        }
        match lost.or(refused) {
            Some(e) => self.state.failed(Source::Asks(self.number), &e),
            None if replied > 0 => self.state.works(Source::Asks(self.number)),
            None => {}
        }
        self.report();
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
fn request(ask: &Ask) -> Request {
    let mut command = redis::cmd("MGET");
    ask.indices.iter().for_each(|index| {
        command.arg(BlockKey { group: ask.group, index: *index }.text());
    });
    (ask.group.slot(), command)
}
