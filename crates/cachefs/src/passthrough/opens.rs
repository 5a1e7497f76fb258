//! Which open files the kernel reads itself (passthrough, Linux 6.9; Documentation/filesystems/fuse/fuse-passthrough.rst).
//!
//! The kernel has one mode for an inode while it is open: all opens are cached, or all use passthrough with one backing id
//! (fs/fuse/iomode.c); anything else is EIO. So the opens of each node are counted here. The first open chooses the mode,
//! later ones follow, and the last release closes the id. The kernel opens the backing file anew for each open, with that
//! open's flags, so an id may be made from a read-only descriptor.
//!
//! *Mappings* (mmap) of such a file are of the backing file, and outlive the open: the kernel releases the open at once. They keep
//! the kernel's inode, so what may be left of a node ends when the kernel forgets it.
//!
//! *Take-over.* The ids of a dead worker stay in the connection, and files open with passthrough keep working. The next
//! worker gets the ids from the slots and the open counts from the ledger ([`Opens::adopt`]). The library closes only ids that came
//! with a reply, so an id that is not needed any more is closed at the next open of any node. An id that the dead worker registered but
//! did not save is left until the connection ends.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eke_cache_policy::admission::DataPath;
use fuser::{BackingId, ReplyCreate, ReplyOpen};

use super::slots::{CLOSED, SavedId, Slots};
use crate::rights;
use crate::sync::lock;

/// Registers a backing file with the kernel: the reply to an open.
pub trait Register {
    /// A registered file; dropping it closes it.
    type Id: RegisteredId;

    /// Registers a file. Returns the id's number, which is not closed automatically.
    ///
    /// # Errors
    /// EPERM: not root. ELOOP: the backing file system is stacked too deep. ENOTTY: the kernel has no passthrough.
    fn register(&self, backing: BorrowedFd<'_>) -> io::Result<u32>;

    /// Takes ownership of an id that this or an earlier worker registered on the same connection.
    fn own(&self, id: u32) -> Self::Id;
}

/// A registered file.
pub trait RegisteredId: Sized {
    /// Drops it without closing the file: the next worker has it.
    fn leave(self);
}

impl RegisteredId for BackingId {
    fn leave(self) {
        let _ = self.into_raw();
    }
}

macro_rules! register_by {
    ($reply:ty) => {
        impl Register for $reply {
            type Id = BackingId;

            fn register(&self, backing: BorrowedFd<'_>) -> io::Result<u32> {
                rights::registering(backing, || self.open_backing(backing).map(BackingId::into_raw))
            }

            #[expect(unsafe_code, reason = "fuser's way to own an id by its number")]
            fn own(&self, id: u32) -> BackingId {
                // SAFETY: the number is of this connection, and `Opens` owns it once: it comes from `register`, or from the
                // slots of a dead worker, which have no closed ids.
                unsafe { self.wrap_backing(id) }
            }
        }
    };
}

register_by!(ReplyOpen);
register_by!(ReplyCreate);

/// The opens of all nodes.
#[derive(Debug)]
pub struct Opens<I: RegisteredId = BackingId> {
    table: Mutex<OpenTable<I>>,
}

#[derive(Debug)]
struct OpenTable<I> {
    by_node: HashMap<u64, NodeOpens<I>>,
    /// The slots of closed nodes of which a mapping may be left.
    left: HashMap<u64, u64>,
    /// Ids of an earlier worker that are not needed any more.
    unneeded: Vec<(u32, ClosedNode)>,
    slots: Slots,
}

#[derive(Debug)]
struct NodeOpens<I> {
    opens: u64,
    passthrough: Option<RegisteredFile<I>>,
}

/// A node whose id is closed, or will be.
#[derive(Debug)]
struct ClosedNode {
    node: u64,
    /// `None`: a mapping may be left.
    unused_slot: Option<u64>,
}

#[derive(Debug)]
struct RegisteredFile<I> {
    slot: u64,
    number: u32,
    /// A mapping may be left that the next open, or the next worker, must know of.
    leaves: bool,
    /// `None` until the first open after a take-over.
    id: Option<Arc<I>>,
}

/// An open that is about to be answered.
#[derive(Debug)]
pub struct NewOpen<'a, R> {
    /// The node's number.
    pub node: u64,
    /// The reply.
    pub reply: &'a R,
    /// The backing file, open at least for reading. Without it the open is cached.
    pub backing: Option<BorrowedFd<'a>>,
    /// With passthrough it may leave a mapping whose stores nobody reports, or that only the slots can make known.
    pub leaves: bool,
}

