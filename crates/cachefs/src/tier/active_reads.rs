//! The number of concurrent reads of the backing file.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The number of reads of the backing file under way.
#[derive(Debug, Default)]
pub(super) struct ActiveReads(AtomicU32);

/// One of them, until it is dropped.
pub(super) struct ActiveRead<'a> {
    all: &'a ActiveReads,
    /// The number of reads when it began, itself included.
    pub count: u32,
}

impl ActiveReads {
    /// How many are under way.
    pub fn count(&self) -> u32 {
        self.0.load(Relaxed)
    }

    /// Counts a read that begins.
    pub fn begin(&self) -> ActiveRead<'_> {
        ActiveRead { all: self, count: self.0.fetch_add(1, Relaxed) + 1 }
    }
}

impl Drop for ActiveRead<'_> {
    fn drop(&mut self) {
        self.all.0.fetch_sub(1, Relaxed);
    }
}
