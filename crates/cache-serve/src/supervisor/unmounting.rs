//! Unmounts in a separate process: umount2(2) may wait for a worker, and only the supervisor can start the next one.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use eke_cache_mounts::Mount;
use eke_cache_mounts::status::{Refusal, RefusalKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, set_parent_process_death_signal,
    waitpid,
};

use super::fork::fork;
use crate::mount::{MountMethod, UnmountMode, unmount};

/// A running attempt to unmount.
#[derive(Debug)]
pub(super) struct Unmounting {
    pid: Pid,
    pidfd: OwnedFd,
    result: UnixStream,
    pub(super) mode: UnmountMode,
}

impl Unmounting {
    /// Starts the attempt.
    pub(super) fn start(shown: &Mount, by: MountMethod, mode: UnmountMode) -> io::Result<Self> {
        let (result, theirs) = UnixStream::pair()?;
        let Some(pid) = fork()? else {
            let _ = set_parent_process_death_signal(Some(Signal::KILL));
            let result = unmount(shown, by, mode);
            let _ = (&theirs).write_all(&serde_json::to_vec(&result).unwrap_or_default());
            std::process::exit(0)
        };
        Ok(Self { pid, pidfd: pidfd_open(pid, PidfdFlags::empty())?, result, mode })
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
        serde_json::from_slice(&text).unwrap_or_else(|_| {
            Err(Refusal { what: "the process that unmounts was killed".into(), kind: RefusalKind::Failed })
        })
    }

    /// The attempt's result, after at most `limit`.
    pub(super) fn result_within(self, limit: Duration) -> Result<(), Refusal> {
        let limit = Timespec::try_from(limit).ok();
        let ready = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], limit.as_ref());
        if ready != Ok(1) {
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
            return Err(Refusal { what: "unmounting takes too long".into(), kind: RefusalKind::Failed });
        }
        self.result()
    }
}
