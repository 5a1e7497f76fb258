//! swapoff(2) in a child, which another thread can interrupt: it takes minutes, and the machine may need the memory meanwhile.

use std::ffi::{CStr, CString};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, WaitStatus, getpid, getppid, getpriority_process,
    kill_process, set_parent_process_death_signal, setpriority_process, waitid, waitpid,
};

/// Interrupts a swapoff: the area stays swap, and pages that were loaded stay in RAM. Copies interrupt the same one.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    is_set: bool,
    /// The child, until it is waited for: after that its number may be another process'.
    child: Option<Pid>,
}

impl Interrupt {
    /// Ends the swapoff, or keeps it from beginning.
    pub fn set(&self) {
        let mut state = self.state();
        state.is_set = true;
        if let Some(child) = state.child {
            // It may have ended.
            let _ = kill_process(child, Signal::KILL);
        }
    }

    /// Whether [`Self::set`] was called.
    pub fn is_set(&self) -> bool {
        self.state().is_set
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Swaps off in a child: meanwhile the kernel makes the caller the OOM killer's first choice (`oom_flag_origin`, mm/swapfile.c), and that must not be the
/// agent. The child ends with the thread that started it, by SIGKILL; the area then stays swap.
///
/// # Errors
/// The kernel's answer. `Interrupted`: by `interrupt`, another signal, or the freezer at a suspend.
pub(crate) fn in_child(path: &Path, interrupt: &Interrupt) -> io::Result<()> {
    let path =
        CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
    let child = {
        let mut state = interrupt.state();
        if state.is_set {
            return Err(ErrorKind::Interrupted.into());
        }
        *state.child.insert(start(&path)?)
    };
    let waited = has_ended(child);
    let mut state = interrupt.state();
    state.child = None;
    waited.and_then(|()| answer(child))
}

/// Waits for the child's end, and keeps its number.
fn has_ended(child: Pid) -> io::Result<()> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    Ok(rustix::io::retry_on_intr(|| waitid(WaitId::Pid(child), options)).map(drop)?)
}

fn answer(child: Pid) -> io::Result<()> {
    let ended = rustix::io::retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()))?;
    match ended.and_then(|(_, status): (_, WaitStatus)| status.exit_status()) {
        Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        None => Err(io::Error::new(
            ErrorKind::Interrupted,
            "a signal ended it, perhaps the OOM killer's: the pages loaded so far stay in RAM",
        )),
    }
}

#[expect(unsafe_code, reason = "neither rustix nor nix has fork(2) as a safe function")]
fn start(path: &CStr) -> io::Result<Pid> {
    let parent = getpid();
    // SAFETY: the child calls only system calls, on memory that it has a copy of, and never returns.
    match unsafe { libc::fork() } {
        0 => swap_off_and_exit(path, parent),
        child => Pid::from_raw(child).filter(|_| child > 0).ok_or_else(io::Error::last_os_error),
    }
}

/// The child: system calls alone, since another thread may have held any lock of the parent.
#[expect(unsafe_code, reason = "neither rustix nor nix has swapoff(2)")]
fn swap_off_and_exit(path: &CStr, parent: Pid) -> ! {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let has_parent = getppid() == Some(parent);
    take_no_signals_of_the_parent();
    close_descriptors();
    if getpriority_process(None).is_ok_and(|nice| nice < 0) {
        let _ = setpriority_process(None, 0);
    }
    // SAFETY: `path` is NUL-terminated; _exit(2) runs nothing of the parent's.
    unsafe {
        let failed = has_parent && libc::swapoff(path.as_ptr()) != 0;
        let errno = if failed { *libc::__errno_location() } else { 0 };
        libc::_exit(if has_parent { errno } else { libc::EINTR });
    }
}

/// A handler of the parent's would write into the parent's pipe. What is ignored stays so (nohup).
#[expect(unsafe_code, reason = "neither rustix nor nix sets all handlers without memory of its own")]
fn take_no_signals_of_the_parent() {
    for signal in 1..32 {
        // SAFETY: signal(2) is async-signal-safe, and no handler is set.
        unsafe {
            if libc::signal(signal, libc::SIG_DFL) == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }
}

/// Locks and sockets of the parent would outlive it. Before Linux 5.9, without close_range(2), these are the first ones.
#[expect(unsafe_code, reason = "neither rustix nor nix has close_range(2)")]
fn close_descriptors() {
    // SAFETY: nothing here uses a descriptor any more.
    unsafe {
        if libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) != 0 {
            for descriptor in 3..1024 {
                libc::close(descriptor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupt_keeps_a_swapoff_from_beginning() {
        let interrupt = Interrupt::default();
        let gone = |e: io::Error| e.kind();
        let path = Path::new("/nowhere/area");
        let first = in_child(path, &interrupt).map_err(gone);
        assert_ne!(first, Err(ErrorKind::Interrupted), "the kernel's own answer");
        assert!(first.is_err() && interrupt.state().child.is_none());
        interrupt.clone().set();
        assert_eq!(in_child(path, &interrupt).map_err(gone), Err(ErrorKind::Interrupted));
    }
}
