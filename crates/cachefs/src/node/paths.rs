//! A bounded number of descriptors of paths.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, Weak};

use rustix::process::{Resource, getrlimit};

use super::{Node, is_foreign};
use crate::sync::lock;

/// At least this many, however low the limit is: a path has as many components.
const FEWEST: usize = 64;
/// At most this many, however high the limit is.
const MOST: u64 = 65_536;

/// The nodes whose path has a descriptor.
#[derive(Debug)]
pub(super) struct Paths {
    most: usize,
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    /// The oldest first. One that was used since gets a second chance.
    named: VecDeque<Weak<Node>>,
    /// Without a name, or about to lose it: these cannot be opened again, so they stay, beyond `most`.
    pinned: Vec<Weak<Node>>,
}

impl Paths {
    /// Up to `most` descriptors, and at most a quarter of what this process may open (`RLIMIT_NOFILE`).
    pub(super) fn within_limits(most: usize) -> Self {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        Self::new(usize::try_from((limit / 4).min(MOST)).unwrap_or(FEWEST).min(most))
    }

    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(FEWEST), queue: Mutex::default() }
    }

    pub(super) fn most(&self) -> usize {
        self.most
    }

    /// The number of descriptors, including those of nodes that are gone.
    pub(super) fn len(&self) -> usize {
        let mut queue = lock(&self.queue);
        queue.sort_pinned();
        queue.named.len() + queue.pinned.len()
    }

    /// Adds a node that has a descriptor now. No node's descriptors may be locked.
    pub(super) fn add(&self, node: &Arc<Node>) {
        let mut queue = lock(&self.queue);
        queue.named.push_back(Arc::downgrade(node));
        let mut chances = queue.named.len();
        while queue.named.len() > self.most {
            let Some(weak) = queue.named.pop_front() else { break };
            let Some(oldest) = weak.upgrade() else { continue };
            if is_pinned(&oldest) {
                queue.pinned.push(weak);
            } else if chances == 0 {
                close(&oldest);
            } else if oldest.used.swap(false, Relaxed) || !close(&oldest) {
                chances -= 1;
                queue.named.push_back(weak);
            }
        }
    }
}

impl Paths {
    /// Closes the descriptors of files on other file systems that were not used since the last call: they prevent the unmounting. Call it
    /// every few seconds.
    pub(super) fn close_foreign(&self) {
        let mut queue = lock(&self.queue);
        queue.sort_pinned();
        queue.named.retain(|weak| {
            let Some(node) = weak.upgrade() else { return false };
            let is_idle = is_foreign(node.number) && !node.is_open() && !node.used.swap(false, Relaxed);
            if is_idle {
                close(&node);
            }
            !is_idle || node.descriptors_at_once().is_none_or(|descriptors| descriptors.path.is_some())
        });
    }
}

impl Queue {
    /// Forgets pinned nodes without a descriptor. What kept its name after all can be closed again.
    fn sort_pinned(&mut self) {
        for weak in std::mem::take(&mut self.pinned) {
            let Some(node) = weak.upgrade() else { continue };
            if !is_pinned(&node) {
                self.named.push_back(weak);
            } else if node.descriptors_at_once().is_none_or(|descriptors| descriptors.path.is_some()) {
                self.pinned.push(weak);
            }
        }
    }
}

/// A file without a name cannot be opened again, so it stays open.
fn is_pinned(node: &Node) -> bool {
    node.is_gone() || node.is_kept()
}

/// Closes the descriptor, unless the node was pinned meanwhile. False if a thread has the descriptors: all nodes would wait for it.
fn close(node: &Node) -> bool {
    let Some(mut descriptors) = node.descriptors_at_once() else { return false };
    if !is_pinned(node) {
        descriptors.path = None;
    }
    true
}
