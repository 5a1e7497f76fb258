//! The clients: a closed loop on each connection. They run outside the box.
//!
//! - [`reply`]: the head of a reply (pure)
//! - [`connection`]: one request after the other, each complete and checked
//! - [`connections`]: all of them, to close them
//! - here: all connections, and their results

pub mod connection;
pub mod connections;
pub mod reply;

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::connections::{Connections, lock};
use super::content::Content;
use super::error::{Error, Result};
use super::requests::Sequence;

/// The stack of a connection's thread. Its buffers are on the heap.
pub const STACK: usize = 256 << 10;

/// The clients' load.
#[derive(Debug)]
pub struct Load {
    /// The server's address.
    pub address: SocketAddr,
    /// The number of connections.
    pub connections: usize,
    /// The pause after each reply.
    pub think: Duration,
    /// The sequence of requested files.
    pub sequence: Sequence,
    /// The files.
    pub content: Arc<Content>,
}

/// An answered request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answered {
    /// When the last byte arrived.
    pub at: Instant,
    /// The time from the request to the last byte.
    pub took: Duration,
}

/// State that all clients share.
#[derive(Debug)]
struct ClientState {
    load: Load,
    /// The next request of the sequence.
    next: AtomicU64,
    /// Received bytes of bodies.
    bytes: AtomicU64,
    answered: Mutex<Vec<Answered>>,
    connections: Connections,
    /// The first error.
    error: Mutex<Option<String>>,
}

/// Running clients. Drop ends them.
#[derive(Debug)]
pub struct Clients {
    shared: Arc<ClientState>,
    threads: Vec<JoinHandle<()>>,
}

impl Clients {
    /// Connects all clients and starts them.
    ///
    /// # Errors
    /// A connection or a thread cannot be made.
    pub fn start(load: Load) -> Result<Self> {
        let connections = load.connections;
        let shared = Arc::new(ClientState {
            load,
            next: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            answered: Mutex::default(),
            connections: Connections::default(),
            error: Mutex::default(),
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
        shared.connections.add(&stream)?;
        let client = std::thread::Builder::new().name("client".to_owned()).stack_size(STACK);
        self.threads.push(client.spawn(move || shared.work(stream))?);
        Ok(())
    }

    /// The received bytes of bodies so far.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// The requests answered between two moments.
    pub fn answered(&self, from: Instant, to: Instant) -> Vec<Answered> {
        let answered = lock(&self.shared.answered);
        answered.iter().filter(|a| (from..to).contains(&a.at)).copied().collect()
    }

    /// Checks that no client has failed.
    ///
    /// # Errors
    /// A client got a wrong reply.
    pub fn check(&self) -> Result<()> {
        lock(&self.shared.error).clone().map_or(Ok(()), |error| Err(Error::Client(error)))
    }

    /// Closes all connections, also in the middle of a reply.
    pub fn end(&mut self) {
        self.shared.connections.close();
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

impl ClientState {
    /// Serves one connection to its end.
    fn work(&self, stream: TcpStream) {
        let mut connection = connection::Connection::new(stream);
        while !self.connections.is_over() {
            if let Err(error) = self.one(&mut connection) {
                // An error after the stop is a consequence of it.
                if !self.connections.is_over() {
                    lock(&self.error).get_or_insert(error);
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
        let Some(spec) = content.files.get(number) else { return Err("has no file to request".to_owned()) };
        let begun = Instant::now();
        let hash = is_sampled(index).then(|| content.properties.hashes.get(number).copied()).flatten();
        connection
            .get(&spec.path, spec.bytes, hash, &self.bytes)
            .map_err(|wrong| format!("requested {} and got {wrong}", spec.path))?;
        let at = Instant::now();
        lock(&self.answered).push(Answered { at, took: at - begun });
        Ok(())
    }
}

/// One of so many replies is hashed. All are counted.
pub const SAMPLED: u64 = 32;

/// Whether the reply to this request of a sequence is hashed.
pub fn is_sampled(index: u64) -> bool {
    index % SAMPLED == 0
}