impl<I: RegisteredId> Opens<I> {
    /// Without opens, or with the ids that an earlier worker saved in `slots`; then call [`Self::adopt`] for the counts.
    pub fn new(slots: Option<File>) -> Self {
        let (slots, kept) = Slots::new(slots);
        let (closed, open): (Vec<_>, Vec<_>) = kept.into_iter().partition(|kept| kept.id == CLOSED);
        let left = closed.into_iter().map(|kept| (kept.node, kept.slot)).collect();
        let by_node = open.into_iter().map(|kept| {
            let SavedId { slot, node, id, leaves } = kept;
            let passthrough = Some(RegisteredFile { slot, number: id, leaves, id: None });
            (node, NodeOpens { opens: 0, passthrough })
        });
        let by_node = by_node.collect();
        Self { table: Mutex::new(OpenTable { by_node, left, unneeded: Vec::new(), slots }) }
    }

    /// Sets the counts of nodes that were open when the last worker died. Other saved ids are of no use.
    pub fn adopt(&self, opened: impl IntoIterator<Item = (u64, u64)>) {
        let mut table = self.lock();
        for (node, opens) in opened.into_iter().filter(|(_, opens)| *opens > 0) {
            table.by_node.entry(node).or_insert(NodeOpens { opens: 0, passthrough: None }).opens = opens;
        }
        let closed: Vec<u64> =
            table.by_node.iter().filter(|(_, open)| open.opens == 0).map(|(n, _)| *n).collect();
        closed.into_iter().for_each(|node| table.remove(node));
    }

    /// Counts an open. Reply with `opened_passthrough` and the returned id, or with `opened` for `None`. `choose` is called only
    /// if the node is not open. It gets whether a mapping may be left of an open that could leave one, and returns `Cached` only if
    /// none is. If the kernel refuses, its error goes to `refused`.
    pub fn open<R: Register<Id = I>>(
        &self,
        new: &NewOpen<'_, R>,
        choose: impl FnOnce(bool) -> DataPath,
        refused: impl FnOnce(io::Error),
    ) -> Option<Arc<I>> {
        let mut table = self.lock();
        table.close_unneeded(new.reply);
        if table.by_node.get(&new.node).is_some_and(|open| open.opens > 0) {
            return table.follow(new);
        }
        table.remove(new.node);
        let left = table.left.contains_key(&new.node);
        let passthrough = match (choose(left), new.backing) {
            (DataPath::Cached, _) => {
                table.forget(new.node);
                None
            }
            (DataPath::Passthrough, None) => None,
            (DataPath::Passthrough, Some(backing)) => table.register(new, backing).unwrap_or_else(|e| {
                refused(e);
                None
            }),
        };
        let id = passthrough.as_ref().and_then(|backing| backing.id.clone());
        table.by_node.insert(new.node, NodeOpens { opens: 1, passthrough });
        id
    }

    /// Counts a release of `node`. The last one closes its id.
    pub fn release(&self, node: u64) {
        let mut table = self.lock();
        let Some(open) = table.by_node.get_mut(&node) else { return };
        open.opens = open.opens.saturating_sub(1);
        if open.opens == 0 {
            table.remove(node);
        }
    }

    /// The number of nodes that are open with passthrough.
    pub fn passthrough(&self) -> u64 {
        self.lock().by_node.values().filter(|open| open.passthrough.is_some()).count() as u64
    }

