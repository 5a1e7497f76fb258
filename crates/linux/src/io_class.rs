//! A thread's I/O class (ioprio_set(2)). bfq and mq-deadline serve the idle class only when there is no other request (mq-deadline also after
//! `prio_aging_expire`, 10 s). Without a scheduler the class has no effect.

use std::io;

/// An I/O class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Served when there is no other request.
    Idle,
    /// Best effort, level 4: a thread's default.
    Normal,
}

const WHO_PROCESS: libc::c_long = 1;
const CLASS_SHIFT: libc::c_long = 13;
const BEST_EFFORT: libc::c_long = 2;
const IDLE: libc::c_long = 3;

/// Sets the class of the calling thread only.
///
/// # Errors
/// The kernel's answer: ENOSYS where it has no block devices.
pub fn set(class: Class) -> io::Result<()> {
    let value = match class {
        Class::Idle => IDLE << CLASS_SHIFT,
        Class::Normal => BEST_EFFORT << CLASS_SHIFT | 4,
    };
    #[expect(unsafe_code, reason = "ioprio_set(2) has no safe wrapper")]
    // SAFETY: three numbers; 0 is the calling thread. No memory is handed over.
    let answer = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0 as libc::c_long, value) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
