//! Does a tracer see launches on this machine? A program is started, and its exec must be reported.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::way::{Refused, Trace};
use eke_prefetch_model::learn::Seen;

/// Limit for the exec to be reported: it takes milliseconds, more on a very busy machine.
pub(super) const AT_MOST: Duration = Duration::from_secs(3);
/// An exec wakes the reader now and then only (a storm of them).
const PACE: Duration = Duration::from_millis(20);

/// Something that ends at once: this program's help.
pub(super) fn program() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg("--help").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Starts the program, and waits until its exec is reported. Other events meanwhile are lost, so this comes before anything is learned.
/// A tracer passes if no program can be started.
///
/// # Errors
/// The exec was not reported in time.
pub(super) fn check(trace: &mut dyn Trace, program: &mut Command, at_most: Duration) -> Result<(), Refused> {
    let Ok(mut child) = program.spawn() else { return Ok(()) };
    let (pid, until) = (child.id(), Instant::now() + at_most);
    let mut was_seen = false;
    while !was_seen && Instant::now() < until {
        trace.wait(PACE);
        trace.read(&mut |seen| was_seen |= matches!(seen, Seen::Exec(exec) if exec.pid == pid));
    }
    // It has ended, or ends soon; its number is not used again before this.
    let _ = child.wait();
    if was_seen { Ok(()) } else { Err(deaf()) }
}

fn deaf() -> Refused {
    Refused::new("see a program that was started to try it", "the kernel did not tell of it (a container?)")
}

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;

    use super::*;
    use eke_prefetch_model::learn::{Exec, LaunchId};

    /// Tells of all execs below `/proc` that it finds, or of none.
    #[derive(Debug)]
    struct Ear {
        hears: bool,
    }

    impl Trace for Ear {
        fn wait(&mut self, _: Duration) {}

        fn read(&mut self, each: &mut dyn FnMut(Seen)) {
            for pid in eke_linux::read::pids(&eke_linux::Root::host()).into_iter().filter(|_| self.hears) {
                each(Seen::Exec(Exec {
                    pid,
                    parent: 0,
                    uid: 0,
                    at: Duration::ZERO,
                    launch: None,
                    program: None,
                }));
            }
        }

        fn learn(&mut self, _: LaunchId, _: u32) -> Result<(), Refused> {
            Ok(())
        }

        fn forget(&mut self, _: LaunchId) {}

        fn fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }

    #[test]
    fn a_tracer_that_sees_nothing_is_refused() {
        let tried = |hears| check(&mut Ear { hears }, &mut program(), Duration::from_millis(200));
        assert!(tried(false).unwrap_err().to_string().contains("did not tell"));
        assert_eq!(tried(true), Ok(()));
        let mut nothing = Command::new("/nowhere/at/all");
        assert_eq!(check(&mut Ear { hears: false }, &mut nothing, Duration::ZERO), Ok(()));
    }
}
