//! How the engine is: what failed last, and its own report every few seconds.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use eke_cache_shared::frame::{EngineState, Reply};
use eke_cache_shared::info;
use redis::{RedisError, Value};

use crate::connect::Connector;
use crate::line::Line;
use crate::send::reply;

/// Between two reports.
const EVERY: Duration = Duration::from_secs(2);

/// See the module.
#[derive(Debug, Default)]
pub struct State {
    connected: AtomicU32,
    failed: Mutex<String>,
}

impl State {
    /// A part has a connection.
    pub fn connected(&self) {
        self.connected.fetch_add(1, Ordering::Relaxed);
    }

    /// A part has lost it.
    pub fn disconnected(&self) {
        self.connected.fetch_sub(1, Ordering::Relaxed);
    }

    /// Something failed. Errors of the library have neither password nor content.
    pub fn failed(&self, error: &RedisError) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = error.to_string();
    }

    fn report(&self, info: &info::Info) -> EngineState {
        EngineState {
            connected: self.connected.load(Ordering::Relaxed),
            memory: info.memory,
            limit: info.limit,
            evicted: info.evicted,
            failed: self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// Starts the thread that reports to the worker.
///
/// # Errors
/// No thread can be started.
pub fn start(connector: &Arc<Connector>, state: &Arc<State>, socket: Arc<OwnedFd>) -> io::Result<()> {
    let (mut line, state) = (Line::new(connector), Arc::clone(state));
    std::thread::Builder::new().name("state".into()).spawn(move || {
        loop {
            let info = ask(&mut line);
            reply(&socket, &Reply::Engine(state.report(&info)));
            std::thread::sleep(EVERY);
        }
    })?;
    Ok(())
}

/// The report of all masters. A user that may not ask for it (ACL) sees zeros.
fn ask(line: &mut Line) -> info::Info {
    // What keeps it from connecting, asks and offers report.
    let _ = line.connect();
    match line.query_all(&redis::cmd("INFO")) {
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
