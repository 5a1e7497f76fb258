//! Changes that others make in the backing directory, reported by fanotify(7). So changes of an *open* file become visible
//! promptly.
//!
//! ```text
//! backing file system ──events──> group ──bytes──> events (pure) ──> round: each once ──> Change ──a second later──> again
//! ```
//!
//! The whole file system of the backing directory is marked: a mark for each open file would cost every open two system
//! calls. fanotify reports the process of a change, which inotify does not, so this process's own writes are left out.
//! Changes from before the watch are one [`Change::Everything`] at the start.
//!
//! Not reported: writes through a mapping before the writer's close; changes on other file systems mounted inside the
//! directory; changes that another machine makes on a network file system; files without a name. `docs/cache-coherence.md`
//! has the consequences.

mod again;
pub mod events;
mod group;
mod handles;
mod round;

use std::ffi::OsString;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use again::Again;
use group::Group;
use round::Round;

use crate::backing::{is_local, kernel_is_at_least};
use crate::tier::Coverage;

pub use group::IdentifyBy;

/// A pause between rounds, so that a storm of events is one round per 10 ms. The kernel merges waiting events.
const PAUSE: Duration = Duration::from_millis(10);
/// There is none after a round of more reads: the queue was filling.
const FEW_READS: usize = 4;
/// The most reads in a round: a few more than the queue's 16,384 events need.
const READS: usize = 32;
const BUFFER: usize = 64 << 10;

/// A change in the backing directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// Another process changed the content of the file with this device and inode number.
    File {
        /// The backing inode's `st_dev`.
        dev: u64,
        /// The backing inode's `st_ino`.
        ino: u64,
    },
    /// Another process changed the attributes of the file or directory with this device and inode number, not its content.
    Attributes {
        /// The backing inode's `st_dev`.
        dev: u64,
        /// The backing inode's `st_ino`.
        ino: u64,
    },
    /// Another process created, removed or moved a name in the directory with this device and inode number.
    Name {
        /// The directory's `st_dev`.
        dev: u64,
        /// The directory's `st_ino`.
        ino: u64,
        /// The name.
        name: OsString,
    },
    /// Any name, attribute or content may have changed.
    Everything,
}

/// A change is reported twice (see `again`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// As soon as it is known.
    First,
    /// A second later.
    Again,
}

/// How changes in the backing directory are noticed; for the status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchMode {
    /// At each open, and within about 10 ms for open files.
    Watched,
    /// At each open only.
    AtOpens {
        /// The reason, in words.
        why: String,
    },
}

/// A watch on the file system of one directory.
#[derive(Debug)]
pub struct Watch {
    group: Group,
    reports_names: bool,
    reports_content: bool,
    /// The process whose changes are left out.
    own: u32,
}

impl Watch {
    /// Watches the file system of `dir`: names and content if possible, otherwise content. Changes of the calling process are
    /// left out.
    ///
    /// # Errors
    /// The mode with the reason why there is no watch: the kernel requires `CAP_SYS_ADMIN`.
    pub fn new(dir: BorrowedFd<'_>) -> Result<Self, WatchMode> {
        let watch = Self::by(IdentifyBy::HandleAndName, dir)
            .or_else(|_| Self::by(IdentifyBy::Handle, dir))
            .or_else(|_| Self::by(IdentifyBy::Descriptor, dir));
        watch.map_err(|e| WatchMode::AtOpens { why: format!("{e}; a watch needs root (CAP_SYS_ADMIN)") })
    }

    /// The same, by handle or by descriptor. For tests.
    ///
    /// # Errors
    /// Those of the kernel.
    #[doc(hidden)]
    pub fn by(by: IdentifyBy, dir: BorrowedFd<'_>) -> io::Result<Self> {
        let group = Group::new(dir, by)?;
        let reports_names =
            by == IdentifyBy::HandleAndName && is_local(group.dir()) && kernel_is_at_least((6, 2));
        let reports_content = by != IdentifyBy::Descriptor && is_local(group.dir());
        Ok(Self { group, reports_names, reports_content, own: std::process::id() })
    }

