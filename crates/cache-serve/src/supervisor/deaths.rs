//! How a worker died, and whether to start another one. Pure.

use std::fmt;
use std::time::Duration;

use rustix::process::{Signal, WaitStatus};

/// Older deaths are forgotten.
const WINDOW: Duration = Duration::from_secs(10);
/// Faults within the window that end the mount: some request kills every worker.
const OWN_FAULTS: u32 = 5;
/// SIGKILL comes from outside: from a person, or for lack of memory. A worker that lived this long had time to answer, so it does not
/// count as a fault; one that did not counts as a quarter.
const TIME_TO_ANSWER: Duration = Duration::from_millis(20);
const QUARTERS: u32 = 4;

/// The exit status of a worker that is to be replaced.
pub const RENEWED: i32 = 3;

/// How a worker's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// Its sessions saw the end of the connection: it was unmounted, or aborted.
    Disconnected,
    /// It made room for a worker without its tables.
    Renewed,
    /// It exited with this status.
    Exit(i32),
    /// This signal killed it.
    Signal(i32),
}

impl Death {
    /// From the status that waitpid(2) returns.
    pub fn of(status: WaitStatus) -> Self {
        Self::from(status.terminating_signal(), status.exit_status())
    }

    fn from(signal: Option<i32>, code: Option<i32>) -> Self {
        match (signal, code) {
            (Some(signal), _) => Self::Signal(signal),
            (_, Some(0)) => Self::Disconnected,
            (_, Some(RENEWED)) => Self::Renewed,
            (_, code) => Self::Exit(code.unwrap_or(-1)),
        }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disconnected => write!(f, "the connection ended"),
            Self::Renewed => write!(f, "it made room for another one"),
            Self::Exit(code) => write!(f, "it exited with status {code}"),
            Self::Signal(9) => write!(f, "it was killed (SIGKILL: by a user, or for lack of memory)"),
            Self::Signal(6) => write!(f, "it aborted because of a fault (SIGABRT)"),
            Self::Signal(signal) => write!(f, "signal {signal} killed it"),
        }
    }
}

/// The deaths within the window, in quarters of a fault.
#[derive(Debug, Default)]
pub struct Deaths(Vec<(Duration, u32)>);

impl Deaths {
    /// Counts a death `at` this time since the mount, of a worker that served for `lived`. Returns whether to start another one.
    pub fn allow_restart(&mut self, at: Duration, lived: Option<Duration>, death: Death) -> bool {
        let killed = death == Death::Signal(Signal::KILL.as_raw());
        let quarters = match (killed, lived.is_some_and(|l| l >= TIME_TO_ANSWER)) {
            (true, true) => 0,
            (true, false) => 1,
            (false, _) => QUARTERS,
        };
        self.0.retain(|(then, _)| at.saturating_sub(*then) < WINDOW);
        self.0.push((at, quarters));
        self.0.iter().map(|(_, quarters)| quarters).sum::<u32>() < OWN_FAULTS * QUARTERS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restarts(step_ms: u64, lived_ms: Option<u64>, death: Death) -> usize {
        let mut deaths = Deaths::default();
        let lived = lived_ms.map(Duration::from_millis);
        let mut times = (0..1000).map(|n| Duration::from_millis(n * step_ms));
        times.position(|at| !deaths.allow_restart(at, lived, death)).unwrap_or(1000)
    }

    #[test]
    fn repeated_faults_end_it_and_kills_from_outside_do_not() {
        for (step, lived, death, expected) in [
            (1, Some(1), Death::Signal(11), 4),
            (1, None, Death::Exit(1), 4),
            (1, Some(500), Death::Signal(6), 4),
            (2600, Some(2500), Death::Signal(6), 1000),
            (40, Some(35), Death::Signal(9), 1000),
            (1, None, Death::Signal(9), 19),
        ] {
            assert_eq!(restarts(step, lived, death), expected, "{step} ms, {lived:?}, {death}");
        }
    }

    #[test]
    fn the_status_shows_how_a_process_ended() {
        assert_eq!(Death::from(None, Some(0)), Death::Disconnected);
        assert_eq!(Death::from(None, Some(1)), Death::Exit(1));
        assert_eq!(Death::from(Some(9), None), Death::Signal(9));
    }
}