    /// True if the node is open with passthrough.
    pub fn is_passthrough(&self, node: u64) -> bool {
        self.lock().by_node.get(&node).is_some_and(|open| open.passthrough.is_some())
    }

    /// True if it is open with passthrough, or was, by an open that left mappings (see [`NewOpen::leaves`]).
    pub fn leaves(&self, node: u64) -> bool {
        let table = self.lock();
        let open = table.by_node.get(&node).and_then(|open| open.passthrough.as_ref());
        open.is_some_and(|open| open.leaves) || table.left.contains_key(&node)
    }

    /// The kernel has forgotten the node: no mapping is left.
    pub fn forget(&self, node: u64) {
        self.lock().forget(node);
    }

    fn lock(&self) -> MutexGuard<'_, OpenTable<I>> {
        lock(&self.table)
    }
}

impl<I: RegisteredId> OpenTable<I> {
    /// One more open of an open node has its path.
    fn follow<R: Register<Id = I>>(&mut self, new: &NewOpen<'_, R>) -> Option<Arc<I>> {
        let open = self.by_node.get_mut(&new.node)?;
        open.opens += 1;
        let backing = open.passthrough.as_mut()?;
        if new.leaves && !backing.leaves {
            backing.leaves = true;
            self.slots.set_leaves(backing.slot, new.node, backing.number);
        }
        Some(Arc::clone(backing.id.get_or_insert_with(|| Arc::new(new.reply.own(backing.number)))))
    }

    /// `None`: no slot is free. A node of which a mapping may be left has one.
    fn register<R: Register<Id = I>>(
        &mut self,
        new: &NewOpen<'_, R>,
        backing: BorrowedFd<'_>,
    ) -> io::Result<Option<RegisteredFile<I>>> {
        let number = new.reply.register(backing)?;
        let id = Arc::new(new.reply.own(number));
        let left = self.left.remove(&new.node);
        let leaves = new.leaves || left.is_some();
        if let Some(slot) = left {
            self.slots.set_leaves(slot, new.node, number);
        }
        let slot = left.or_else(|| self.slots.put(new.node, number, leaves));
        Ok(slot.map(|slot| RegisteredFile { slot, number, leaves, id: Some(id) }))
    }

    /// The slot is changed last: a worker that dies before knows what it may have to close.
    fn remove(&mut self, node: u64) {
        let Some(RegisteredFile { slot, number, leaves, id }) =
            self.by_node.remove(&node).and_then(|open| open.passthrough)
        else {
            return;
        };
        if leaves {
            self.left.insert(node, slot);
        }
        let closed = ClosedNode { node, unused_slot: (!leaves).then_some(slot) };
        match id {
            None => self.unneeded.push((number, closed)),
            Some(id) => {
                drop(id);
                self.closed(&closed);
            }
        }
    }

    fn closed(&mut self, closed: &ClosedNode) {
        match (closed.unused_slot, self.left.get(&closed.node)) {
            (Some(slot), _) => self.slots.clear(slot),
            (None, Some(slot)) => self.slots.set_leaves(*slot, closed.node, CLOSED),
            (None, None) => {}
        }
    }

    fn close_unneeded<R: Register<Id = I>>(&mut self, reply: &R) {
        for (number, closed) in std::mem::take(&mut self.unneeded) {
            drop(reply.own(number));
            self.closed(&closed);
        }
    }

    /// No mapping of the node is left.
    fn forget(&mut self, node: u64) {
        if let Some(slot) = self.left.remove(&node) {
            self.slots.clear(slot);
        }
    }
}

/// A worker that ends leaves its ids to the next one. When the mount ends, they go with the connection.
impl<I: RegisteredId> Drop for Opens<I> {
    fn drop(&mut self) {
        let table = self.table.get_mut().unwrap_or_else(PoisonError::into_inner);
        let ids = table.by_node.drain().filter_map(|(_, open)| open.passthrough?.id);
        ids.filter_map(Arc::into_inner).for_each(RegisteredId::leave);
    }
}

#[cfg(test)]
#[path = "opens_tests.rs"]
mod tests;
