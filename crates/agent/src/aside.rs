//! Connections in which descriptors of a client wait (SCM_RIGHTS): another process closes them.
//!
//! The agent reads no descriptors. Closing such a connection drops them, which can take as long as their user likes ([`eke_linux::passed`]). From Linux 6.16 on the
//! kernel refuses them, and nothing here is used.

use std::cell::RefCell;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::rc::Rc;

use eke_linux::passed;

/// With so many connections in the queue, other users' connections wait for the next round.
const FULL: usize = passed::MOST_OF_A_PROCESS;
/// Most processes at a time. Each ends at once, unless what it closes hangs.
const MOST_PROCESSES: usize = 8;
/// Time between two processes, so that a flood costs a few percent of a core.
const EVERY_MS: u64 = 50;
/// Time to the next attempt while all processes hang, or none can be started.
const REST_MS: u64 = 1_000;

/// The queue, which clients share.
#[derive(Debug, Clone, Default)]
pub struct Aside(Rc<RefCell<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    connections: Vec<Rc<UnixStream>>,
    processes: Vec<Child>,
    not_before_ms: u64,
}

impl Aside {
    /// Ends a connection of user `uid`: takes what waits in it, up to the first descriptors. If there are some, keeps it for another process. The caller drops its
    /// own reference next.
    pub fn end(&self, connection: &Rc<UnixStream>, uid: u32) {
        if !passed::are_left(connection) {
            return;
        }
        tracing::warn!(
            "User {uid} passed descriptors to the agent, which takes none: the connection is closed."
        );
        // No answer follows, and the client sees its end before the last reference is dropped.
        let _ = connection.shutdown(Shutdown::Both);
        self.0.borrow_mut().connections.push(Rc::clone(connection));
    }

    /// Whether too many wait.
    pub fn is_full(&self) -> bool {
        self.0.borrow().connections.len() >= FULL
    }

    /// Passes the queue to another process, if it is time.
    pub fn pass_on(&self, now_ms: u64) {
        let mut queue = self.0.borrow_mut();
        queue.processes.retain_mut(|process| matches!(process.try_wait(), Ok(None)));
        if queue.connections.is_empty() || now_ms < queue.not_before_ms {
            return;
        }
        queue.not_before_ms = now_ms + REST_MS;
        if queue.processes.len() >= MOST_PROCESSES {
            return;
        }
        match passed::close_elsewhere(&mut queue.connections) {
            Ok(process) => {
                queue.processes.push(process);
                queue.not_before_ms = now_ms + EVERY_MS;
            }
            Err(e) => tracing::warn!("Connections with descriptors of users cannot be closed yet: {e}."),
        }
    }

    /// When to call [`Aside::pass_on`] next, if any connection waits.
    pub fn due_ms(&self) -> Option<u64> {
        let queue = self.0.borrow();
        (!queue.connections.is_empty()).then_some(queue.not_before_ms)
    }
}

impl Drop for Queue {
    /// The end of this process closes them, which does not linger.
    fn drop(&mut self) {
        std::mem::forget(std::mem::take(&mut self.connections));
    }
}
