//! Requests on other mounts inside the directory. Their file system may hang (a dead NFS or FUSE server) while the directory's own works,
//! and each request on it keeps a session waiting. So they have a share of the sessions, and more are refused at once ([`Elsewhere::take`]).
//!
//! Some cannot be refused ([`Unrefused`]): pages that a program changed through a mapping are lost if their write fails, fsync(2) and close(2)
//! report on them, and an open ends with its release. A few wait on sessions, more on threads of their own, and the rest without a thread.
//!
//! # Limits
//! What is on another mount is known after the first lookup there, and a mount point within a second. A place comes back just after the
//! answer, so a process that had the last one may not get it for its next request. With fewer than 128 sessions (a limit
//! of less than 1024 open files) the shares are too large. The kernel sends few background requests at a time, so many unanswered
//! writes delay the readahead of other files.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::places::{Place, Places};
use crate::sync::lock;

/// The most requests that wait there: three quarters of the sessions.
pub const MOST: usize = 96;
/// The same for one user.
const OF_USER: usize = 64;
/// Sessions for requests of one kind that cannot be refused: both together leave an eighth of all free.
const SESSIONS: usize = 8;
/// Threads for more of them.
const THREADS: usize = 64;

/// What a request may use while it is answered.
#[derive(Debug)]
#[must_use = "a place is given back when it is dropped"]
pub(super) enum Share {
    /// It is on the directory's own mount.
    All,
    /// It is on another one.
    Place(#[expect(dead_code, reason = "given back by its drop")] Place),
}

impl Share {
    pub fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Place(_))
    }
}

/// The shares of all sessions.
#[derive(Debug)]
pub(super) struct Elsewhere {
    places: Arc<Places>,
    /// Writes of changed pages, and what reports on them.
    pub writes: Unrefused,
    /// Releases. Nobody waits for them, so they delay no writes on a file system that works.
    pub releases: Unrefused,
}

impl Default for Elsewhere {
    fn default() -> Self {
        let (writes, releases) = (Unrefused::default(), Unrefused::default());
        Self { places: Places::new(OF_USER, MOST), writes, releases }
    }
}

impl Elsewhere {
    /// The share of a request of this user. `None`: it is elsewhere, and as many as may wait there do (EBUSY).
    pub fn take(&self, is_elsewhere: bool, user: u32) -> Option<Share> {
        if is_elsewhere { self.places.take(user).map(Share::Place) } else { Some(Share::All) }
    }
}

/// Requests that cannot be refused.
#[derive(Debug)]
pub(super) struct Unrefused {
    sessions: Arc<Places>,
    late: Arc<Late>,
}

impl Default for Unrefused {
    fn default() -> Self {
        Self { sessions: Places::new(SESSIONS, SESSIONS), late: Arc::default() }
    }
}

impl Unrefused {
    /// The share of a request. `None`: it has to be done by [`Unrefused::later`].
    pub fn take(&self, is_elsewhere: bool) -> Option<Share> {
        if is_elsewhere { self.sessions.take(0).map(Share::Place) } else { Some(Share::All) }
    }

    /// Does it on another thread, now or when one is free. Without any, here.
    pub fn later(&self, act: impl FnOnce() + Send + 'static) {
        self.late.add(Box::new(act));
    }
}

type Act = Box<dyn FnOnce() + Send>;

/// Acts for a few threads, which end when nothing is left.
#[derive(Default)]
struct Late(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    acts: VecDeque<Act>,
    threads: usize,
}

impl std::fmt::Debug for Late {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Late")
    }
}

impl Late {
    fn add(self: &Arc<Self>, act: Act) {
        let mut queue = lock(&self.0);
        queue.acts.push_back(act);
        if queue.threads == THREADS {
            return;
        }
        queue.threads += 1;
        drop(queue);
        let this = Arc::clone(self);
        let started = std::thread::Builder::new().name("elsewhere".into()).spawn(move || this.run());
        if started.is_err() && self.has_no_thread() {
            self.run();
        }
    }

    /// True if there is no thread that could do what the one that did not start was for.
    fn has_no_thread(&self) -> bool {
        let mut queue = lock(&self.0);
        let alone = queue.threads == 1;
        queue.threads -= usize::from(!alone);
        alone
    }

    /// As one of the threads.
    fn run(&self) {
        while let Some(act) = self.next() {
            act();
        }
    }

    fn next(&self) -> Option<Act> {
        let mut queue = lock(&self.0);
        let next = queue.acts.pop_front();
        if next.is_none() {
            queue.threads -= 1;
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::sync::{Condvar, mpsc};
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_users_requests_and_all_together_are_bounded_elsewhere_alone() {
        let elsewhere = Elsewhere::default();
        let taken: Vec<_> = (0..200).map_while(|_| elsewhere.take(true, 7)).collect();
        assert_eq!(taken.len(), OF_USER);
        let others: Vec<_> = (0..200).map_while(|_| elsewhere.take(true, 8)).collect();
        assert_eq!(taken.len() + others.len(), MOST);
        assert!((0..200).all(|_| elsewhere.take(false, 7).is_some_and(|share| !share.is_elsewhere())));
        drop(taken);
        assert!(elsewhere.take(true, 7).is_some_and(|share| share.is_elsewhere()));
    }

    #[test]
    fn what_cannot_be_refused_holds_few_sessions() {
        let elsewhere = Elsewhere::default();
        let _all: Vec<_> = (0..200).map_while(|_| elsewhere.take(true, 7)).collect();
        for unrefused in [&elsewhere.writes, &elsewhere.releases] {
            let sessions: Vec<_> = (0..200).map_while(|_| unrefused.take(true)).collect();
            assert_eq!(sessions.len(), SESSIONS);
            assert!(unrefused.take(false).is_some());
        }
    }

    #[test]
    fn late_acts_are_all_done_by_few_threads() {
        const ACTS: usize = 3 * THREADS;
        let late = Arc::new(Late::default());
        let (gate, done) = (Arc::new((Mutex::new(false), Condvar::new())), mpsc::channel());
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..ACTS {
            let (gate, done) = (Arc::clone(&gate), done.0.clone());
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            late.add(Box::new(move || {
                most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                let closed = lock(&gate.0);
                drop(gate.1.wait_timeout_while(closed, Duration::from_secs(60), |open| !*open).unwrap());
                running.fetch_sub(1, SeqCst);
                done.send(()).unwrap();
            }));
        }
        *lock(&gate.0) = true;
        gate.1.notify_all();
        (0..ACTS).for_each(|_| done.1.recv_timeout(Duration::from_secs(60)).unwrap());
        assert!(most.load(SeqCst) <= THREADS);
    }
}
