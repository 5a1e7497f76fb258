//! A node, and its open descriptors.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use super::Inode;
use super::taken::Taken;
use crate::backing::{File, OF_READERS, OF_USERS, is_within};
use crate::sync::lock;

/// The purpose of an open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    Read,
    /// Writing, and reading if the user may.
    Write,
}

/// The reference of this process for moments: a number takes less memory than an [`Instant`].
fn base() -> Instant {
    static BASE: LazyLock<Instant> = LazyLock::new(Instant::now);
    *BASE
}

/// Of [`Node`]'s `case`.
const FOLDS: u8 = 1;
const TELLS_APART: u8 = 2;

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
    /// The last open, in nanoseconds since [`base`], plus one; 0: none.
    opened: AtomicU64,
    /// The opens for writing that this worker has seen.
    writers: AtomicU64,
    /// Open since an earlier worker, which did not tell what for.
    inherited: AtomicBool,
    gone: AtomicBool,
    kept: AtomicBool,
    /// An open with passthrough may have left a mapping (mmap).
    mapped: AtomicBool,
    /// It lies on another mount than the directory's own.
    elsewhere: AtomicBool,
    /// A directory that ignores case, or does not: [`FOLDS`], [`TELLS_APART`]; 0: not known.
    case: AtomicU8,
    /// It seems to be forgotten, and was not requested since.
    pub(super) doubtful: AtomicBool,
    /// Its path was requested since the last scan of the descriptors.
    pub(super) used: AtomicBool,
    descriptors: Mutex<Descriptors>,
}

/// The descriptors of a node.
#[derive(Debug, Default)]
pub struct Descriptors {
    /// With `O_PATH`, or any other.
    pub path: Option<Arc<OwnedFd>>,
    /// Open for reading.
    pub read: Option<Arc<File>>,
    /// Open for writing.
    pub write: Option<Writer>,
    /// Who has them stay.
    taken: Option<Taken>,
}

/// A file that is open for writing.
#[derive(Debug, Clone)]
pub struct Writer {
    /// The file.
    pub file: Arc<File>,
    /// It can be read too.
    pub readable: bool,
}

impl Descriptors {
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

    /// One of them.
    pub(super) fn any(&self) -> Option<Arc<dyn AsFd + Send + Sync>> {
        let path = self.path.clone().map(|path| path as Arc<dyn AsFd + Send + Sync>);
        let file = || self.file(Access::Read).or_else(|| self.file(Access::Write));
        path.or_else(|| Some(file()? as Arc<dyn AsFd + Send + Sync>))
    }
}

impl Node {
    /// A node of an inode, without descriptors.
    pub fn new(number: u64, inode: Inode, generation: u64) -> Self {
        Self {
            number,
            inode,
            generation,
            opens: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            writers: AtomicU64::new(0),
            inherited: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            kept: AtomicBool::new(false),
            mapped: AtomicBool::new(false),
            elsewhere: AtomicBool::new(false),
            case: AtomicU8::new(0),
            doubtful: AtomicBool::new(false),
            used: AtomicBool::new(false),
            descriptors: Mutex::default(),
        }
    }

