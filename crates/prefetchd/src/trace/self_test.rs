//! Tests a tracer: starts a program and expects its exec to be reported.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::method::{Trace, TraceError};
use eke_prefetch_model::learn::TraceEvent;

/// The time limit for the report: milliseconds suffice, except on a very busy machine.
pub(super) const AT_MOST: Duration = Duration::from_secs(3);
/// During an exec storm not every exec wakes the reader.
const PACE: Duration = Duration::from_millis(20);

/// A program that ends at once: this program's help.
pub(super) fn program() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg("--help").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Starts the program and waits until its exec is reported. Discards other events, so run this before learning. Passes if the program cannot be
/// started.
///
/// # Errors
/// The exec was not reported in time.
pub(super) fn check(
    trace: &mut dyn Trace,
    program: &mut Command,
    at_most: Duration,
) -> Result<(), TraceError> {
    let Ok(mut child) = program.spawn() else { return Ok(()) };
    let (pid, until) = (child.id(), Instant::now() + at_most);
    let mut was_seen = false;
    while !was_seen && Instant::now() < until {
        trace.wait(PACE);
        trace.read(&mut |seen| was_seen |= matches!(seen, TraceEvent::Exec(exec) if exec.pid == pid));
    }
    // It ends soon. Its process id is not reused before this.
    let _ = child.wait();
    if was_seen { Ok(()) } else { Err(not_reported()) }
}

fn not_reported() -> TraceError {
    TraceError::new("trace a test program", "the kernel did not report it (a container?)")
}

#[cfg(test)]
mod tests {
    use std::os::fd::BorrowedFd;

    use super::*;
    use eke_prefetch_model::learn::{Exec, LaunchId};

    /// Reports all execs found in `/proc`, or none.
    #[derive(Debug)]
    struct FakeTracer {
        reports: bool,
    }

    impl Trace for FakeTracer {
        fn wait(&mut self, _: Duration) {}

        fn read(&mut self, each: &mut dyn FnMut(TraceEvent)) {
            for pid in eke_linux::read::pids(&eke_linux::Root::host()).into_iter().filter(|_| self.reports) {
                each(TraceEvent::Exec(Exec {
                    pid,
                    parent: 0,
                    uid: 0,
                    group: 0,
                    session: None,
                    ino: None,
                    at: Duration::ZERO,
                    launch: None,
                    program: None,
                }));
            }
        }

        fn learn(&mut self, _: LaunchId, _: u32) -> Result<Vec<u32>, TraceError> {
            Ok(Vec::new())
        }

        fn assign(&mut self, _: u32, _: Option<LaunchId>) {}

        fn has_lost_children(&mut self) -> bool {
            false
        }

        fn forget(&mut self, _: LaunchId) {}

        fn fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }

    #[test]
    fn a_tracer_that_reports_nothing_is_rejected() {
        let tried = |reports| check(&mut FakeTracer { reports }, &mut program(), Duration::from_millis(200));
        assert!(tried(false).unwrap_err().to_string().contains("did not report"));
        assert_eq!(tried(true), Ok(()));
        let mut nothing = Command::new("/nowhere/at/all");
        assert_eq!(check(&mut FakeTracer { reports: false }, &mut nothing, Duration::ZERO), Ok(()));
    }
}
