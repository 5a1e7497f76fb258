//! Requests that may wait for the directory's own disk, each on a session: changes, fsync(2), and reads past the store. One user's
//! take half of the sessions. More of them are answered by a few other threads, one behind the other, so that requests of others, and
//! this user's reads, find a session. None is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::late::Late;
use super::places::{Place, Places};

/// Sessions for one user's, of 128.
const OF_USER: usize = 64;
/// The same for all users' together.
const MOST: usize = 112;
/// Bytes to be written that wait. What is beyond that waits on a session.
const MOST_BYTES: usize = 64 << 20;

/// The turns of all sessions.
#[derive(Debug)]
pub(super) struct Turns {
    sessions: Arc<Places>,
    late: Arc<Late>,
    bytes: Arc<AtomicUsize>,
}

/// Bytes that wait. They count until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    data: Vec<u8>,
    all: Arc<AtomicUsize>,
}

impl Default for Turns {
    fn default() -> Self {
        Self { sessions: Places::new(OF_USER, MOST), late: Arc::default(), bytes: Arc::default() }
    }
}

impl Turns {
    /// A session for a request of this user. `None`: it has to be done by [`Turns::later`].
    pub fn take(&self, user: u32) -> Option<Place> {
        self.sessions.take(user)
    }

    /// A copy of what is to be written later. `None`: too much waits already.
    pub fn keep(&self, data: &[u8]) -> Option<Waiting> {
        if self.bytes.load(Relaxed).saturating_add(data.len()) > MOST_BYTES {
            return None;
        }
        self.bytes.fetch_add(data.len(), Relaxed);
        Some(Waiting { data: data.to_vec(), all: Arc::clone(&self.bytes) })
    }

    /// Does it on another thread, now or when one is free.
    pub fn later(&self, act: impl FnOnce() + Send + 'static) {
        self.late.add(Box::new(act));
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

    #[test]
    fn one_user_leaves_half_of_the_sessions_and_all_leave_some() {
        let turns = Turns::default();
        let first: Vec<_> = (0..200).map_while(|_| turns.take(7)).collect();
        let others: Vec<_> = (0..200).map_while(|_| turns.take(8)).collect();
        assert_eq!((first.len(), first.len() + others.len()), (OF_USER, MOST));
        drop(first);
        assert!(turns.take(7).is_some());
    }

    #[test]
    fn bytes_that_wait_are_bounded_and_count_until_they_are_written() {
        let turns = Turns::default();
        let chunk = vec![1; 1 << 20];
        let kept: Vec<_> = (0..200).map_while(|_| turns.keep(&chunk)).collect();
        assert_eq!(kept.len() << 20, MOST_BYTES);
        assert!(turns.keep(b"x").is_none());
        drop(kept);
        assert_eq!(turns.keep(b"x").unwrap().bytes(), b"x");
    }
}