    /// Its descriptors.
    pub fn descriptors(&self) -> MutexGuard<'_, Descriptors> {
        lock(&self.descriptors)
    }

    /// The same, unless a thread has them: it may wait for the file system.
    pub(super) fn descriptors_at_once(&self) -> Option<MutexGuard<'_, Descriptors>> {
        match self.descriptors.try_lock() {
            Ok(descriptors) => Some(descriptors),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// True if it has lost its last name.
    pub fn is_gone(&self) -> bool {
        self.gone.load(Acquire)
    }

    /// Records that it lost its last name.
    pub fn set_gone(&self) {
        self.gone.store(true, Release);
    }

    /// True if the supervisor keeps a descriptor of it.
    pub fn is_kept(&self) -> bool {
        self.kept.load(Acquire)
    }

    /// Records whether it does; returns the previous value.
    pub fn set_kept(&self, kept: bool) -> bool {
        self.kept.swap(kept, AcqRel)
    }

    /// True if an open with passthrough may have left a mapping, which the kernel does not report.
    pub fn may_be_mapped(&self) -> bool {
        self.mapped.load(Acquire)
    }

    /// Records whether it may have.
    pub fn set_mapped(&self, mapped: bool) {
        self.mapped.store(mapped, Release);
    }

    /// True if it lies on another mount than the directory's own, whose file system may hang alone.
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere.load(Relaxed)
    }

    /// Records whether it does.
    pub(super) fn set_elsewhere(&self, elsewhere: bool) {
        self.elsewhere.store(elsewhere, Relaxed);
    }

    /// True if it is a directory that ignores case. `ask` returns that, or `None` if it cannot be told now, which counts as true. It is
    /// asked until it has told.
    pub fn ignores_case(&self, ask: impl FnOnce() -> Option<bool>) -> bool {
        match self.case.load(Relaxed) {
            FOLDS => true,
            TELLS_APART => false,
            _ => {
                let ignores = ask();
                let known = ignores.map(|ignores| if ignores { FOLDS } else { TELLS_APART });
                known.into_iter().for_each(|known| self.case.store(known, Relaxed));
                ignores.unwrap_or(true)
            }
        }
    }

    /// True if it is open.
    pub fn is_open(&self) -> bool {
        self.opens() > 0
    }

    /// The number of its opens.
    pub fn opens(&self) -> u64 {
        self.opens.load(Acquire)
    }

    /// The time of the last open by this worker.
    pub fn opened_at(&self) -> Option<Instant> {
        let since = self.opened.load(Relaxed).checked_sub(1)?;
        Some(base() + Duration::from_nanos(since))
    }

    /// Records the time of an open.
    pub fn note_opened(&self, now: Instant) {
        let since = now.saturating_duration_since(base()).as_nanos();
        self.opened.store(u64::try_from(since).map_or(u64::MAX, |since| since + 1), Relaxed);
    }

    /// Counts an open or a release; true if it is open now.
    pub fn count_open(&self, opened: bool) -> bool {
        if opened {
            self.opens.fetch_add(1, AcqRel);
            return true;
        }
        let before = self.opens.fetch_update(AcqRel, Acquire, |n| Some(n.saturating_sub(1)));
        let open = before.unwrap_or(0) > 1;
        if !open {
            self.inherited.store(false, Release);
        }
        open
    }

    /// Counts an open or a release that an earlier worker has recorded.
    pub(super) fn inherit_open(&self, opened: bool) {
        let open = self.count_open(opened);
        self.inherited.store(open, Release);
    }

    /// Counts an open for writing or its release, as far as this worker knows them.
    pub fn count_writer(&self, opened: bool) {
        let next = |n: u64| Some(if opened { n + 1 } else { n.saturating_sub(1) });
        let _ = self.writers.fetch_update(AcqRel, Acquire, next);
    }

    /// True if it is open for writing, or may be. A mapping keeps its open.
    pub fn may_be_written(&self) -> bool {
        self.writers.load(Acquire) > 0 || self.inherited.load(Acquire)
    }

    /// Takes over the opens of `old`, which will be released under the same number.
    pub(super) fn take_opens(&self, old: &Self) {
        self.opens.store(old.opens.load(Relaxed), Relaxed);
    }

    /// The file that serves this access, if one is open; otherwise calls `open`. The file stays open while the node is, but one to
    /// be read that can be opened again, by its name or its path, only while few descriptors are in use. The second value is true if
    /// it was opened now.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn file(
        &self,
        access: Access,
        open: impl FnOnce() -> io::Result<Writer>,
    ) -> io::Result<(Arc<File>, bool)> {
        let mut descriptors = self.descriptors();
        if let Some(file) = descriptors.file(access) {
            return Ok((file, false));
        }
        let writer = open()?;
        let file = Arc::clone(&writer.file);
        let (gone, has_path) = (self.is_gone(), descriptors.path.is_some());
        let must_stay = access == Access::Write || (gone && !has_path);
        let eighths = if gone { OF_USERS } else { OF_READERS };
        if self.is_open() && (must_stay || is_within(file.as_fd(), eighths)) {
            descriptors.put(access, writer);
        }
        Ok((file, true))
    }

    /// Closes descriptors that the release of an open for `access` made useless. An open counts itself before it takes one, so the counts are
    /// read with the descriptors locked: one that began meanwhile keeps them. But close(2) may wait for a server, so it comes after that.
    pub fn close_unused(&self, access: Access) {
        let mut descriptors = self.descriptors();
        let closed = if !self.is_open() {
            (descriptors.read.take(), descriptors.write.take())
        } else if access == Access::Write && self.writers.load(Acquire) == 0 {
            (None, descriptors.write.take())
        } else {
            (None, None)
        };
        if descriptors.write.is_none() && !self.is_gone() {
            descriptors.taken = None;
        }
        drop(descriptors);
        drop(closed);
    }
}

impl Descriptors {
    /// From now on they stay for this user, unless they do for another one already.
    pub fn stay_for(&mut self, uid: u32) {
        if self.taken.is_none() {
            self.taken = Taken::by(uid);
        }
    }

    /// Stores a file that was opened for this access.
    pub fn put(&mut self, access: Access, writer: Writer) {
        match access {
            Access::Read => self.read = Some(writer.file),
            Access::Write => self.write = Some(writer),
        }
    }
}
