//! The clients: a closed loop on each connection. Outside the box.
//!
//! - [`reply`]: the head of a reply (pure)
//! - [`connection`]: one request after the other, each whole and checked
//! - here: all of them, and what they saw

mod connection;
pub mod reply;

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::content::Content;
use super::error::{Error, Result};
use super::requests::Sequence;

/// What a connection's thread needs of the stack; its buffers are elsewhere.
const STACK: usize = 256 << 10;

/// What clients do.
#[derive(Debug)]
pub struct Load {
    /// Where the server listens.
    pub address: SocketAddr,
    /// How many connections.
    pub connections: usize,
    /// The pause after each reply.
    pub think: Duration,
    /// Which files.
    pub sequence: Sequence,
    /// What they are.
    pub content: Arc<Content>,
}

/// A request that was answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answered {
    /// When its last byte came.
    pub at: Instant,
    /// From asking to the last byte.
    pub took: Duration,
}

/// What all clients share.
#[derive(Debug)]
struct Shared {
    load: Load,
    /// The next request of the sequence.
    next: AtomicU64,
    /// Bytes of bodies that came.
    bytes: AtomicU64,
    over: AtomicBool,
    answered: Mutex<Vec<Answered>>,
    /// Each connection, to end it in the middle.
    streams: Mutex<Vec<TcpStream>>,
    /// What went wrong first.
    wrong: Mutex<Option<String>>,
}

/// Clients at work. They end when it is dropped.
#[derive(Debug)]
pub struct Clients {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Clients {
    /// Connects all, and lets them begin.
    ///
    /// # Errors
    /// A connection or a thread cannot be had.
    pub fn start(load: Load) -> Result<Self> {
        let connections = load.connections;
        let shared = Arc::new(Shared {
            load,
            next: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            over: AtomicBool::new(false),
            answered: Mutex::default(),
            streams: Mutex::default(),
            wrong: Mutex::default(),
        });
        let mut clients = Self { shared, threads: Vec::new() };
        for _ in 0..connections {
            clients.add().map_err(|e| Error::Client(format!("cannot begin: {e}")))?;
        }
        Ok(clients)
    }

    fn add(&mut self) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let stream = connection::connect(shared.load.address)?;
        lock(&shared.streams).push(stream.try_clone()?);
        let client = std::thread::Builder::new().name("client".to_owned()).stack_size(STACK);
        self.threads.push(client.spawn(move || shared.work(stream))?);
        Ok(())
    }

    /// Bytes of bodies that came so far.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// What was answered between two moments.
    pub fn answered(&self, from: Instant, to: Instant) -> Vec<Answered> {
        let answered = lock(&self.shared.answered);
        answered.iter().filter(|a| (from..to).contains(&a.at)).copied().collect()
    }

    /// # Errors
    /// What a client got that it did not ask for.
    pub fn check(&self) -> Result<()> {
        lock(&self.shared.wrong).clone().map_or(Ok(()), |wrong| Err(Error::Client(wrong)))
    }

    /// Ends all connections, also in the middle of a reply.
    pub fn end(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
        for stream in lock(&self.shared.streams).iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for Clients {
    fn drop(&mut self) {
        self.end();
    }
}

/// Every lock here holds plain data that is whole at any moment.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// One connection, to its end.
    fn work(&self, stream: TcpStream) {
        let mut connection = connection::Connection::new(stream);
        while !self.over.load(Ordering::Relaxed) {
            if let Err(wrong) = self.one(&mut connection) {
                // What fails when it is over fails by it.
                if !self.over.load(Ordering::Relaxed) {
                    lock(&self.wrong).get_or_insert(wrong);
                }
                return;
            }
            if !self.load.think.is_zero() {
                std::thread::sleep(self.load.think);
            }
        }
    }

    fn one(&self, connection: &mut connection::Connection) -> Result<(), String> {
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let number = self.load.sequence.file(index);
        let content = &self.load.content;
        let Some(spec) = content.files.get(number) else { return Err("has no file to ask for".to_owned()) };
        let begun = Instant::now();
        let hash = is_sampled(index).then(|| content.seen.hashes.get(number).copied()).flatten();
        connection
            .get(&spec.path, spec.bytes, hash, &self.bytes)
            .map_err(|wrong| format!("asked for {} and got {wrong}", spec.path))?;
        let at = Instant::now();
        lock(&self.answered).push(Answered { at, took: at - begun });
        Ok(())
    }
}

/// One reply of so many is hashed; all are counted.
pub const SAMPLED: u64 = 32;

fn is_sampled(index: u64) -> bool {
    index % SAMPLED == 0
}
