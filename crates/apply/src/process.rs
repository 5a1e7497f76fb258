//! Signals to processes that eke did not start, safe against reused pids.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use eke_linux::cgroup::name;
use eke_linux::error::{Error, Result};
use eke_linux::root::Root;
use eke_model::process::ProcessId;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::sys;

/// Sends a signal to those that still run; returns their number.
///
/// # Errors
/// The kernel's first answer, after all others got the signal.
pub fn signal_all(root: &Root, processes: &[ProcessId], signal: Signal) -> Result<usize> {
    let mut reached = 0;
    let mut failed = None;
    for process in processes {
        match sys::of(root).signal(*process, signal) {
            Ok(()) => reached += 1,
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
            Err(e) => {
                let path = root.path(format!("proc/{}", process.pid));
                failed.get_or_insert_with(|| Error::io(described(signal), &path, e));
            }
        }
    }
    failed.map_or(Ok(reached), Err)
}

fn described(signal: Signal) -> &'static str {
    match signal {
        Signal::STOP => "stop the process",
        Signal::CONT => "continue the process",
        _ => "end the process",
    }
}

/// Sends a signal to one process of this machine. The descriptor (Linux 5.3) names one process for good; its start time is
/// compared after it was opened.
///
/// # Errors
/// ESRCH if it has ended; the kernel's answer else.
pub(crate) fn signal(process: ProcessId, signal: Signal) -> io::Result<()> {
    let gone = || io::Error::from_raw_os_error(libc::ESRCH);
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
    let same = || name::is_alive(&Root::host(), process).unwrap_or(false);
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(_) if !same() => Err(gone()),
        Ok(fd) => {
            pidfd_send_signal(&fd, signal)?;
            if signal == Signal::KILL {
                release(&fd);
            }
            Ok(())
        }
        // Before Linux 5.3 a pid could be reused between both lines.
        Err(Errno::NOSYS) if same() => Ok(rustix::process::kill_process(pid, signal)?),
        Err(Errno::NOSYS) => Err(gone()),
        Err(e) => Err(e.into()),
    }
}

/// Frees the memory of a killed process at once, on this thread's time: the process itself may be stopped, of a low priority or waiting
/// for a disk (`process_mrelease(2)`, Linux 5.15). A refusal changes nothing.
#[expect(unsafe_code, reason = "neither rustix nor nix has process_mrelease(2)")]
fn release(process: &OwnedFd) {
    // SAFETY: the call takes a descriptor and flags, no memory of ours.
    unsafe { libc::syscall(libc::SYS_process_mrelease, process.as_raw_fd(), 0) };
}
