//! Threads that wait for file systems that do not answer, and which these are.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// So many may wait; then nothing is fetched until one comes back.
pub(crate) const MOST: usize = 4;

/// Shared by all fetches of a scheduler.
#[derive(Debug, Default)]
pub struct StuckWorkers {
    waiting: AtomicUsize,
    barred: Mutex<HashSet<u64>>,
}

impl StuckWorkers {
    /// One more; its mount is not touched again.
    pub(crate) fn add(&self, mount: u64) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.barred.lock().unwrap_or_else(PoisonError::into_inner).insert(mount);
    }

    /// One was answered at last, and ends. Its mount stays barred: it may hang again.
    pub(crate) fn came_back(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many wait now.
    pub fn count(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Are they as many as may be?
    pub(crate) fn is_full(&self) -> bool {
        self.count() >= MOST
    }

    /// The mounts that are not touched again.
    pub(crate) fn barred(&self) -> HashSet<u64> {
        self.barred.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
