//! Threads that wait for file systems that do not answer, and which these are.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// So many may wait; then nothing is fetched until one comes back.
pub(super) const MOST: usize = 4;

/// Shared by all fetches of a fetcher.
#[derive(Debug, Default)]
pub(super) struct LeftBehind {
    waiting: AtomicUsize,
    barred: Mutex<HashSet<u64>>,
}

impl LeftBehind {
    /// One more; its mount is not touched again.
    pub(super) fn add(&self, mount: u64) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.barred.lock().unwrap_or_else(PoisonError::into_inner).insert(mount);
    }

    /// One was answered at last, and ends. Its mount stays barred: it may hang again.
    pub(super) fn came_back(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many wait now.
    pub(super) fn count(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Are they as many as may be?
    pub(super) fn is_full(&self) -> bool {
        self.count() >= MOST
    }

    /// The mounts that are not touched again.
    pub(super) fn barred(&self) -> HashSet<u64> {
        self.barred.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
