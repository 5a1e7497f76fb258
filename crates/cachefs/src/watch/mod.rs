//! Changes made in the backing directory by others, told by the kernel (fanotify(7)): what makes a change of an *open* file prompt.
//!
//! ```text
//! the backing file system ──events──> group ──bytes──> events (pure) ──> round: each file once ──> Told
//! ```
//!
//! The whole file system of the backing directory is marked, since a mark for each open file would cost every open two
//! system calls. inotify does not say who made a change; fanotify does, so that this process's own writes are left out.
//! What another worker wrote before this one came to be, or what nobody watched, is one [`Told::Everything`] at the start.
//!
//! Not told: writes through a mapping before the writer's close; changes on other file systems that are mounted inside the
//! directory below; changes that another machine makes to a network file system; a file that has no name any more.
//! `docs/cache-coherence.md` has what follows from that.

pub mod events;
mod group;
mod round;

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use group::Group;
use round::Round;

pub use group::By;

/// A storm of events is at most so many rounds: one each 10 ms. The kernel merges what waits.
const PAUSE: Duration = Duration::from_millis(10);
/// At most so many reads in a round: some more than the queue's 16,384 events need.
const READS: usize = 32;
const BUFFER: usize = 64 << 10;

/// What is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The content of the file with this device and inode number was changed, by another process than this one.
    File {
        /// `st_dev` below.
        dev: u64,
        /// `st_ino` below.
        ino: u64,
    },
    /// The content of any file may have been changed.
    Everything,
}

/// How changes in the backing directory become known; for `status`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// At each open, and of open files within some 10 ms.
    Watched,
    /// At each open only.
    AtOpens {
        /// Why, in words.
        why: String,
    },
}

/// A watch on the file system of one directory.
#[derive(Debug)]
pub struct Watch {
    group: Group,
    /// The process whose changes are not told.
    own: u32,
}

impl Watch {
    /// On the file system that `dir` is on, as precisely as that one allows; changes of the calling process are not told.
    ///
    /// # Errors
    /// The report that says why there is none: the kernel wants `CAP_SYS_ADMIN` for it.
    pub fn new(dir: BorrowedFd<'_>) -> Result<Self, Report> {
        let watch = Self::by(By::Handle, dir).or_else(|_| Self::by(By::Descriptor, dir));
        watch.map_err(|e| Report::AtOpens { why: format!("{e}; a watch needs root (CAP_SYS_ADMIN)") })
    }

    /// The same in one of the two ways: for tests.
    ///
    /// # Errors
    /// What the kernel answers.
    #[doc(hidden)]
    pub fn by(by: By, dir: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(Self { group: Group::new(dir, by)?, own: std::process::id() })
    }

    /// Tells `told` of changes until `stop` is readable or closed at its other end. Begins with [`Told::Everything`]: what
    /// happened before the watch is not known. To be run on a thread of its own: `told` may wait for the kernel, which
    /// may wait for an answer of this process (`FUSE_NOTIFY_INVAL_INODE` waits for pages that are being read).
    ///
    /// # Errors
    /// What ended it before that: events that cannot be understood, or a poll(2) that fails. The last that it told is then
    /// [`Told::Everything`], and changes are seen at opens only.
    pub fn run(&self, stop: BorrowedFd<'_>, mut told: impl FnMut(Told)) -> io::Result<()> {
        told(Told::Everything);
        let mut buffer = vec![0; BUFFER];
        let ended = self.rounds(stop, &mut buffer, &mut told);
        if ended.is_err() {
            told(Told::Everything);
        }
        ended
    }

    fn rounds(&self, stop: BorrowedFd<'_>, buffer: &mut [u8], told: &mut impl FnMut(Told)) -> io::Result<()> {
        loop {
            if readable(&[stop, self.group.events()], None)? {
                return Ok(());
            }
            let mut round = Round::default();
            self.read(buffer, &mut round)?;
            tell(round.files(&self.group), told);
            if readable(&[stop], Some(PAUSE))? {
                return Ok(());
            }
        }
    }

    /// What waits.
    fn read(&self, buffer: &mut [u8], round: &mut Round) -> io::Result<()> {
        for _ in 0..READS {
            match rustix::io::read(self.group.events(), &mut *buffer) {
                Ok(0) | Err(rustix::io::Errno::AGAIN) => return Ok(()),
                Ok(len) => round.take(&buffer[..len], self.own).map_err(io::Error::other)?,
                Err(rustix::io::Errno::INTR) => {}
                // The event is gone, and with it which file it was: no descriptor was free for it, or it could not be opened.
                Err(_) => round.lose(),
            }
        }
        Ok(())
    }
}

fn tell(files: Option<impl IntoIterator<Item = (u64, u64)>>, told: &mut impl FnMut(Told)) {
    match files {
        Some(files) => files.into_iter().for_each(|(dev, ino)| told(Told::File { dev, ino })),
        None => told(Told::Everything),
    }
}

/// Waits until one of them is readable. Is the first?
fn readable(what: &[BorrowedFd<'_>], at_most: Option<Duration>) -> io::Result<bool> {
    let mut polled: Vec<PollFd<'_>> =
        what.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let at_most = at_most.map(|d| Timespec { tv_sec: 0, tv_nsec: i64::from(d.subsec_nanos()) });
    match poll(&mut polled, at_most.as_ref()) {
        Ok(_) => Ok(!polled[0].revents().is_empty()),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}
