//! Whether the mount is of use: what the worker measures goes to the policy ([`eke_cache_policy::aside`]), and its advice to the supervisor.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use eke_cache_policy::aside::{Advice, Reason, Sample, Usefulness};

use crate::supervisor::channel::{FromWorker, send};

/// Where the mount is, as far as the worker knows.
#[derive(Debug)]
pub(super) struct Aside {
    /// The mount may stand aside at all.
    may: bool,
    since: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    usefulness: Usefulness,
    reason: Option<Reason>,
    /// The mount has moved, and nobody has acted on it yet.
    has_moved: bool,
}

impl Aside {
    /// Of a mount that may stand aside or not, and does for this reason.
    pub(super) fn new(may: bool, reason: Option<Reason>, window: Option<Duration>) -> Self {
        let mut usefulness = Usefulness::serving();
        if let Some(window) = window {
            usefulness = usefulness.with_window(window);
        }
        if let Some(reason) = reason {
            usefulness.left(reason, Duration::ZERO);
        }
        let state = State { usefulness, reason, has_moved: reason.is_some() };
        Self { may, since: Instant::now(), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The supervisor says where the mount is after an attempt to move it.
    pub(super) fn is_now(&self, reason: Option<Reason>) {
        let now = self.since.elapsed();
        let mut state = self.state();
        match (state.reason, reason) {
            (None, Some(left)) => state.usefulness.left(left, now),
            (Some(_), None) => state.usefulness.returned(now),
            _ => state.usefulness.refused(now),
        }
        state.has_moved |= state.reason.is_some() != reason.is_some();
        state.reason = reason;
    }

    /// Where it has moved to since the last call: aside or not. `None`: it has not.
    pub(super) fn has_moved(&self) -> Option<bool> {
        let mut state = self.state();
        std::mem::take(&mut state.has_moved).then_some(state.reason.is_some())
    }

    /// Passes a sample to the policy, and its advice to the supervisor. `sample` is given the time.
    pub(super) fn advise(&self, supervisor: &OwnedFd, sample: impl FnOnce(Duration) -> Sample) {
        if !self.may {
            return;
        }
        let sample = sample(self.since.elapsed());
        let message = match self.state().usefulness.step(sample) {
            Advice::Stay => return,
            Advice::Leave(reason) => FromWorker::Leave(reason),
            Advice::Return => FromWorker::Return,
        };
        // Without room for it the next windows say it again.
        let _ = send(supervisor.as_fd(), &message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_is_acted_on_once_and_a_refused_one_never() {
        let aside = Aside::new(true, None, None);
        assert_eq!(aside.has_moved(), None);
        aside.is_now(None);
        assert_eq!(aside.has_moved(), None, "refused");
        aside.is_now(Some(Reason::Fits));
        assert_eq!((aside.has_moved(), aside.has_moved()), (Some(true), None));
        aside.is_now(None);
        assert_eq!(aside.has_moved(), Some(false));
        let next = Aside::new(true, Some(Reason::Fits), None);
        assert_eq!(next.has_moved(), Some(true), "the next worker");
    }
}
