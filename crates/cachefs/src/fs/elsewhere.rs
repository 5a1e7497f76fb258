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

use std::sync::Arc;

use super::late::Late;
use super::places::{Place, Places};

/// The most requests that wait there: three quarters of the sessions.
pub const MOST: usize = 96;
/// The same for one user.
const OF_USER: usize = 64;
/// Sessions for requests of one kind that cannot be refused: both together leave an eighth of all free.
const SESSIONS: usize = 8;

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
        self.late.add(0, Box::new(act));
    }
}

#[cfg(test)]
mod tests {
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
}
