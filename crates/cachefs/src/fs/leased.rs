//! Opens of files on which another process has a lease (fcntl(2), "Leases"): the kernel would let open(2) sleep until the holder
//! gives it up, or for 45 s (`/proc/sys/fs/lease-break-time`). Any user can take one on an own file, so no session waits.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::error;
use crate::sync::lock;

/// The most opens that wait, each on a thread.
const MOST: usize = 8;
/// The same for one user. More are refused with EAGAIN.
const OF_USER: usize = 2;
/// A holder that behaves gives its lease up within milliseconds.
const PAUSE: Duration = Duration::from_millis(20);
/// Longer than the kernel's default limit, after which it takes the lease away.
const PATIENCE: Duration = Duration::from_secs(60);

/// The users whose opens wait.
#[derive(Debug, Default)]
pub struct Leased(Mutex<Vec<u32>>);

/// Permission to wait; given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    leased: Arc<Leased>,
    user: u32,
}

impl Leased {
    /// A place for an open of this user; `None` if there is none.
    pub fn place(self: &Arc<Self>, user: u32) -> Option<Place> {
        let mut users = self.users();
        let own = users.iter().filter(|other| **other == user).count();
        if users.len() >= MOST || own >= OF_USER {
            return None;
        }
        users.push(user);
        Some(Place { leased: Arc::clone(self), user })
    }

    fn users(&self) -> std::sync::MutexGuard<'_, Vec<u32>> {
        lock(&self.0)
    }
}

impl Place {
    /// Opens again and again, until no lease is in the way.
    ///
    /// # Errors
    /// Those of `open`; EWOULDBLOCK if the lease outlives the patience.
    pub fn wait<T>(&self, mut open: impl FnMut() -> io::Result<T>) -> io::Result<T> {
        let end = Instant::now() + PATIENCE;
        loop {
            let opened = open();
            if !is_leased(&opened) || Instant::now() > end {
                return opened;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut users = self.leased.users();
        if let Some(at) = users.iter().position(|user| *user == self.user) {
            users.swap_remove(at);
        }
    }
}

/// True if the open failed because of a lease.
pub fn is_leased<T>(opened: &io::Result<T>) -> bool {
    error::is(opened, Errno::WOULDBLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_few_for_a_user_and_for_all() {
        let leased = Arc::new(Leased::default());
        let first = [leased.place(1), leased.place(1)];
        assert!(first.iter().all(Option::is_some) && leased.place(1).is_none());
        let others: Vec<_> = (2..5).flat_map(|user| [leased.place(user), leased.place(user)]).collect();
        assert!(others.iter().all(Option::is_some) && leased.place(9).is_none());
        drop(first);
        assert!(leased.place(9).is_some());
    }

    #[test]
    fn an_open_waits_while_a_lease_is_in_the_way() {
        let leased = Arc::new(Leased::default());
        let place = leased.place(0).unwrap();
        let mut answers = vec![Err(Errno::NOENT), Ok(7), Err(Errno::WOULDBLOCK), Err(Errno::WOULDBLOCK)];
        let mut next = || answers.pop().unwrap().map_err(io::Error::from);
        assert_eq!(place.wait(&mut next).unwrap(), 7);
        assert_eq!(place.wait(next).unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }
}
