//! Kills the members of a group and removes its directory.

use std::io;
use std::time::Duration;

use eke_linux::error::{Error, Result};
use eke_linux::root::Root;
use rustix::process::{Pid, Signal, kill_process};

use crate::sys;

/// Attempts to remove a busy group: dead processes leave their group slightly after their parent could have reaped them.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// Calls `kill` and removes the directory `dir`, with retries; a missing directory is fine.
///
/// # Errors
/// The error of `kill`, or the kernel's last answer: EBUSY means that a member cannot be killed.
pub(super) fn remove_dir(root: &Root, dir: &str, kill: impl Fn() -> Result<()>) -> Result<()> {
    let path = root.path(dir);
    for attempt in 1.. {
        kill()?;
        match sys::of(root).remove_dir(&path) {
            Ok(()) => break,
            Err(e) if e.kind() == io::ErrorKind::NotFound => break,
            Err(e) if attempt == TRIES => return Err(Error::io("remove the group", &path, e)),
            Err(_) => root.sleep(PAUSE),
        }
    }
    Ok(())
}

/// The pids in the text of `cgroup.procs`; 0 stands for a process of another PID namespace.
pub(super) fn pids(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.lines().filter_map(|line| line.trim().parse().ok()).filter(|pid| *pid > 0)
}

/// Sends SIGKILL to these processes. Pids in another root's files are not processes of this machine, so there it does
/// nothing.
pub(super) fn kill_all(root: &Root, pids: impl IntoIterator<Item = u32>) {
    if !root.is_host() {
        return;
    }
    for pid in pids.into_iter().filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
        let _ = kill_process(pid, Signal::KILL);
    }
}
