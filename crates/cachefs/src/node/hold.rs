//! One node, and the descriptors that are open for it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::Inode;
use crate::backing::File;

/// What a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// To read.
    Read,
    /// To write, and to read if its user may.
    Write,
}

/// A moment of this process that others are told by: a number takes less memory than an [`Instant`].
fn base() -> Instant {
    static BASE: LazyLock<Instant> = LazyLock::new(Instant::now);
    *BASE
}

/// A node.
#[derive(Debug)]
pub struct Node {
    /// Its number.
    pub number: u64,
    /// The backing inode.
    pub inode: Inode,
    /// Differs from that of the inode that had the number before.
    pub generation: u64,
    opens: AtomicU64,
    /// When it was opened last, in nanoseconds since [`base`], and one more.
    opened: AtomicU64,
    /// Of the opens, those to write that this worker saw.
    writers: AtomicU64,
    gone: AtomicBool,
    kept: AtomicBool,
    /// Seems forgotten, and nobody asked for it since.
    pub(super) doubtful: AtomicBool,
    /// Its path was asked for since the descriptors were last gone through.
    pub(super) used: AtomicBool,
    hold: Mutex<Hold>,
}

/// The descriptors of a node.
#[derive(Debug, Default)]
pub struct Hold {
    /// With `O_PATH`, or any other.
    pub path: Option<Arc<OwnedFd>>,
    /// Open to read.
    pub read: Option<Arc<File>>,
    /// Open to write.
    pub write: Option<Writer>,
}

/// A file that is open to write.
#[derive(Debug, Clone)]
pub struct Writer {
    /// The file.
    pub file: Arc<File>,
    /// It can be read too.
    pub readable: bool,
}

impl Hold {
    /// The file that serves this access, if one is open.
    pub fn file(&self, access: Access) -> Option<Arc<File>> {
        let written = |w: &Writer| Arc::clone(&w.file);
        match access {
            Access::Read => {
                self.read.clone().or_else(|| self.write.as_ref().filter(|w| w.readable).map(written))
            }
            Access::Write => self.write.as_ref().map(written),
        }
    }
}

impl Node {
    /// Of an inode, without descriptors.
    pub fn new(number: u64, inode: Inode, generation: u64) -> Self {
        Self {
            number,
            inode,
            generation,
            opens: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            writers: AtomicU64::new(0),
            gone: AtomicBool::new(false),
            kept: AtomicBool::new(false),
            doubtful: AtomicBool::new(false),
            used: AtomicBool::new(false),
            hold: Mutex::default(),
        }
    }

    /// Its descriptors.
    pub fn hold(&self) -> MutexGuard<'_, Hold> {
        self.hold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has it no name any more?
    pub fn is_gone(&self) -> bool {
        self.gone.load(Acquire)
    }

    /// It lost its last name.
    pub fn set_gone(&self) {
        self.gone.store(true, Release);
    }

    /// Does the supervisor keep a descriptor of it?
    pub fn is_kept(&self) -> bool {
        self.kept.load(Acquire)
    }

    /// Notes that it does, or does no more; returns what was before.
    pub fn set_kept(&self, kept: bool) -> bool {
        self.kept.swap(kept, AcqRel)
    }

    /// Is it open?
    pub fn is_open(&self) -> bool {
        self.opens() > 0
    }

    /// How often it is open.
    pub fn opens(&self) -> u64 {
        self.opens.load(Acquire)
    }

    /// When it was opened last, if by this worker.
    pub fn opened_at(&self) -> Option<Instant> {
        let since = self.opened.load(Relaxed).checked_sub(1)?;
        Some(base() + Duration::from_nanos(since))
    }

    /// It is being opened.
    pub fn note_opened(&self, now: Instant) {
        let since = now.saturating_duration_since(base()).as_nanos();
        self.opened.store(u64::try_from(since).map_or(u64::MAX, |since| since + 1), Relaxed);
    }

    /// Counts an open, or a release; returns whether it is open now.
    pub fn count_open(&self, opened: bool) -> bool {
        if opened {
            self.opens.fetch_add(1, AcqRel);
            return true;
        }
        let before = self.opens.fetch_update(AcqRel, Acquire, |n| Some(n.saturating_sub(1)));
        before.unwrap_or(0) > 1
    }

    /// Counts an open to write, or the release of one; returns whether any is left that this worker knows.
    pub fn count_writer(&self, opened: bool) -> bool {
        if opened {
            self.writers.fetch_add(1, AcqRel);
            return true;
        }
        let before = self.writers.fetch_update(AcqRel, Acquire, |n| Some(n.saturating_sub(1)));
        before.unwrap_or(0) > 1
    }

    /// What is open of `old` will be released under the same number.
    pub(super) fn take_opens(&self, old: &Self) {
        self.opens.store(old.opens.load(Relaxed), Relaxed);
    }

    /// The file that serves this access if one is open; else `open`s one, which stays while the node is open. The second
    /// is whether it was opened now.
    ///
    /// # Errors
    /// What `open` answers.
    pub fn file(
        &self,
        access: Access,
        open: impl FnOnce() -> io::Result<Writer>,
    ) -> io::Result<(Arc<File>, bool)> {
        let mut hold = self.hold();
        if let Some(file) = hold.file(access) {
            return Ok((file, false));
        }
        let writer = open()?;
        let file = Arc::clone(&writer.file);
        if self.is_open() {
            hold.put(access, writer);
        }
        Ok((file, true))
    }

    /// Closes what a release made useless.
    pub fn close_unused(&self, written: bool) {
        let mut hold = self.hold();
        if !self.is_open() {
            hold.read = None;
            hold.write = None;
        } else if !written {
            hold.write = None;
        }
    }
}

impl Hold {
    /// A file that was opened for this access.
    pub fn put(&mut self, access: Access, writer: Writer) {
        match access {
            Access::Read => self.read = Some(writer.file),
            Access::Write => self.write = Some(writer),
        }
    }
}
