//! A connection that takes the place of a stale one. A thread of its own makes it, so that nobody waits: it may wait for each lost member.

use std::io;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use crate::pause::Pause;

/// After so long without an attempt, twice the longest pause, the pauses begin anew.
const WHOLE_AGAIN: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug)]
pub struct Renewal<T> {
    coming: Option<Receiver<T>>,
    pause: Pause,
    last: Option<Instant>,
}

impl<T> Default for Renewal<T> {
    fn default() -> Self {
        Self { coming: None, pause: Pause::default(), last: None }
    }
}

impl<T: Send + 'static> Renewal<T> {
    /// What a thread has made, once.
    pub fn take(&mut self) -> Option<T> {
        match self.coming.as_ref()?.try_recv() {
            Ok(made) => {
                self.coming = None;
                Some(made)
            }
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.coming = None;
                None
            }
        }
    }

    /// Has a thread make one, unless one is at it or was just now. One that has been at it for [`WHOLE_AGAIN`] is forgotten: the library does not limit how
    /// long it waits for each answer of a new connection. The pauses between attempts grow. `chance` is that of [`Pause::begin`].
    pub fn begin(&mut self, now: Instant, chance: f64, make: impl FnOnce() -> T + Send + 'static) {
        let is_long_ago = self.last.is_none_or(|last| now.saturating_duration_since(last) > WHOLE_AGAIN);
        if (self.coming.is_some() && !is_long_ago) || !self.pause.is_over(now) {
            return;
        }
        if is_long_ago {
            self.pause.answered();
        }
        self.pause.begin(now, chance);
        self.last = Some(now);
        // Without a thread it is tried again after the pause.
        self.coming = start(make).ok();
    }

    /// Forgets what is on its way: there is a newer connection.
    pub fn forget(&mut self) {
        self.coming = None;
    }
}

fn start<T: Send + 'static>(make: impl FnOnce() -> T + Send + 'static) -> io::Result<Receiver<T>> {
    let (sender, coming) = channel();
    std::thread::Builder::new().name("renews".into()).spawn(move || sender.send(make()))?;
    Ok(coming)
}

#[cfg(test)]
mod tests {
    use eke_testkit::wait::wait_for;

    use super::*;

    /// The number of attempts in so many half seconds, each of which fails at once.
    fn attempts(renewal: &mut Renewal<()>, begin: Instant, from: u64, to: u64) -> usize {
        (from..to)
            .filter(|half| {
                renewal.begin(begin + Duration::from_millis(half * 500), 0.0, || ());
                let is_begun = renewal.coming.is_some();
                if is_begun {
                    wait_for("the thread", || renewal.take().is_some());
                }
                is_begun
            })
            .count()
    }

    #[test]
    fn attempts_become_rare_and_frequent_again_after_a_quiet_time() {
        let (mut renewal, begin) = (Renewal::default(), Instant::now());
        let (first, later) = (attempts(&mut renewal, begin, 0, 20), attempts(&mut renewal, begin, 20, 220));
        assert!(first > 5 && later < 15, "{first}, {later}");
        assert!(attempts(&mut renewal, begin, 400, 420) > 5);
    }

    #[test]
    fn one_that_hangs_does_not_keep_the_next_from_coming() {
        let (mut renewal, begin) = (Renewal::default(), Instant::now());
        let (_go, may_go) = channel::<()>();
        renewal.begin(begin, 0.0, move || may_go.recv().map_or(0, |()| 1));
        renewal.begin(begin + WHOLE_AGAIN + Duration::from_secs(1), 0.0, || 2);
        wait_for("the second", || renewal.take() == Some(2));
    }

    #[test]
    fn one_is_made_at_a_time_and_comes_once() {
        let (mut renewal, begin) = (Renewal::default(), Instant::now());
        let (go, may_go) = channel::<()>();
        renewal.begin(begin, 0.0, move || may_go.recv().map_or(0, |()| 1));
        renewal.begin(begin + Duration::from_secs(9), 0.0, || 2);
        assert_eq!(renewal.take(), None);
        go.send(()).unwrap();
        wait_for("the first", || renewal.take() == Some(1));
        assert_eq!(renewal.take(), None);
    }
}
