//! A thread's I/O class (ioprio_set(2)): bfq and mq-deadline serve the idle class only when nobody else asks (mq-deadline after
//! `prio_aging_expire`, 10 s, all the same); without a scheduler it does nothing.

use std::io;

/// What class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// When nobody else asks.
    Idle,
    /// Best effort, level 4: what threads have that never said anything.
    Normal,
}

const WHO_PROCESS: libc::c_long = 1;
const CLASS_SHIFT: libc::c_long = 13;
const BEST_EFFORT: libc::c_long = 2;
const IDLE: libc::c_long = 3;

/// Gives the calling thread, and no other, this class.
///
/// # Errors
/// The kernel's answer: ENOSYS where it has no block devices.
pub(crate) fn set(class: Class) -> io::Result<()> {
    let value = match class {
        Class::Idle => IDLE << CLASS_SHIFT,
        Class::Normal => BEST_EFFORT << CLASS_SHIFT | 4,
    };
    #[expect(unsafe_code, reason = "ioprio_set(2) has no safe wrapper")]
    // SAFETY: three numbers; 0 is the calling thread. No memory is handed over.
    let answer = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0 as libc::c_long, value) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
