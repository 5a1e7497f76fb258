//! File handles: they select the backing descriptor for an fsync(2).
//!
//! The users of a node share its backing descriptors. But the kernel reports a writeback error once to each open file
//! description, so the first fsync(2) on a shared one would take it from the others. Therefore each open for writing has its
//! own description; the first one uses the node's. An open for reading gets one when it calls fsync(2): a new description
//! has every error that nobody has received yet.
//!
//! A mark in the handle says that its reads and writes are not through the kernel's pages: reads must not use stored blocks, and writes are
//! synced here. Nothing else depends on a handle. A handle of a dead worker selects the node's descriptor.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use fuser::FileHandle;
use rustix::fs::OFlags;
use rustix::time::{ClockId, clock_gettime};

use crate::backing::{File, OF_READERS, at, is_within};
use crate::sync::lock;

/// The node's own descriptor.
pub(super) const OF_NODE: FileHandle = FileHandle(0);
/// Opened for reading.
pub(super) const READER: FileHandle = FileHandle(1);

/// The mark of [`past_store`]. The other numbers are below it.
const PAST_STORE: u64 = 1 << 63;

/// The same handle for an open whose reads must not use stored blocks.
pub(super) fn past_store(handle: FileHandle) -> FileHandle {
    FileHandle(handle.0 | PAST_STORE)
}

/// True if it is such a handle.
pub(super) fn is_past_store(handle: FileHandle) -> bool {
    handle.0 & PAST_STORE != 0
}

/// The handle without the mark.
pub(super) fn of_file(handle: FileHandle) -> FileHandle {
    FileHandle(handle.0 & !PAST_STORE)
}

/// Handles that no worker gave before.
#[derive(Debug)]
pub(super) struct Numbers(AtomicU64);

impl Default for Numbers {
    /// They begin with the time since boot.
    fn default() -> Self {
        let now = clock_gettime(ClockId::Boottime);
        let nanos = now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs();
        Self(AtomicU64::new(nanos.max(READER.0 + 1)))
    }
}

impl Numbers {
    /// The next.
    pub fn another(&self) -> FileHandle {
        FileHandle(self.0.fetch_add(1, Relaxed))
    }
}

/// The descriptors of handles that have their own.
#[derive(Debug, Default)]
pub(super) struct Handles {
    numbers: Numbers,
    own: Mutex<HashMap<u64, Arc<OwnedFd>>>,
}

impl Handles {
    fn own(&self) -> MutexGuard<'_, HashMap<u64, Arc<OwnedFd>>> {
        lock(&self.own)
    }

    /// A handle for one more open of this file for writing. If it gets no descriptor, the node's handle.
    pub fn another(&self, file: &File) -> FileHandle {
        let Some(fd) = description(file.as_fd()).ok().filter(|fd| is_within(fd, OF_READERS)) else {
            return OF_NODE;
        };
        let handle = self.numbers.another();
        self.own().insert(handle.0, Arc::new(fd));
        handle
    }

    /// The handle's own descriptor, if it has one.
    pub fn get(&self, handle: FileHandle) -> Option<Arc<OwnedFd>> {
        self.own().get(&of_file(handle).0).map(Arc::clone)
    }

    /// Closes the handle.
    pub fn release(&self, handle: FileHandle) {
        let closed = self.own().remove(&of_file(handle).0);
        drop(closed);
    }
}

/// A new open file description, which has every error that nobody received. fsync(2) needs no write permission.
///
/// # Errors
/// Those of openat(2).
pub(super) fn description(file: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    at::reopen(file, OFlags::RDONLY).or_else(|_| at::reopen(file, OFlags::WRONLY))
}
