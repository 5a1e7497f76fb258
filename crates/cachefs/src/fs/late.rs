//! Requests that no session answers: a queue, and a few threads for it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::sync::lock;

const THREADS: usize = 64;

type Act = Box<dyn FnOnce() + Send>;

/// Acts for a few threads, which end when nothing is left.
#[derive(Default)]
pub(super) struct Late(Mutex<Queue>);

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
    /// Does it now or when a thread is free. Without any, here.
    pub fn add(self: &Arc<Self>, act: Act) {
        let mut queue = lock(&self.0);
        queue.acts.push_back(act);
        if queue.threads == THREADS {
            return;
        }
        queue.threads += 1;
        drop(queue);
        let this = Arc::clone(self);
        let started = std::thread::Builder::new().name("late".into()).spawn(move || this.run());
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
