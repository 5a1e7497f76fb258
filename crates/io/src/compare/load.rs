//! The load: a process and its children.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::Error;

const PAUSE: Duration = Duration::from_millis(20);
/// Pauses between SIGTERM and SIGKILL: 2 s.
const PATIENCE: u32 = 100;

/// Runs it to its end, in a process group of its own; on `stop` the whole group is ended. Its standard output goes to standard error.
///
/// # Errors
/// It cannot be started, or `stop` was set.
pub fn run(command: &[OsString], stop: &AtomicBool) -> Result<ExitStatus, Error> {
    let (program, arguments) =
        command.split_first().map_or((OsString::new(), &[][..]), |(p, a)| (p.clone(), a));
    let failed = |source| Error::Load { program: PathBuf::from(&program), source };
    let output = rustix::io::fcntl_dupfd_cloexec(std::io::stderr(), 0).map_err(|e| failed(e.into()))?;
    let mut starting = Command::new(&program);
    starting.args(arguments).stdin(Stdio::null()).stdout(Stdio::from(output)).process_group(0);
    let mut child = starting.spawn().map_err(failed)?;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        if stop.load(Ordering::Relaxed) {
            end(&mut child);
            return Err(Error::Interrupted);
        }
        std::thread::sleep(PAUSE);
    }
}

/// First SIGTERM, then SIGKILL.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let signal = |signal| group.map(|group| kill_process_group(group, signal));
    let _ = signal(Signal::TERM);
    for _ in 0..PATIENCE {
        if !matches!(child.try_wait(), Ok(None)) {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    let _ = signal(Signal::KILL);
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Vec<OsString> {
        ["/bin/sh", "-c", script].map(OsString::from).to_vec()
    }

    #[test]
    fn a_load_ends_by_itself_or_is_ended_with_its_children() {
        let go = AtomicBool::new(false);
        assert_eq!(run(&sh("exit 3"), &go).unwrap().code(), Some(3));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let stop = AtomicBool::new(false);
        let ended = std::thread::scope(|scope| {
            scope.spawn(|| {
                while std::fs::read_to_string(&file).map_or(true, |text| !text.ends_with('\n')) {
                    std::thread::sleep(PAUSE);
                }
                stop.store(true, Ordering::Relaxed);
            });
            run(&sh(&format!("sleep 1000 & echo $! > {}; wait", file.display())), &stop)
        });
        assert!(matches!(ended, Err(Error::Interrupted)));
        let pid = std::fs::read_to_string(&file).unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        while !(state().is_empty() || state().contains(") Z ")) {
            std::thread::sleep(PAUSE);
        }
        let refused = run(&[OsString::from("/nonexistent/load")], &go).unwrap_err().to_string();
        assert!(refused.starts_with("cannot run the load /nonexistent/load"), "{refused}");
    }
}
