//! Trace events.

use std::path::PathBuf;
use std::time::Duration;

use crate::file_set::{Kind, Stamp};
use crate::pages::Span;
use crate::program::Program;

/// Identifies a launch while it is recorded: unique for the life of the tracer, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaunchId(pub u32);

/// Identifies a file within a boot: the `st_dev` of its file system (a block device's own number) and its inode (0 for a block device).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Inode {
    /// The device number.
    pub dev: u64,
    /// The inode number.
    pub ino: u64,
    /// Its generation, which tells the inodes of btrfs' subvolumes apart; 0 if unknown.
    pub generation: u32,
}

/// How a page was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageUse {
    /// It entered the page cache for the process: used, or only read ahead.
    Added,
    /// A fault at this page.
    Fault,
    /// Mapped together with others around a fault (`fault_around_bytes`, 64 KiB): perhaps never used.
    Mapped,
    /// Read by read(2) or a similar call.
    Read,
}

/// A process executed a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// The process id.
    pub pid: u32,
    /// The parent's process id; 0 if unknown.
    pub parent: u32,
    /// The real user id: for a set-uid program, its starter's.
    pub uid: u32,
    /// The process group: a shell's job, a service, a desktop's session. 0 if unknown.
    pub group: u32,
    /// The audit session: each log-in has one, and so have cron's jobs. `None` if the kernel has none for it, or does not tell.
    pub session: Option<u32>,
    /// The executable's inode, if it is on a disk and known.
    pub ino: Option<u64>,
    /// CLOCK_MONOTONIC.
    pub at: Duration,
    /// The launch that the process already belongs to.
    pub launch: Option<LaunchId>,
    /// The program; `None` if the host has no path to it (a container's own mounts, a deleted file).
    pub program: Option<Program>,
}

/// A file that a launch touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedFile {
    /// Its path from the host's root.
    pub path: PathBuf,
    /// Its kind.
    pub kind: Kind,
    /// Its version when the launch first touched it.
    pub stamp: Stamp,
    /// The user id of its owner.
    pub owner: u32,
}

/// An event from a tracer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceEvent {
    /// A process executed a program.
    Exec(Exec),
    /// A process ended, with all its threads.
    Exit {
        /// The process id.
        pid: u32,
        /// CLOCK_MONOTONIC.
        at: Duration,
        /// The launch that it belonged to.
        launch: Option<LaunchId>,
    },
    /// A process of a launch forked.
    Fork {
        /// The child's process id.
        pid: u32,
        /// The process that forked.
        parent: u32,
        /// The launch.
        launch: LaunchId,
    },
    /// A launch touches a file. This event precedes the file's pages.
    File {
        /// The launch that the tracer knows the process by. It may lag behind: the process's own execs count.
        launch: LaunchId,
        /// The process.
        pid: u32,
        /// The file.
        inode: Inode,
        /// Its description; `None` to leave it out: deleted, not on a disk, or without a path.
        found: Option<TracedFile>,
    },
    /// A launch touches pages. Pages may repeat.
    Pages {
        /// The launch, as for a file.
        launch: LaunchId,
        /// The process.
        pid: u32,
        /// The file.
        inode: Inode,
        /// The pages, in 4 KiB.
        span: Span,
        /// How they were used.
        how: PageUse,
    },
    /// Total bytes that a launch read from disks, where single pages are not traced.
    Read {
        /// The launch.
        launch: LaunchId,
        /// Bytes since it began.
        bytes: u64,
    },
    /// Number of lost events; their launches are unknown.
    Lost(u64),
}

impl TraceEvent {
    /// The launch of the event.
    pub fn launch(&self) -> Option<LaunchId> {
        match self {
            TraceEvent::Exec(exec) => exec.launch,
            TraceEvent::Exit { launch, .. } => *launch,
            TraceEvent::Fork { launch, .. }
            | TraceEvent::File { launch, .. }
            | TraceEvent::Pages { launch, .. }
            | TraceEvent::Read { launch, .. } => Some(*launch),
            TraceEvent::Lost(_) => None,
        }
    }
}
