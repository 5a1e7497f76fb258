//! How the engine is: what fails, and its own report every few seconds.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use eke_cache_shared::frame::{EngineState, Reply, VERSION};
use eke_cache_shared::info;
use redis::{RedisError, Value};

use crate::connect::Connector;
use crate::line::Line;
use crate::lost::To;
use crate::send::reply;

/// Between two reports.
const EVERY: Duration = Duration::from_secs(2);

/// One in so many reports comes over a new connection to a cluster.
const RENEW_EVERY: u64 = 15;

/// What fails or works: each with its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Members of a cluster, as a connection for asks sees them.
    Members(usize),
    /// Connecting.
    Connection(usize),
    /// Asking over a connection.
    Asks(usize),
    /// Offering.
    Offers(usize),
}

/// See the module.
#[derive(Debug, Default)]
pub struct State {
    connected: AtomicU32,
    refused: AtomicU64,
    failing: Mutex<BTreeMap<Source, String>>,
}

impl State {
    /// Asks have a connection.
    pub fn connected(&self) {
        self.connected.fetch_add(1, Ordering::Relaxed);
    }

    /// They have lost it.
    pub fn disconnected(&self) {
        self.connected.fetch_sub(1, Ordering::Relaxed);
    }

    /// True while some have one.
    pub fn is_connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed) > 0
    }

    /// Blocks were not stored.
    pub fn refused(&self, blocks: usize) {
        self.refused.fetch_add(blocks as u64, Ordering::Relaxed);
    }

    /// It failed. Errors of the library have neither password nor content.
    pub fn failed(&self, source: Source, error: &RedisError) {
        self.failing().insert(source, error.to_string());
    }

    /// Members that are lost, as a sentence; `None`: all answer.
    pub fn lost(&self, source: Source, loss: Option<String>) {
        match loss {
            Some(loss) => drop(self.failing().insert(source, loss)),
            None => self.works(source),
        }
    }

    /// It works.
    pub fn works(&self, source: Source) {
        self.failing().remove(&source);
    }

    /// The last report of this process.
    pub fn last(&self) -> EngineState {
        EngineState { connected: 0, ..self.report(&info::Info::default()) }
    }

    fn failing(&self) -> MutexGuard<'_, BTreeMap<Source, String>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, info: &info::Info) -> EngineState {
        EngineState {
            connected: self.connected.load(Ordering::Relaxed),
            memory: info.memory,
            limit: info.limit,
            evicted: info.evicted,
            refused: self.refused.load(Ordering::Relaxed),
            is_unlimited: info.is_unlimited,
            keeps_all: info.keeps_all,
            failed: self.failing().values().next().cloned().unwrap_or_default(),
        }
    }
}

/// Reports to a worker of another version, which may read no other message, that it needs another mount. Returns the same.
pub fn other_version(socket: &OwnedFd, theirs: &str) -> io::Error {
    let failed = format!("eke-cache-shared is {VERSION}, this mount's eke-cache {theirs}: mount anew");
    reply(socket, &Reply::Engine(EngineState { failed: failed.clone(), ..EngineState::default() }));
    io::Error::other(failed)
}

/// Starts the thread that reports to the worker.
///
/// # Errors
/// No thread can be started.
pub fn start(connector: &Arc<Connector>, state: &Arc<State>, socket: Arc<OwnedFd>) -> io::Result<()> {
    let (mut line, state) = (Line::new(connector, To::Masters), Arc::clone(state));
    std::thread::Builder::new().name("state".into()).spawn(move || {
        for nth in 1_u64.. {
            let info = ask(&mut line);
            // A new connection learns of members that came or went; then all others are renewed, too.
            line.prepare(nth % RENEW_EVERY == 0);
            reply(&socket, &Reply::Engine(state.report(&info)));
            std::thread::sleep(EVERY);
        }
    })?;
    Ok(())
}

/// The report of all masters that live. A user that may not ask for it (ACL) sees zeros.
fn ask(line: &mut Line) -> info::Info {
    // What keeps it from connecting, asks and offers report.
    let _ = line.connect();
    match line.query_masters(&redis::cmd("INFO")) {
        Some(Ok(answers)) => answers.iter().map(text).map(|text| info::parse(&text)).sum(),
        _ => info::Info::default(),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text.clone(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_works_again_hides_nothing_that_fails() {
        let state = State::default();
        let error = |why: &'static str| RedisError::from((redis::ErrorKind::Io, why));
        let said = || state.report(&info::Info::default()).failed;
        state.failed(Source::Offers(0), &error("full"));
        state.failed(Source::Asks(1), &error("hangs"));
        assert!(said().contains("hangs"), "{}", said());
        state.works(Source::Asks(1));
        assert!(said().contains("full"), "{}", said());
        state.lost(Source::Members(3), Some("10.0.0.1:6379 does not answer".into()));
        assert!(said().contains("10.0.0.1"), "the cause comes first: {}", said());
        state.lost(Source::Members(3), None);
        state.works(Source::Offers(0));
        assert_eq!(said(), "");
    }
}
