//! Work on the mount in a separate process: a system call may wait for a worker, and only the supervisor can start the next one.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use eke_cache_mounts::status::{Refusal, RefusalKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, set_parent_process_death_signal,
    waitpid,
};

use super::fork::fork;

/// How long a killed process may take to end.
const KILLED_WITHIN: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A running attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    pid: Pid,
    pidfd: OwnedFd,
    result: UnixStream,
}

impl Attempt {
    /// Starts the attempt.
    ///
    /// # Errors
    /// No process can be started.
    pub(super) fn start(act: impl FnOnce() -> Result<(), Refusal>) -> io::Result<Self> {
        let (result, theirs) = UnixStream::pair()?;
        let Some(pid) = fork()? else {
            let _ = set_parent_process_death_signal(Some(Signal::KILL));
            let _ = (&theirs).write_all(&serde_json::to_vec(&act()).unwrap_or_default());
            std::process::exit(0)
        };
        Ok(Self { pid, pidfd: pidfd_open(pid, PidfdFlags::empty())?, result })
    }

    /// Readable when the attempt has ended.
    pub(super) fn ended(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// The attempt's result. Waits for its end.
    pub(super) fn result(mut self) -> Result<(), Refusal> {
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
        let mut text = Vec::new();
        let _ = self.result.set_nonblocking(true).and_then(|()| self.result.read_to_end(&mut text));
        serde_json::from_slice(&text).unwrap_or_else(|_| Err(failed("the process for it was killed")))
    }

    /// The attempt's result, after at most `limit`.
    pub(super) fn result_within(self, limit: Duration) -> Result<(), Refusal> {
        let limit = Timespec::try_from(limit).ok();
        let ready = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], limit.as_ref());
        if ready != Ok(1) {
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
            // A system call that is under way may still act.
            let _ = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&KILLED_WITHIN));
            let _ = waitpid(Some(self.pid), WaitOptions::NOHANG);
            return Err(failed("it takes too long"));
        }
        self.result()
    }
}

fn failed(what: &str) -> Refusal {
    Refusal { what: what.into(), kind: RefusalKind::Failed }
}
