//! The clients: a closed loop on each connection, outside all boxes. A client whose node fails asks the next one, as behind a load balancer.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use eke_bench_web::Requests;
use eke_bench_web::client::connection::{Connection, OTHER_BYTES, connect};
use eke_bench_web::client::connections::{Connections, lock};
use eke_bench_web::client::{STACK, is_sampled};
use eke_bench_web::content::Content;
use eke_bench_web::requests::Sequence;

use crate::error::{Error, Result};
use crate::net::enter;

/// A node that failed is left alone for so long.
const LEFT_ALONE: Duration = Duration::from_secs(1);
/// The pause after a failure.
const PAUSE: Duration = Duration::from_millis(10);

/// The clients' load.
#[derive(Debug)]
pub struct Load {
    /// Where the clients are.
    pub namespace: PathBuf,
    /// The nodes.
    pub nodes: Vec<SocketAddr>,
    /// Connections to each node.
    pub connections: usize,
    /// The exponent of Zipf's law.
    pub exponent: f64,
    /// The files.
    pub content: Arc<Content>,
    /// Whether all replies are compared with their files' hashes.
    pub compare_all: bool,
}

/// An answered request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answered {
    /// When the last byte arrived.
    pub at: Instant,
    /// The time from the first attempt to the last byte.
    pub took: Duration,
    /// The file's size.
    pub bytes: u64,
}

#[derive(Debug)]
struct ClientState {
    load: Load,
    sequence: Sequence,
    next: AtomicU64,
    bytes: AtomicU64,
    wrong: AtomicU64,
    answered: Mutex<Vec<Answered>>,
    /// When attempts failed.
    failed: Mutex<Vec<Instant>>,
    /// The last failure.
    why: Mutex<Option<String>>,
    connections: Connections,
}

/// Running clients. Drop ends them.
#[derive(Debug)]
pub struct Clients {
    shared: Arc<ClientState>,
    threads: Vec<JoinHandle<()>>,
}

impl Clients {
    /// Starts all clients.
    ///
    /// # Errors
    /// A thread cannot be made.
    pub fn start(load: Load) -> Result<Self> {
        let sequence = Sequence::new(Requests::Zipf(load.exponent), load.content.files.len());
        let (homes, each) = (load.nodes.len(), load.connections);
        let shared = Arc::new(ClientState {
            load,
            sequence,
            next: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            wrong: AtomicU64::new(0),
            answered: Mutex::default(),
            failed: Mutex::default(),
            why: Mutex::default(),
            connections: Connections::default(),
        });
        let mut clients = Self { shared, threads: Vec::new() };
        for number in 0..homes * each {
            let shared = Arc::clone(&clients.shared);
            let thread = std::thread::Builder::new().name("client".to_owned()).stack_size(STACK);
            let started = thread.spawn(move || Client::new(&shared, number % homes).work());
            clients.threads.push(started.map_err(|e| Error::Client(format!("cannot begin: {e}")))?);
        }
        Ok(clients)
    }

    /// The received bytes of bodies so far.
    pub fn bytes(&self) -> u64 {
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// The replies so far that had other bytes than their files.
    pub fn wrong(&self) -> u64 {
        self.shared.wrong.load(Ordering::Relaxed)
    }

    /// The requests answered between two moments.
    pub fn answered(&self, from: Instant, to: Instant) -> Vec<Answered> {
        lock(&self.shared.answered).iter().filter(|a| (from..to).contains(&a.at)).copied().collect()
    }

    /// When attempts failed.
    pub fn failed(&self) -> Vec<Instant> {
        lock(&self.shared.failed).clone()
    }

    /// The bytes of the different files requested so far.
    pub fn distinct(&self) -> u64 {
        let next = self.shared.next.load(Ordering::Relaxed);
        let files: BTreeSet<usize> = (0..next).map(|index| self.shared.sequence.file(index)).collect();
        files.into_iter().filter_map(|f| self.shared.load.content.files.get(f)).map(|f| f.bytes).sum()
    }

    /// Checks that nothing has failed.
    ///
    /// # Errors
    /// A reply was wrong, or an attempt failed.
    pub fn check(&self) -> Result<()> {
        lock(&self.shared.why).clone().map_or(Ok(()), |why| Err(Error::Client(why)))
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

/// One client, with a connection to each node that it has asked.
struct Client<'a> {
    shared: &'a ClientState,
    home: usize,
    connections: Vec<Option<Connection>>,
    /// Until when a node is left alone.
    left_alone: Vec<Option<Instant>>,
}

impl<'a> Client<'a> {
    fn new(shared: &'a ClientState, home: usize) -> Self {
        let nodes = shared.load.nodes.len();
        let connections = (0..nodes).map(|_| None).collect();
        Self { shared, home, connections, left_alone: vec![None; nodes] }
    }

    fn work(mut self) {
        if let Err(e) = enter(&self.shared.load.namespace) {
            *lock(&self.shared.why) = Some(format!("cannot enter its network: {e}"));
            return;
        }
        while !self.is_over() {
            let index = self.shared.next.fetch_add(1, Ordering::Relaxed);
            self.request(index);
        }
    }

    fn is_over(&self) -> bool {
        self.shared.connections.is_over()
    }

    /// Asks one node after the other until the file is there.
    fn request(&mut self, index: u64) {
        let begun = Instant::now();
        while !self.is_over() {
            let node = self.choose();
            match self.attempt(node, index) {
                Ok(bytes) => {
                    let at = Instant::now();
                    lock(&self.shared.answered).push(Answered { at, took: at - begun, bytes });
                    return;
                }
                // An error after the stop is a consequence of it.
                Err(_) if self.is_over() => return,
                Err(why) => self.fail(node, why),
            }
        }
    }

    /// The home node, or the next one that is not left alone.
    fn choose(&self) -> usize {
        let (nodes, now) = (self.left_alone.len(), Instant::now());
        let in_order = (0..nodes).map(|n| (self.home + n) % nodes);
        let is_used = |n: &usize| self.left_alone[*n].is_none_or(|until| until <= now);
        in_order.into_iter().find(is_used).unwrap_or(self.home)
    }

    /// Returns the file's size.
    fn attempt(&mut self, node: usize, index: u64) -> Result<u64, String> {
        let ClientState { load, sequence, bytes, .. } = self.shared;
        let number = sequence.file(index);
        let spec = load.content.files.get(number).ok_or("has no file to request")?;
        if self.connections[node].is_none() {
            let stream = connect(load.nodes[node]).map_err(|e| format!("cannot connect: {e}"))?;
            self.shared.connections.add(&stream).map_err(|e| format!("cannot connect: {e}"))?;
            self.connections[node] = Some(Connection::new(stream));
        }
        let connection = self.connections[node].as_mut().ok_or("has no connection")?;
        let is_compared = load.compare_all || is_sampled(index);
        let hash = load.content.properties.hashes.get(number).copied().filter(|_| is_compared);
        let got = connection.get(&spec.path, spec.bytes, hash, bytes);
        got.map(|()| spec.bytes).map_err(|wrong| {
            let count = u64::from(wrong == OTHER_BYTES);
            self.shared.wrong.fetch_add(count, Ordering::Relaxed);
            format!("requested {} and got {wrong}", spec.path)
        })
    }

    fn fail(&mut self, node: usize, why: String) {
        let now = Instant::now();
        lock(&self.shared.failed).push(now);
        lock(&self.shared.why).get_or_insert(why);
        self.connections[node] = None;
        self.left_alone[node] = Some(now + LEFT_ALONE);
        std::thread::sleep(PAUSE);
    }
}
