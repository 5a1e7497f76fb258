//! Unmounting in a process of its own: umount2(2) may wait for a worker, and the supervisor is who starts the next one.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use eke_cache_mounts::Mount;
use eke_cache_mounts::status::{Kind, Refusal};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, set_parent_process_death_signal,
    waitpid,
};

use super::fork::fork;
use crate::mount::{By, How, unmount};

/// An attempt under way.
#[derive(Debug)]
pub(super) struct Leaving {
    pid: Pid,
    pidfd: OwnedFd,
    said: UnixStream,
    /// Which one.
    pub(super) how: How,
}

impl Leaving {
    /// Starts to unmount.
    pub(super) fn start(shown: &Mount, by: By, how: How) -> io::Result<Self> {
        let (said, say) = UnixStream::pair()?;
        let Some(pid) = fork()? else {
            let _ = set_parent_process_death_signal(Some(Signal::KILL));
            let result = unmount(shown, by, how);
            let _ = (&say).write_all(&serde_json::to_vec(&result).unwrap_or_default());
            std::process::exit(0)
        };
        Ok(Self { pid, pidfd: pidfd_open(pid, PidfdFlags::empty())?, said, how })
    }

    /// Readable when it came to an end.
    pub(super) fn ended(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// What came of it. Waits for the end.
    pub(super) fn result(mut self) -> Result<(), Refusal> {
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
        let mut text = Vec::new();
        let _ = self.said.set_nonblocking(true).and_then(|()| self.said.read_to_end(&mut text));
        serde_json::from_slice(&text).unwrap_or_else(|_| {
            Err(Refusal { what: "the process that unmounts was ended".into(), kind: Kind::Failed })
        })
    }

    /// The same, but for at most `limit`.
    pub(super) fn result_within(self, limit: Duration) -> Result<(), Refusal> {
        let limit = Timespec::try_from(limit).ok();
        let ready = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], limit.as_ref());
        if ready != Ok(1) {
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
            return Err(Refusal { what: "unmounting takes too long".into(), kind: Kind::Failed });
        }
        self.result()
    }
}
