//! Sessions: one for each device, each with a thread; more while all of them wait.
//!
//! A session answers one request at a time, and many requests wait for the backing disk: an fsync(2), a create, a write to a
//! file system that is frozen or whose journal is full. If requests wait in the kernel for a moment, no session is idle, and what
//! needs no disk waits too. Then there are as many sessions again ([`super::growth`]). They stay.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::mpsc::{self, Sender};
use std::thread::Builder;
use std::time::Duration;

use eke_linux::Root;
use eke_linux::parse::process_stat;
use fuser::{Filesystem, Session};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit};

use super::growth::{Growth, Look};
use crate::init::{Grant, session};
use crate::log::log_line;

/// As many requests may wait for the disk at a time, before others wait for them. Each session has a stack and a buffer, of which it
/// uses a few pages until there is a large write.
const MOST: usize = 128;
/// Between two looks.
const CALM: Duration = Duration::from_millis(250);
/// fuser's names for the threads that answer requests begin with it.
const THREADS: &str = "fuser-";
/// A request that an idle session will take waits for less.
const MOMENT: Duration = Duration::from_millis(10);

/// Opens a session on each device.
///
/// # Errors
/// What the kernel or the file system's `init` answers.
pub(super) fn open<F: Filesystem + Clone>(
    fs: &F,
    devices: &[OwnedFd],
    grant: &Grant,
) -> io::Result<Vec<Session<F>>> {
    devices.iter().map(|device| session(fs.clone(), device, grant)).collect()
}

/// Runs them, and more on the first device while requests wait, until the first one ends: with the connection (unmounted or aborted),
/// or by a fault.
///
/// # Errors
/// The fault, or that no session is left.
pub(super) fn run<F: Filesystem + Clone>(
    sessions: Vec<Session<F>>,
    fs: F,
    devices: Vec<OwnedFd>,
    grant: Grant,
    root: Root,
) -> io::Result<()> {
    let (ended, end) = mpsc::channel();
    let most = most();
    let mut count = 0;
    for session in sessions {
        start(session, &mut count, &ended)?;
    }
    let mut growth = Growth::to(most);
    let more = move || {
        let Some(device) = devices.first() else { return };
        while count < most {
            std::thread::sleep(CALM);
            for _ in 0..growth.more(count, look(&root, device.as_fd())) {
                let started = session(fs.clone(), device, &grant).and_then(|s| start(s, &mut count, &ended));
                if let Err(e) = started {
                    return log_line(&format!("there are {count} sessions, and no more can be made: {e}"));
                }
            }
        }
    };
    Builder::new().name("sessions".into()).spawn(more)?;
    end.recv().unwrap_or_else(|_| Err(io::Error::other("no session is left")))
}

/// Each has a descriptor: all together an eighth of the limit.
fn most() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit / 8).unwrap_or(MOST).min(MOST)
}

fn start<F: Filesystem>(
    session: Session<F>,
    count: &mut usize,
    ended: &Sender<io::Result<()>>,
) -> io::Result<()> {
    let ended = ended.clone();
    Builder::new().name(format!("session-{count}")).spawn(move || ended.send(session.run()))?;
    *count += 1;
    Ok(())
}

fn look(root: &Root, device: BorrowedFd<'_>) -> Look {
    let waits = all_are_busy(device);
    Look { waits, one_runs: waits && one_runs(root) }
}

/// True if a session runs or waits for a processor: its thread's state is `R` (proc_pid_stat(5)).
fn one_runs(root: &Root) -> bool {
    let threads = root.list("proc/self/task").unwrap_or_default();
    threads.iter().any(|thread| {
        let text = root.read(format!("proc/self/task/{thread}/stat")).unwrap_or_default();
        process_stat::parse(&text).is_some_and(|stat| stat.state == 'R' && stat.name.starts_with(THREADS))
    })
}

/// True if a request waits that no session takes.
fn all_are_busy(device: BorrowedFd<'_>) -> bool {
    let waits = || {
        let mut polled = [PollFd::from_borrowed_fd(device, PollFlags::IN)];
        poll(&mut polled, Some(&Timespec::default())).is_ok() && polled[0].revents() == PollFlags::IN
    };
    waits() && {
        std::thread::sleep(MOMENT);
        waits()
    }
}
