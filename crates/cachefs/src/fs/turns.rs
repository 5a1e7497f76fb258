//! Requests that may wait for the directory's own disk, each on a session. One user's take a part of the sessions, those of all users leave
//! some free. More of them are answered by a few other threads, which take turns among the users, so that requests of others find a
//! session. None is refused.
//!
//! Changes, fsync(2) and reads past the store have a share. What finds, opens and lists has another one, and so has what is written back of
//! mappings: a user whose changes wait for a frozen disk still sees what is in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::late::Late;
use super::places::{Place, Places};

/// Sessions for one user's changes, of 128, and for those of all users.
const CHANGES: (usize, usize) = (64, 76);
/// The same for what finds, opens and lists.
const SEARCHES: (usize, usize) = (24, 36);
/// The same for pages changed through a mapping that are written back.
const WRITE_BACKS: (usize, usize) = (8, 8);
/// Bytes to be written that wait.
const MOST_BYTES: usize = 64 << 20;
/// What is kept of each write beyond that: write(2) may write less than requested.
const SHORT: usize = 4096;

/// The turns of all sessions.
#[derive(Debug)]
pub(super) struct Turns {
    pub changes: Kind,
    pub searches: Kind,
    pub write_backs: Kind,
    bytes: Arc<AtomicUsize>,
}

/// The turns of requests of one kind.
#[derive(Debug)]
pub(super) struct Kind {
    sessions: Arc<Places>,
    late: Arc<Late>,
}

/// Bytes that wait. They count until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    data: Vec<u8>,
    all: Arc<AtomicUsize>,
}

impl Default for Turns {
    fn default() -> Self {
        let [changes, searches, write_backs] = [CHANGES, SEARCHES, WRITE_BACKS].map(Kind::new);
        Self { changes, searches, write_backs, bytes: Arc::default() }
    }
}

impl Turns {
    /// A copy of what is to be written later: of its beginning, if too much waits already.
    pub fn keep(&self, data: &[u8]) -> Waiting {
        let is_too_much = self.bytes.load(Relaxed).saturating_add(data.len()) > MOST_BYTES;
        let kept = if is_too_much { &data[..data.len().min(SHORT)] } else { data };
        self.bytes.fetch_add(kept.len(), Relaxed);
        Waiting { data: kept.to_vec(), all: Arc::clone(&self.bytes) }
    }
}

impl Kind {
    fn new((of_user, most): (usize, usize)) -> Self {
        Self { sessions: Places::new(of_user, most), late: Arc::default() }
    }

    /// A session for a request of this user. `None`: it has to be done by [`Kind::later`].
    pub fn take(&self, user: u32) -> Option<Place> {
        self.sessions.take(user)
    }

    /// Does it for this user on another thread, now or when one is free.
    pub fn later(&self, user: u32, act: impl FnOnce() + Send + 'static) {
        self.late.add(user, Box::new(act));
    }
}

impl Waiting {
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.all.fetch_sub(self.data.len(), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(kind: &Kind, user: u32) -> Vec<Place> {
        (0..200).map_while(|_| kind.take(user)).collect()
    }

    #[test]
    fn one_user_leaves_a_quarter_of_the_sessions_and_all_leave_some() {
        let turns = Turns::default();
        let first = (taken(&turns.changes, 7), taken(&turns.searches, 7));
        assert_eq!((first.0.len(), first.1.len()), (64, 24));
        let others = (taken(&turns.changes, 8), taken(&turns.searches, 8));
        let all = [&first.0, &first.1, &others.0, &others.1].map(Vec::len).iter().sum::<usize>();
        assert_eq!(all + taken(&turns.write_backs, 9).len(), 120);
        drop(first);
        assert!(turns.changes.take(7).is_some() && turns.searches.take(7).is_some());
    }

    #[test]
    fn bytes_that_wait_are_bounded_and_count_until_they_are_written() {
        let turns = Turns::default();
        let chunk = vec![1; 1 << 20];
        let mut kept: Vec<_> = (0..64).map(|_| turns.keep(&chunk)).collect();
        assert!(kept.iter().all(|one| one.bytes() == chunk));
        kept.extend((0..100).map(|_| turns.keep(&chunk)));
        assert!(kept[64..].iter().all(|one| one.bytes() == &chunk[..SHORT]));
        assert_eq!(turns.keep(b"x").bytes(), b"x");
        drop(kept);
        assert_eq!(turns.keep(&chunk).bytes(), chunk);
    }
}