    /// True if all changes of names and attributes are reported, too, and this kernel can be told of them (6.2: a name alone,
    /// without the mounts in it).
    pub fn reports_names(&self) -> bool {
        self.reports_names
    }

    /// True if every write, truncation and close after writing is reported. By descriptor, truncate(2) is not. Stores through mappings never
    /// are, nor are asynchronous writes (io_submit(2)) before the close.
    pub fn reports_content(&self) -> bool {
        self.reports_content
    }

    /// Calls `report` for each change, and again a second later (see `again`), until `stop` is readable or its other end is closed. Begins with
    /// [`Change::Everything`], because earlier changes are unknown. Run it on its own thread: `report` may wait for the
    /// kernel, which may wait for an answer of this process (`FUSE_NOTIFY_INVAL_INODE` waits for pages that are being read). `coverage` gets
    /// what was passed on.
    ///
    /// # Errors
    /// Malformed events, or a failed poll(2). The last report is then [`Change::Everything`], and later changes are noticed
    /// at opens only.
    pub fn run(
        &self,
        stop: BorrowedFd<'_>,
        coverage: &Coverage,
        mut report: impl FnMut(Change, Report),
    ) -> io::Result<()> {
        report(Change::Everything, Report::First);
        let mut buffer = vec![0; BUFFER];
        let ended = self.rounds(stop, &mut buffer, coverage, &mut report);
        if ended.is_err() {
            report(Change::Everything, Report::First);
        }
        ended
    }

    fn rounds(
        &self,
        stop: BorrowedFd<'_>,
        buffer: &mut [u8],
        coverage: &Coverage,
        report: &mut impl FnMut(Change, Report),
    ) -> io::Result<()> {
        let mut again = Again::default();
        loop {
            let mut pause = PAUSE;
            let sources = [stop, self.group.events()];
            if readable(&sources, Some(Duration::ZERO))? == Ready::Nothing {
                coverage.waits();
            }
            let ready = readable(&sources, again.wait(Instant::now()))?;
            let came = coverage.works();
            match ready {
                Ready::Stop => return Ok(()),
                Ready::Events => {
                    let mut round = Round::default();
                    let reads = self.read(buffer, &mut round)?;
                    if reads > FEW_READS {
                        pause = Duration::ZERO;
                    }
                    let changes = round.changes(&self.group);
                    again.note(Instant::now(), &changes);
                    changes.into_iter().for_each(|change| report(change, Report::First));
                    if reads < READS {
                        coverage.passed_on(came);
                    }
                }
                Ready::Nothing => {}
            }
            again.due(Instant::now()).into_iter().for_each(|change| report(change, Report::Again));
            if readable(&[stop], Some(pause))? == Ready::Stop {
                return Ok(());
            }
        }
    }

    /// Reads the waiting events. Returns the number of reads.
    fn read(&self, buffer: &mut [u8], round: &mut Round) -> io::Result<usize> {
        for count in 0..READS {
            match rustix::io::read(self.group.events(), &mut *buffer) {
                Ok(0) | Err(rustix::io::Errno::AGAIN) => return Ok(count),
                Ok(len) => round.add_all(&buffer[..len], self.own).map_err(io::Error::other)?,
                Err(rustix::io::Errno::INTR) => {}
                // The event and its file are lost: there was no free descriptor for it, or it could not be opened.
                Err(_) => round.note_loss(),
            }
        }
        Ok(READS)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ready {
    /// The first one.
    Stop,
    /// Another one.
    Events,
    Nothing,
}

/// Waits until one of them is readable.
fn readable(what: &[BorrowedFd<'_>], at_most: Option<Duration>) -> io::Result<Ready> {
    let mut polled: Vec<PollFd<'_>> =
        what.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    let at_most =
        at_most.map(|d| Timespec { tv_sec: d.as_secs() as i64, tv_nsec: i64::from(d.subsec_nanos()) });
    match poll(&mut polled, at_most.as_ref()) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(Ready::Nothing),
        Ok(_) if !polled[0].revents().is_empty() => Ok(Ready::Stop),
        Ok(_) => Ok(Ready::Events),
        Err(e) => Err(e.into()),
    }
}
