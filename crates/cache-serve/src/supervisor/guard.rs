//! The guard: a third process, which outlives the other two. It tells the kernel of changes, and unmounts if the supervisor dies.
//!
//! Such a notice waits, unkillably, for pages that are being read and for requests in the directory of a name. A killed worker that waits
//! in it could not exit before they are answered. Only the next worker could answer, but it starts after the killed one has exited. So
//! the worker sends its notices to the guard.
//!
//! If the supervisor dies without dismissing it, the guard unmounts; as root by force, which ends the connection even if all else
//! hangs. Only if all three are killed does a dead mount stay (ENOTCONN).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use eke_cache_mounts::Mount;
use eke_cache_mounts::unmount::now;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};
use rustix::thread::set_name;

use super::channel::pair;
use super::fork::fork;
use super::notice;
use super::signals;
use crate::device;
use crate::log::log_line;
use crate::mount::aside::{clear, settle};
use crate::mount::{MountMethod, UnmountMode, unmount};

/// The supervisor's ends of the sockets to the guard.
#[derive(Debug)]
pub struct Guard {
    /// Closed when the supervisor dies; a byte dismisses the guard.
    life: OwnedFd,
    /// Workers send notices here.
    notices: OwnedFd,
    /// The guard's process. It is not a child of the supervisor; `None` if it could not be opened.
    pidfd: Option<OwnedFd>,
}

impl Guard {
    /// Starts the guard by forking twice, so that no process must wait for it. It closes every descriptor that it does not need, and
    /// gets a device that no session reads from.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn start(device: &OwnedFd, by: MountMethod, shown: &Mount) -> io::Result<Self> {
        let ((life, their_life), (notices, their_notices)) = (pair()?, pair()?);
        let device = device::open_clone(device.as_fd())?;
        let Some(child) = fork()? else {
            match fork() {
                Ok(None) => {
                    close_all_but(&[&their_life, &their_notices, &device]);
                    run(&their_life, their_notices, device, by, shown)
                }
                Ok(Some(guard)) => {
                    let _ = send(&their_life, &guard.as_raw_pid().to_ne_bytes(), SendFlags::NOSIGNAL);
                    std::process::exit(0)
                }
                Err(_) => std::process::exit(0),
            }
        };
        drop(their_life);
        let pidfd = process(&life);
        let _ = waitpid(Some(child), WaitOptions::empty());
        Ok(Self { life, notices, pidfd })
    }

    /// A descriptor through which a worker sends notices.
    ///
    /// # Errors
    /// No descriptor is free.
    pub fn notices(&self) -> io::Result<OwnedFd> {
        self.notices.try_clone()
    }

    /// Is it still running?
    pub fn is_alive(&self) -> bool {
        let received = recv(&self.life, &mut [0u8; 1][..], RecvFlags::DONTWAIT);
        !matches!(received, Ok((0, _)) | Err(Errno::CONNRESET))
    }

    /// Ends the guard, since the mount is gone. Waits at most `limit`; returns whether it has ended.
    pub fn dismiss(&self, limit: Duration) -> bool {
        let _ = send(&self.life, b".", SendFlags::NOSIGNAL);
        let limit = Timespec::try_from(limit).ok();
        let ended = |pidfd| poll(&mut [PollFd::new(pidfd, PollFlags::IN)], limit.as_ref());
        self.pidfd.as_ref().is_none_or(|pidfd| ended(pidfd) == Ok(1))
    }
}

/// The guard's process; its parent sent the number.
fn process(life: &OwnedFd) -> Option<OwnedFd> {
    let mut number = [0; 4];
    let (4, _) = recv(life, &mut number[..], RecvFlags::empty()).ok()? else { return None };
    pidfd_open(Pid::from_raw(i32::from_ne_bytes(number))?, PidfdFlags::empty()).ok()
}

/// Closes the descriptors that the fork inherited: mainly the sockets' other ends, whose closing signals a death, and the sessions'
/// devices.
fn close_all_but(kept: &[&OwnedFd]) {
    let numbers = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<i32> = numbers.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    let is_kept = |n: &i32| *n <= 2 || kept.iter().any(|fd| fd.as_raw_fd() == *n);
    numbers.into_iter().filter(|n| !is_kept(n)).for_each(close);
}

#[expect(unsafe_code, reason = "closes descriptors that other values own")]
fn close(number: i32) {
    // SAFETY: the owners are on the stack of functions that the guard never returns to.
    unsafe { libc::close(number) };
}

/// The guard's process.
fn run(life: &OwnedFd, notices: OwnedFd, device: OwnedFd, by: MountMethod, shown: &Mount) -> ! {
    signals::ignore();
    let _ = set_name(c"eke-cache-guard");
    let device = Arc::new(device);
    let (thread, its_device) = (std::thread::Builder::new().name("notify".into()), Arc::clone(&device));
    let _ = thread.spawn(move || pass_on(&notices, its_device.as_fd()));
    let mut byte = [0u8; 1];
    let ended = loop {
        match recv(life, &mut byte[..], RecvFlags::empty()) {
            Err(Errno::INTR) => {}
            other => break other,
        }
    };
    if !matches!(ended, Ok((1, _))) {
        unmount_dead(by, shown, device.as_fd());
    }
    std::process::exit(0)
}

/// An error of the kernel means that it does not know the node or the name, or that the connection ended.
fn pass_on(notices: &OwnedFd, device: BorrowedFd<'_>) {
    let mut bytes = [0; notice::LONGEST];
    loop {
        match recv(notices, &mut bytes[..], RecvFlags::empty()) {
            Err(Errno::INTR) => {}
            Ok((len, _)) if len > 0 => drop(rustix::io::write(device, &bytes[..len])),
            _ => return,
        }
    }
}

/// Unmounts, if the mount is still the same, wherever it has moved. The kernel's list alone cannot tell: the next mount of the directory may
/// have all of its numbers.
fn unmount_dead(by: MountMethod, shown: &Mount, device: BorrowedFd<'_>) {
    let Some(shown) = device::is_connected(device).then(|| settle(shown).ok()).flatten() else { return };
    match unmount(&shown, by, UnmountMode::Force) {
        Ok(()) => log_line("the supervisor is gone: unmounted, and the backing directory is visible again"),
        Err(refusal) => log_line(&refusal.what),
    }
    clear(shown.device);
}

/// Is it still mounted, at whatever path?
pub fn is_mounted(shown: &Mount) -> bool {
    now(shown).is_ok_and(|mount| mount.is_some())
}
