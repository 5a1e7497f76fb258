//! When a process ends: with another, or at a signal.

use std::io;
use std::os::unix::net::UnixStream;

use crate::write::write_value;
use eke_linux::root::Root;

/// A stream with a byte for each of these signals that comes, to be waited for among others.
///
/// # Errors
/// What pipe(2), fcntl(2) or sigaction(2) answers.
pub fn signals(signals: &[i32]) -> io::Result<UnixStream> {
    let (readable, written) = UnixStream::pair()?;
    for signal in signals {
        signal_hook::low_level::pipe::register(*signal, written.try_clone()?)?;
    }
    Ok(readable)
}

/// From now on this process ends, by SIGTERM, when its parent does, which is the process of this number; and where memory is short it may be
/// killed: the agent is never the OOM killer's choice, and what it starts has that from it.
///
/// # Errors
/// A sentence: the kernel's answer, or the parent has ended already (prctl(2), PR_SET_PDEATHSIG: that is not told any more).
pub fn with_parent(root: &Root, parent: &str) -> Result<(), String> {
    write_value(root, "process.oom_score_adj", "", "0").map_err(|e| e.to_string())?;
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
        .map_err(|e| format!("cannot ask to end with the agent: {e}"))?;
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    if now.as_deref() == Some(parent) {
        Ok(())
    } else {
        Err(format!("process {parent} is not the parent, or has ended"))
    }
}
