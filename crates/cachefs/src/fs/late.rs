//! Requests that no session answers: a queue for each user, and a few threads that take from these in turn.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::sync::lock;

const THREADS: usize = 64;
/// How long a thread waits for another act: to start one takes longer than most acts.
const LINGER: Duration = Duration::from_secs(1);

type Act = Box<dyn FnOnce() + Send>;

/// Acts for a few threads, which end when nothing came for a while.
#[derive(Default)]
pub(super) struct Late {
    queue: Mutex<Queue>,
    added: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Those who wait, in the order of their turns, each with its acts.
    users: VecDeque<(u32, VecDeque<Act>)>,
    threads: usize,
    /// Threads that wait for an act.
    idle: usize,
}

impl Queue {
    fn push(&mut self, user: u32, act: Act) {
        if let Some((_, acts)) = self.users.iter_mut().find(|(other, _)| *other == user) {
            return acts.push_back(act);
        }
        self.users.push_back((user, VecDeque::from([act])));
    }

    /// The oldest act of the user whose turn it is.
    fn pop(&mut self) -> Option<Act> {
        let (user, mut acts) = self.users.pop_front()?;
        let act = acts.pop_front();
        if !acts.is_empty() {
            self.users.push_back((user, acts));
        }
        act
    }

    fn len(&self) -> usize {
        self.users.iter().map(|(_, acts)| acts.len()).sum()
    }
}

impl std::fmt::Debug for Late {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Late")
    }
}

impl Late {
    /// Does it for this user, now or when a thread is free. Without any, here.
    pub fn add(self: &Arc<Self>, user: u32, act: Act) {
        let mut queue = lock(&self.queue);
        queue.push(user, act);
        if queue.idle >= queue.len() {
            return self.added.notify_one();
        }
        if queue.threads == THREADS {
            return;
        }
        queue.threads += 1;
        drop(queue);
        let this = Arc::clone(self);
        let started = std::thread::Builder::new().name("late".into()).spawn(move || this.run());
        if started.is_err() && self.has_no_thread() {
            self.do_all();
        }
    }

    /// True if there is no thread that could do what the one that did not start was for.
    fn has_no_thread(&self) -> bool {
        let mut queue = lock(&self.queue);
        queue.threads -= 1;
        queue.threads == 0
    }

    /// Without a thread.
    fn do_all(&self) {
        let next = || lock(&self.queue).pop();
        while let Some(act) = next() {
            act();
        }
    }

    /// As one of the threads.
    fn run(&self) {
        while let Some(act) = self.next() {
            act();
        }
    }

    /// `None`: this thread ends.
    fn next(&self) -> Option<Act> {
        let mut queue = lock(&self.queue);
        if queue.users.is_empty() {
            queue.idle += 1;
            let is_empty = |queue: &mut Queue| queue.users.is_empty();
            let waited = self.added.wait_timeout_while(queue, LINGER, is_empty);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
            queue.idle -= 1;
        }
        let next = queue.pop();
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
    fn late_acts_are_all_done_by_few_threads() {
        const ACTS: usize = 3 * THREADS;
        let late = Arc::new(Late::default());
        let (gate, done) = (Arc::new((Mutex::new(false), Condvar::new())), mpsc::channel());
        let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..ACTS {
            let (gate, done) = (Arc::clone(&gate), done.0.clone());
            let (running, most) = (Arc::clone(&running), Arc::clone(&most));
            late.add(
                0,
                Box::new(move || {
                    most.fetch_max(running.fetch_add(1, SeqCst) + 1, SeqCst);
                    let closed = lock(&gate.0);
                    drop(gate.1.wait_timeout_while(closed, Duration::from_secs(60), |open| !*open).unwrap());
                    running.fetch_sub(1, SeqCst);
                    done.send(()).unwrap();
                }),
            );
        }
        *lock(&gate.0) = true;
        gate.1.notify_all();
        (0..ACTS).for_each(|_| done.1.recv_timeout(Duration::from_secs(60)).unwrap());
        assert!(most.load(SeqCst) <= THREADS);
    }

    #[test]
    fn late_acts_of_users_take_turns() {
        let done = Arc::new(Mutex::new(Vec::new()));
        let mut queue = Queue::default();
        for user in [1, 1, 1, 1, 2, 3, 2] {
            let done = Arc::clone(&done);
            queue.push(user, Box::new(move || lock(&done).push(user)));
        }
        assert_eq!(queue.len(), 7);
        while let Some(act) = queue.pop() {
            act();
        }
        assert_eq!(*lock(&done), [1, 2, 3, 1, 2, 1, 1]);
    }
}
