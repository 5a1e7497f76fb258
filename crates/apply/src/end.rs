//! Ends a process with its parent, or on a signal.

use std::io;
use std::os::unix::net::UnixStream;

use crate::write::write_value;
use eke_linux::root::Root;

/// A stream that becomes readable when one of these signals arrives, for a poll loop.
///
/// # Errors
/// The answer of pipe(2), fcntl(2) or sigaction(2).
pub fn signals(signals: &[i32]) -> io::Result<UnixStream> {
    let (readable, written) = UnixStream::pair()?;
    for signal in signals {
        signal_hook::low_level::pipe::register(*signal, written.try_clone()?)?;
    }
    Ok(readable)
}

/// Makes this process get SIGTERM when its parent, process `parent`, ends. Also makes it killable when memory is short:
/// it inherits the agent's exemption from the OOM killer, and its priority. A lower priority than the usual one is an administrator's, and stays.
///
/// # Errors
/// A sentence: the kernel's answer, or the parent has ended already (prctl(2): PR_SET_PDEATHSIG then never arrives).
pub fn with_parent(root: &Root, parent: &str) -> Result<(), String> {
    take_usual_priority(root)?;
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::TERM))
        .map_err(|e| format!("cannot request a signal at the agent's end: {e}"))?;
    let now = rustix::process::getppid().map(|pid| pid.as_raw_nonzero().to_string());
    if now.as_deref() == Some(parent) {
        Ok(())
    } else {
        Err(format!("process {parent} is not the parent, or has ended"))
    }
}

fn take_usual_priority(root: &Root) -> Result<(), String> {
    let score = root.read("proc/self/oom_score_adj").unwrap_or_default();
    if score.trim().parse::<i32>().map_or(true, |score| score < 0) {
        write_value(root, "process.oom_score_adj", "", "0").map_err(|e| e.to_string())?;
    }
    let failed = |e| format!("cannot take the usual priority: {e}");
    if rustix::process::getpriority_process(None).map_err(failed)? < 0 {
        rustix::process::setpriority_process(None, 0).map_err(failed)?;
    }
    Ok(())
}
