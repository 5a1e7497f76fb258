//! Which open files the kernel reads itself (passthrough, Linux 6.9; Documentation/filesystems/fuse/fuse-passthrough.rst).
//!
//! The kernel has one mode for an inode while it is open: all its opens are cached, or all use passthrough with one backing id
//! (fs/fuse/iomode.c); anything else is EIO. So the opens of each node are counted here, the first one chooses the way,
//! the others follow, and the id is closed with the last release. The kernel opens the backing file anew for each open, with the
//! flags of that one: an id may be made from a descriptor that is for reading only.
//!
//! *A worker that dies* leaves its ids in the connection, and the files that are open by passthrough work on. The next worker gets
//! the ids from the slots and the number of opens from the ledger ([`Opens::adopt`]). An id that it did not have to
//! use until the last release is not closed but left to the connection's end, because the library closes only
//! what came with a reply. An id that was registered when the worker died before it had noted it, is left, too.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eke_cache_policy::admission::Way;
use fuser::{BackingId, ReplyCreate, ReplyOpen};

use super::slots::Slots;
use crate::rights;

/// What registers a backing file for the kernel: the reply to an open.
pub trait Register {
    /// A registered file; closed when dropped.
    type Id: Keep;

    /// Registers; the id's number, which is not closed by itself.
    ///
    /// # Errors
    /// EPERM: not root. ELOOP: the backing file system is stacked too deep. ENOTTY: no passthrough in this kernel.
    fn register(&self, below: BorrowedFd<'_>) -> io::Result<u32>;

    /// The owner of a number, registered by this or an earlier worker on the same connection.
    fn own(&self, id: u32) -> Self::Id;
}

/// A registered file.
pub trait Keep: Sized {
    /// Lets go without closing: the next worker has it.
    fn leave(self);
}

impl Keep for BackingId {
    fn leave(self) {
        let _ = self.into_raw();
    }
}

macro_rules! register_by {
    ($reply:ty) => {
        impl Register for $reply {
            type Id = BackingId;

            fn register(&self, below: BorrowedFd<'_>) -> io::Result<u32> {
                rights::registering(below, || self.open_backing(below).map(BackingId::into_raw))
            }

            #[expect(unsafe_code, reason = "fuser's way to own an id by its number")]
            fn own(&self, id: u32) -> BackingId {
                // SAFETY: the number is of this connection, and `Opens` owns it once: it comes from `register`, or from the slots
                // of a worker that is dead.
                unsafe { self.wrap_backing(id) }
            }
        }
    };
}

register_by!(ReplyOpen);
register_by!(ReplyCreate);

/// The opens of nodes.
#[derive(Debug)]
pub struct Opens<I: Keep = BackingId> {
    inside: Mutex<Inside<I>>,
}

#[derive(Debug)]
struct Inside<I> {
    by_node: HashMap<u64, Open<I>>,
    slots: Slots,
}

#[derive(Debug)]
struct Open<I> {
    opens: u64,
    passthrough: Option<Backing<I>>,
}

#[derive(Debug)]
struct Backing<I> {
    slot: u64,
    number: u32,
    /// None until the first open after a worker's death.
    id: Option<Arc<I>>,
}

impl<I: Keep> Opens<I> {
    /// None open, or what an earlier worker left in `slots`; then [`Self::adopt`] says how often.
    pub fn new(slots: Option<File>) -> Self {
        let (slots, kept) = Slots::new(slots);
        let by_node = kept.into_iter().map(|kept| {
            let passthrough = Some(Backing { slot: kept.slot, number: kept.id, id: None });
            (kept.node, Open { opens: 0, passthrough })
        });
        Self { inside: Mutex::new(Inside { by_node: by_node.collect(), slots }) }
    }

    /// The nodes that were open when the last worker died, and how often. What the slots have besides is closed by now.
    pub fn adopt(&self, opened: impl IntoIterator<Item = (u64, u64)>) {
        let mut inside = self.lock();
        for (node, opens) in opened.into_iter().filter(|(_, opens)| *opens > 0) {
            inside.by_node.entry(node).or_insert(Open { opens: 0, passthrough: None }).opens = opens;
        }
        let closed: Vec<u64> =
            inside.by_node.iter().filter(|(_, open)| open.opens == 0).map(|(n, _)| *n).collect();
        closed.into_iter().for_each(|node| inside.remove(node));
    }

    /// Counts an open of `node`, to be answered with `opened_passthrough` and this id if there is one, with `opened` if not.
    /// `wish` is asked only if the node is not open otherwise, and without a file `below` it cannot be granted. Why it could not be granted goes to `refused`.
    pub fn open<R: Register<Id = I>>(
        &self,
        node: u64,
        reply: &R,
        below: Option<BorrowedFd<'_>>,
        wish: impl FnOnce() -> Way,
        refused: impl FnOnce(io::Error),
    ) -> Option<Arc<I>> {
        let mut inside = self.lock();
        if let Some(open) = inside.by_node.get_mut(&node).filter(|open| open.opens > 0) {
            open.opens += 1;
            let backing = open.passthrough.as_mut()?;
            let id = backing.id.get_or_insert_with(|| Arc::new(reply.own(backing.number)));
            return Some(Arc::clone(id));
        }
        inside.remove(node);
        let passthrough = match (wish(), below) {
            (Way::Cached, _) | (_, None) => None,
            (Way::Passthrough, Some(below)) => inside.register(node, reply, below).unwrap_or_else(|e| {
                refused(e);
                None
            }),
        };
        let id = passthrough.as_ref().and_then(|backing| backing.id.clone());
        inside.by_node.insert(node, Open { opens: 1, passthrough });
        id
    }

    /// Counts a release of `node`; with the last one its id is closed.
    pub fn release(&self, node: u64) {
        let mut inside = self.lock();
        let Some(open) = inside.by_node.get_mut(&node) else { return };
        open.opens = open.opens.saturating_sub(1);
        if open.opens == 0 {
            inside.remove(node);
        }
    }

    /// Nodes that are open by passthrough.
    pub fn passthrough(&self) -> u64 {
        self.lock().by_node.values().filter(|open| open.passthrough.is_some()).count() as u64
    }

    fn lock(&self) -> MutexGuard<'_, Inside<I>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<I: Keep> Inside<I> {
    /// `None`: no slot is left.
    fn register<R: Register<Id = I>>(
        &mut self,
        node: u64,
        reply: &R,
        below: BorrowedFd<'_>,
    ) -> io::Result<Option<Backing<I>>> {
        let number = reply.register(below)?;
        let id = Arc::new(reply.own(number));
        Ok(self.slots.put(node, number).map(|slot| Backing { slot, number, id: Some(id) }))
    }

    fn remove(&mut self, node: u64) {
        if let Some(backing) = self.by_node.remove(&node).and_then(|open| open.passthrough) {
            self.slots.clear(backing.slot);
        }
    }
}

/// A worker that ends leaves its ids to the next one; those of a mount that ends go with the connection.
impl<I: Keep> Drop for Opens<I> {
    fn drop(&mut self) {
        let inside = self.inside.get_mut().unwrap_or_else(PoisonError::into_inner);
        let ids = inside.by_node.drain().filter_map(|(_, open)| open.passthrough?.id);
        ids.filter_map(Arc::into_inner).for_each(Keep::leave);
    }
}

#[cfg(test)]
#[path = "opens_tests.rs"]
mod tests;
