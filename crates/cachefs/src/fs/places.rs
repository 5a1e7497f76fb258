//! Places for requests that may wait for long: a number for each user, and one for all together.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::sync::lock;

/// The places, and the users of those that are taken.
#[derive(Debug)]
pub(super) struct Places {
    of_user: usize,
    most: usize,
    users: Mutex<Vec<u32>>,
}

/// A place; given back when it is dropped.
#[derive(Debug)]
#[must_use = "it is given back at once"]
pub(super) struct Place {
    places: Arc<Places>,
    user: u32,
}

impl Places {
    /// `of_user` for one user, and `most` in all.
    pub fn new(of_user: usize, most: usize) -> Arc<Self> {
        Arc::new(Self { of_user, most, users: Mutex::new(Vec::with_capacity(most)) })
    }

    /// A place for a request of this user; `None` if there is none.
    pub fn take(self: &Arc<Self>, user: u32) -> Option<Place> {
        let mut users = self.users();
        let own = users.iter().filter(|other| **other == user).count();
        if users.len() >= self.most || own >= self.of_user {
            return None;
        }
        users.push(user);
        Some(Place { places: Arc::clone(self), user })
    }

    fn users(&self) -> MutexGuard<'_, Vec<u32>> {
        lock(&self.users)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut users = self.places.users();
        if let Some(at) = users.iter().position(|user| *user == self.user) {
            users.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_few_for_a_user_and_for_all() {
        let places = Places::new(2, 8);
        let first = [places.take(1), places.take(1)];
        assert!(first.iter().all(Option::is_some) && places.take(1).is_none());
        let others: Vec<_> = (2..5).flat_map(|user| [places.take(user), places.take(user)]).collect();
        assert!(others.iter().all(Option::is_some) && places.take(9).is_none());
        drop(first);
        assert!(places.take(9).is_some());
    }

    #[test]
    fn a_place_comes_back_also_when_its_thread_panics() {
        let places = Places::new(1, 1);
        let place = places.take(1);
        let panicked = std::thread::spawn(move || {
            let _place = place;
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panicked.join().is_err() && places.take(1).is_some());
    }
}
