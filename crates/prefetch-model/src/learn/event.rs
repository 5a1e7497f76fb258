//! What tracers tell.

use std::path::PathBuf;
use std::time::Duration;

use crate::file_set::{Kind, Stamp};
use crate::pages::Span;
use crate::program::Program;

/// A launch that is being learned: a number that is not used twice while the tracer lives, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaunchId(pub u32);

/// A file within a boot: the device of its file system as `st_dev` has it (of a block device its own number), and its inode (of
/// a block device 0).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inode {
    /// The device.
    pub dev: u64,
    /// The inode's number.
    pub ino: u64,
}

/// How a page came to be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// It came into the page cache for the process: used, or only read ahead.
    Added,
    /// A fault at this page.
    Fault,
    /// Mapped along with others around a fault (`fault_around_bytes`, 64 KiB): perhaps never used.
    Mapped,
    /// Asked for by read(2) and its like.
    Read,
}

/// A process executed a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// The process.
    pub pid: u32,
    /// Its parent; 0 if not known.
    pub parent: u32,
    /// The real user: of a set-uid program who started it.
    pub uid: u32,
    /// When, by CLOCK_MONOTONIC.
    pub at: Duration,
    /// The launch that the process belonged to already.
    pub launch: Option<LaunchId>,
    /// What it executes; `None` if that has no path that the host can reach (a container's own mounts, a deleted file).
    pub program: Option<Program>,
}

/// What is known of a file that a launch touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where it is, from the host's root.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
    /// Its state when it was first touched in this launch.
    pub stamp: Stamp,
}

/// Something that a tracer saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A program was executed.
    Exec(Exec),
    /// A process ended, with all its threads.
    Exit {
        /// The process.
        pid: u32,
        /// When, by CLOCK_MONOTONIC.
        at: Duration,
        /// The launch that it belonged to.
        launch: Option<LaunchId>,
    },
    /// A process of a launch has a child.
    Fork {
        /// The child.
        pid: u32,
        /// The launch.
        launch: LaunchId,
    },
    /// A launch touches a file; told before the file's pages.
    File {
        /// The launch.
        launch: LaunchId,
        /// The file.
        inode: Inode,
        /// What is known of it; `None` if it is to be left out: deleted, not on a disk, or not to be reached by a path.
        found: Option<Found>,
    },
    /// A launch touches pages; the same pages may be told of again.
    Pages {
        /// The launch.
        launch: LaunchId,
        /// The file.
        inode: Inode,
        /// The pages, in 4 KiB.
        span: Span,
        /// How.
        how: How,
    },
    /// So many bytes were read from disks for a launch in all, where the pages themselves were not seen to come in.
    Read {
        /// The launch.
        launch: LaunchId,
        /// The bytes since it began.
        bytes: u64,
    },
    /// Something was not seen: so many events, of whom is not known.
    Lost(u64),
}

impl Seen {
    /// The launch that it is of.
    pub fn launch(&self) -> Option<LaunchId> {
        match self {
            Seen::Exec(exec) => exec.launch,
            Seen::Exit { launch, .. } => *launch,
            Seen::Fork { launch, .. }
            | Seen::File { launch, .. }
            | Seen::Pages { launch, .. }
            | Seen::Read { launch, .. } => Some(*launch),
            Seen::Lost(_) => None,
        }
    }
}
