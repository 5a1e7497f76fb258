//! The guard: a third process, which tells the kernel what its cache must drop, and outlives the other two.
//!
//! `FUSE_NOTIFY_INVAL_INODE` waits, unkillably, for pages that are being read. If the worker did that itself and were killed
//! meanwhile, it could not end before the page has arrived, which the next worker would bring, which is not started before
//! this one has ended. So the worker sends the nodes' numbers here.
//!
//! When the supervisor dies without a word, the guard takes the mount away: as root by force, which ends the connection even
//! if all else hangs. Only if it is killed with the other two does a dead mount stay (ENOTCONN).

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use eke_cache_mounts::Mount;
use eke_cache_mounts::unmount::now;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::process::{Pid, PidfdFlags, WaitOptions, pidfd_open, waitpid};
use rustix::thread::set_name;

use super::fork::fork;
use super::signals;
use super::talk::pair;
use crate::device;
use crate::log::say;
use crate::mount::{By, How, unmount};

/// `FUSE_NOTIFY_INVAL_INODE` of the kernel's `uapi/linux/fuse.h`.
const NOTIFY_INVAL_INODE: u32 = 2;

/// The supervisor's ends.
#[derive(Debug)]
pub struct Guard {
    /// Its end tells that the supervisor died, a byte that all is well.
    life: OwnedFd,
    /// Where workers send nodes' numbers.
    notes: OwnedFd,
    /// The process, if it could be had: it is nobody's child.
    pidfd: Option<OwnedFd>,
}

impl Guard {
    /// Starts it, as nobody's child, so that nobody must wait for it. In it, `keep` drops all that is not the guard's, and
    /// gives it a device that no session reads from.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn start(device: &OwnedFd, by: By, shown: &Mount) -> io::Result<Self> {
        let ((life, their_life), (notes, their_notes)) = (pair()?, pair()?);
        let device = device::another(device.as_fd())?;
        let Some(child) = fork()? else {
            match fork() {
                Ok(None) => {
                    close_but(&[&their_life, &their_notes, &device]);
                    run(&their_life, their_notes, device, by, shown)
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
        Ok(Self { life, notes, pidfd })
    }

    /// For a worker.
    ///
    /// # Errors
    /// No descriptor is free.
    pub fn notes(&self) -> io::Result<OwnedFd> {
        self.notes.try_clone()
    }

    /// Is it still there?
    pub fn is_alive(&self) -> bool {
        let gone = recv(&self.life, &mut [0u8; 1][..], RecvFlags::DONTWAIT);
        !matches!(gone, Ok((0, _)) | Err(Errno::CONNRESET))
    }

    /// Lets it end: the mount is gone. Waits for that for at most so long; is it gone then, with all that it held?
    pub fn dismiss(&self, limit: Duration) -> bool {
        let _ = send(&self.life, b".", SendFlags::NOSIGNAL);
        let limit = Timespec::try_from(limit).ok();
        let ended = |pidfd| poll(&mut [PollFd::new(pidfd, PollFlags::IN)], limit.as_ref());
        self.pidfd.as_ref().is_none_or(|pidfd| ended(pidfd) == Ok(1))
    }
}

/// The guard's process, as the one that started it says.
fn process(life: &OwnedFd) -> Option<OwnedFd> {
    let mut number = [0; 4];
    let (4, _) = recv(life, &mut number[..], RecvFlags::empty()).ok()? else { return None };
    pidfd_open(Pid::from_raw(i32::from_ne_bytes(number))?, PidfdFlags::empty()).ok()
}

/// Asks for the pages and attributes of a node to be dropped.
///
/// # Errors
/// EPIPE if the guard is gone.
pub fn drop_pages(notes: BorrowedFd<'_>, node: u64) -> io::Result<()> {
    send(notes, &node.to_ne_bytes(), SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Closes what came along with the fork: above all the other ends, whose closing tells of deaths, and the sessions' devices.
fn close_but(kept: &[&OwnedFd]) {
    let numbers = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<i32> = numbers.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect();
    let is_kept = |n: &i32| *n <= 2 || kept.iter().any(|fd| fd.as_raw_fd() == *n);
    numbers.into_iter().filter(|n| !is_kept(n)).for_each(close);
}

#[expect(unsafe_code, reason = "closes what others in this process own")]
fn close(number: i32) {
    // SAFETY: those owners are on the stack of a function that the guard never returns to.
    unsafe { libc::close(number) };
}

/// What the guard has of the supervisor's, for as long as it lives.
fn run(life: &OwnedFd, notes: OwnedFd, device: OwnedFd, by: By, shown: &Mount) -> ! {
    signals::ignore();
    let _ = set_name(c"eke-cache-guard");
    let thread = std::thread::Builder::new().name("notes".into());
    let _ = thread.spawn(move || tell_all(&notes, device.as_fd()));
    let mut byte = [0u8; 1];
    let ended = loop {
        match recv(life, &mut byte[..], RecvFlags::empty()) {
            Err(Errno::INTR) => {}
            other => break other,
        }
    };
    if !matches!(ended, Ok((1, _))) {
        let_go(by, shown);
    }
    std::process::exit(0)
}

fn tell_all(notes: &OwnedFd, device: BorrowedFd<'_>) {
    let mut node = [0; 8];
    loop {
        match recv(notes, &mut node[..], RecvFlags::empty()) {
            Ok((8, _)) => inval_inode(device, u64::from_ne_bytes(node)),
            Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

/// `fuse_out_header` and `fuse_notify_inval_inode_out` (the node; from byte 0 on, all). An error means that the kernel does
/// not know the node, or that the connection ended.
fn inval_inode(device: BorrowedFd<'_>, node: u64) {
    let mut bytes = [0; 40];
    bytes[..4].copy_from_slice(&40u32.to_ne_bytes());
    bytes[4..8].copy_from_slice(&NOTIFY_INVAL_INODE.to_ne_bytes());
    bytes[16..24].copy_from_slice(&node.to_ne_bytes());
    let _ = rustix::io::write(device, &bytes);
}

/// The mount goes, if it is still the one that was made.
fn let_go(by: By, shown: &Mount) {
    if !is_there(shown) {
        return;
    }
    match unmount(shown, by, How::Force) {
        Ok(()) => {
            say("the supervisor is gone: the mount was taken away, and the backing directory shows again")
        }
        Err(refusal) => say(&refusal.what),
    }
}

/// Is it still mounted, wherever that is by now?
pub fn is_there(shown: &Mount) -> bool {
    now(shown).is_ok_and(|mount| mount.is_some())
}
