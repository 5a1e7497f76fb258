//! Whether a tracer sees what happens here: a program is started, and must be told of.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::way::{Refused, Trace};
use eke_prefetch_model::learn::Seen;

/// Time until the exec is told: milliseconds, but on a machine that is very busy.
pub(super) const AT_MOST: Duration = Duration::from_secs(3);
/// An exec wakes the reader now and then only (a storm of them).
const PACE: Duration = Duration::from_millis(20);

/// Something that ends at once: this program's help.
pub(super) fn program() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg("--help").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Starts the program, and waits until its exec is told of. What else is told meanwhile is lost, so it is done before anything is learned.
/// Where nothing can be started nothing is known, and the tracer passes.
///
/// # Errors
/// The exec was not told of in time.
pub(super) fn check(trace: &mut dyn Trace, program: &mut Command, at_most: Duration) -> Result<(), Refused> {
    let Ok(mut child) = program.spawn() else { return Ok(()) };
    let (pid, until) = (child.id(), Instant::now() + at_most);
    let mut is_told = false;
    while !is_told && Instant::now() < until {
        trace.wait(PACE);
        trace.read(&mut |seen| is_told |= matches!(seen, Seen::Exec(exec) if exec.pid == pid));
    }
    // It has ended, or ends soon; its number is not used again before this.
    let _ = child.wait();
    if is_told { Ok(()) } else { Err(deaf()) }
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
    fn who_is_told_of_nothing_is_refused() {
        let tried = |hears| check(&mut Ear { hears }, &mut program(), Duration::from_millis(200));
        assert!(tried(false).unwrap_err().to_string().contains("did not tell"));
        assert_eq!(tried(true), Ok(()));
        let mut nothing = Command::new("/nowhere/at/all");
        assert_eq!(check(&mut Ear { hears: false }, &mut nothing, Duration::ZERO), Ok(()));
    }
}
