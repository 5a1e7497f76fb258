//! Workers that are stuck on file systems that do not answer.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The most stuck workers; then nothing is read until one returns.
pub(crate) const MOST: usize = 4;

/// Shared by all fetches of a scheduler.
#[derive(Debug, Default)]
pub struct StuckWorkers {
    waiting: AtomicUsize,
    barred: Mutex<HashSet<u64>>,
}

impl StuckWorkers {
    /// Adds a worker; its mount is not used again.
    pub(crate) fn add(&self, mount: u64) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.barred.lock().unwrap_or_else(PoisonError::into_inner).insert(mount);
    }

    /// A worker has returned, and ends. Its mount stays barred, because it may hang again.
    pub(crate) fn worker_returned(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// The number of stuck workers.
    pub fn count(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether the limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.count() >= MOST
    }

    /// The mounts that are not used again.
    pub(crate) fn barred(&self) -> HashSet<u64> {
        self.barred.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
