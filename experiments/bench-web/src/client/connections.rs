//! All connections of an experiment's clients, to close them in the middle of a reply.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The connections.
#[derive(Debug, Default)]
pub struct Connections {
    is_over: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

impl Connections {
    /// Adds one.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn add(&self, stream: &TcpStream) -> std::io::Result<()> {
        lock(&self.streams).push(stream.try_clone()?);
        Ok(())
    }

    /// Whether they were closed: a client's error is a consequence of it.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Closes all.
    pub fn close(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        for stream in lock(&self.streams).iter() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Locks, also after a panic: the data behind the clients' locks is valid at any moment.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
