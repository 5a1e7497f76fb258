//! Death a worker died, and whether another one is worth a try. Pure.

use std::fmt;
use std::time::Duration;

use rustix::process::{Signal, WaitStatus};

/// Deaths longer ago than this are forgotten.
const WINDOW: Duration = Duration::from_secs(10);
/// So many deaths of its own within the window: some request kills every worker.
const OWN_FAULTS: u32 = 5;
/// SIGKILL comes from outside, from a person or for lack of memory. A worker that lived as long as this had time to answer;
/// one that did not is a quarter of a death of its own.
const TIME_TO_ANSWER: Duration = Duration::from_millis(20);
const QUARTERS: u32 = 4;

/// Death a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// Every session saw the end of the connection: unmounted, or aborted by somebody.
    Disconnected,
    /// With this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

impl Death {
    /// Of what waitpid(2) says.
    pub fn of(status: WaitStatus) -> Self {
        Self::from(status.terminating_signal(), status.exit_status())
    }

    fn from(signal: Option<i32>, code: Option<i32>) -> Self {
        match (signal, code) {
            (Some(signal), _) => Self::Signal(signal),
            (_, Some(0)) => Self::Disconnected,
            (_, code) => Self::Exit(code.unwrap_or(-1)),
        }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disconnected => write!(f, "the connection ended"),
            Self::Exit(code) => write!(f, "it ended with status {code}"),
            Self::Signal(9) => write!(f, "it was killed (SIGKILL: by somebody, or for lack of memory)"),
            Self::Signal(6) => write!(f, "it ended itself because of a fault (SIGABRT)"),
            Self::Signal(signal) => write!(f, "signal {signal} ended it"),
        }
    }
}

/// Those of the last seconds, in quarters of a fault.
#[derive(Debug, Default)]
pub struct Deaths(Vec<(Duration, u32)>);

impl Deaths {
    /// One more, `at` a time since the mount, of a worker that was ready for `lived`. Is another one worth a try?
    pub fn another_try(&mut self, at: Duration, lived: Option<Duration>, how: Death) -> bool {
        let killed = how == Death::Signal(Signal::KILL.as_raw());
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

    fn tries(step_ms: u64, lived_ms: Option<u64>, how: Death) -> usize {
        let mut deaths = Deaths::default();
        let lived = lived_ms.map(Duration::from_millis);
        let mut times = (0..1000).map(|n| Duration::from_millis(n * step_ms));
        times.position(|at| !deaths.another_try(at, lived, how)).unwrap_or(1000)
    }

    #[test]
    fn faults_at_once_end_it_and_kills_from_outside_do_not() {
        for (step, lived, how, expected) in [
            (1, Some(1), Death::Signal(11), 4),
            (1, None, Death::Exit(1), 4),
            (1, Some(500), Death::Signal(6), 4),
            (2600, Some(2500), Death::Signal(6), 1000),
            (40, Some(35), Death::Signal(9), 1000),
            (1, None, Death::Signal(9), 19),
        ] {
            assert_eq!(tries(step, lived, how), expected, "{step} ms, {lived:?}, {how}");
        }
    }

    #[test]
    fn the_way_of_an_end_is_told_by_its_status() {
        assert_eq!(Death::from(None, Some(0)), Death::Disconnected);
        assert_eq!(Death::from(None, Some(1)), Death::Exit(1));
        assert_eq!(Death::from(Some(9), None), Death::Signal(9));
    }
}
