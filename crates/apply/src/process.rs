//! Signals to processes that eke did not start, safe against reused pids.

use eke_linux::error::{Error, Result};
use eke_linux::root::Root;
use eke_model::process::ProcessId;
use rustix::process::Signal;

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

#[cfg(test)]
mod tests {
    use std::process::Command;

    use eke_linux::parse::process_stat;
    use eke_testkit::program::KilledOnDrop;
    use eke_testkit::wait::wait_for;

    use super::*;

    struct Sleeper(KilledOnDrop);

    impl Sleeper {
        fn start() -> Self {
            let child = KilledOnDrop(Command::new("sleep").arg("1000").spawn().unwrap());
            let pid = child.0.id();
            wait_for("the program", || eke_linux::read::answers(&Root::host(), pid));
            Self(child)
        }

        fn stat(&self) -> (char, ProcessId) {
            let text = std::fs::read_to_string(format!("/proc/{}/stat", self.0.0.id())).unwrap();
            let stat = process_stat::parse(&text).unwrap();
            (stat.state, ProcessId { pid: stat.pid, start_ticks: stat.start_ticks })
        }
    }

    #[test]
    fn a_process_is_stopped_continues_and_ends() {
        let sleeper = Sleeper::start();
        let (root, (_, id)) = (Root::host(), sleeper.stat());
        assert_eq!(signal_all(&root, &[id], Signal::STOP).unwrap(), 1);
        wait_for("the stop", || sleeper.stat().0 == 'T');
        assert_eq!(signal_all(&root, &[id], Signal::CONT).unwrap(), 1);
        wait_for("its continuation", || sleeper.stat().0 == 'S');
        assert_eq!(signal_all(&root, &[id], Signal::KILL).unwrap(), 1);
        wait_for("its end", || sleeper.stat().0 == 'Z');
        assert_eq!(signal_all(&root, &[id], Signal::KILL).unwrap(), 0, "a zombie has ended");
    }

    #[test]
    fn a_later_process_with_the_same_pid_gets_no_signal() {
        let sleeper = Sleeper::start();
        let (_, id) = sleeper.stat();
        let earlier = ProcessId { start_ticks: id.start_ticks.wrapping_sub(1), ..id };
        assert_eq!(signal_all(&Root::host(), &[earlier], Signal::KILL).unwrap(), 0);
        assert_ne!(sleeper.stat().0, 'Z');
    }
}
