//! A signal to one process of this machine, by a descriptor that names it for good.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use eke_linux::cgroup::name;
use eke_linux::root::Root;
use eke_model::process::ProcessId;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Sends a signal to one process of this machine. The descriptor (Linux 5.3) names one process for good; its start time is
/// compared after it was opened. Within execve(2) that cannot be read: then a process is only continued, which is harmless, because one that was
/// stopped on its way into execve stops when it comes out.
///
/// # Errors
/// ESRCH if it has ended, or cannot be identified now; the kernel's answer else.
pub(crate) fn signal(process: ProcessId, signal: Signal) -> io::Result<()> {
    let gone = || io::Error::from_raw_os_error(libc::ESRCH);
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw).ok_or_else(gone)?;
    let same = || name::is_alive(&Root::host(), process).unwrap_or(signal == Signal::CONT);
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
