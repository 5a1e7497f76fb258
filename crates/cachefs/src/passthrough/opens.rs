//! Which open files the kernel reads itself (passthrough, Linux 6.9; Documentation/filesystems/fuse/fuse-passthrough.rst).
//!
//! The kernel has one mode for an inode while it is open: all opens are cached, or all use passthrough with one backing id
//! (fs/fuse/iomode.c); anything else is EIO. So the opens of each node are counted here. The first open chooses the mode,
//! later ones follow, and the last release closes the id. The kernel opens the backing file anew for each open, with that
//! open's flags, so an id may be made from a read-only descriptor.
//!
//! *Take-over.* The ids of a dead worker stay in the connection, and files open with passthrough keep working. The next
//! worker gets the ids from the slots and the open counts from the ledger ([`Opens::adopt`]). An id that it never uses is
//! left until the connection ends, because the library closes only ids that came with a reply. The same holds for an id that
//! the dead worker registered but did not save.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eke_cache_policy::admission::DataPath;
use fuser::{BackingId, ReplyCreate, ReplyOpen};

use super::slots::Slots;
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
                // slots of a dead worker.
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
    slots: Slots,
}

#[derive(Debug)]
struct NodeOpens<I> {
    opens: u64,
    passthrough: Option<RegisteredFile<I>>,
}

#[derive(Debug)]
struct RegisteredFile<I> {
    slot: u64,
    number: u32,
    /// `None` until the first open after a take-over.
    id: Option<Arc<I>>,
}

impl<I: RegisteredId> Opens<I> {
    /// Without opens, or with the ids that an earlier worker saved in `slots`; then call [`Self::adopt`] for the counts.
    pub fn new(slots: Option<File>) -> Self {
        let (slots, kept) = Slots::new(slots);
        let by_node = kept.into_iter().map(|kept| {
            let passthrough = Some(RegisteredFile { slot: kept.slot, number: kept.id, id: None });
            (kept.node, NodeOpens { opens: 0, passthrough })
        });
        Self { table: Mutex::new(OpenTable { by_node: by_node.collect(), slots }) }
    }

    /// Sets the counts of nodes that were open when the last worker died. Other saved ids are closed by now.
    pub fn adopt(&self, opened: impl IntoIterator<Item = (u64, u64)>) {
        let mut table = self.lock();
        for (node, opens) in opened.into_iter().filter(|(_, opens)| *opens > 0) {
            table.by_node.entry(node).or_insert(NodeOpens { opens: 0, passthrough: None }).opens = opens;
        }
        let closed: Vec<u64> =
            table.by_node.iter().filter(|(_, open)| open.opens == 0).map(|(n, _)| *n).collect();
        closed.into_iter().for_each(|node| table.remove(node));
    }

    /// Counts an open of `node`. Reply with `opened_passthrough` and the returned id, or with `opened` for `None`. `choose`
    /// is called only if the node is not open. Without `backing` the open is cached. If the kernel refuses, its error goes
    /// to `refused`.
    pub fn open<R: Register<Id = I>>(
        &self,
        node: u64,
        reply: &R,
        backing: Option<BorrowedFd<'_>>,
        choose: impl FnOnce() -> DataPath,
        refused: impl FnOnce(io::Error),
    ) -> Option<Arc<I>> {
        let mut table = self.lock();
        if let Some(open) = table.by_node.get_mut(&node).filter(|open| open.opens > 0) {
            open.opens += 1;
            let backing = open.passthrough.as_mut()?;
            let id = backing.id.get_or_insert_with(|| Arc::new(reply.own(backing.number)));
            return Some(Arc::clone(id));
        }
        table.remove(node);
        let passthrough = match (choose(), backing) {
            (DataPath::Cached, _) | (_, None) => None,
            (DataPath::Passthrough, Some(backing)) => {
                table.register(node, reply, backing).unwrap_or_else(|e| {
                    refused(e);
                    None
                })
            }
        };
        let id = passthrough.as_ref().and_then(|backing| backing.id.clone());
        table.by_node.insert(node, NodeOpens { opens: 1, passthrough });
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

    fn lock(&self) -> MutexGuard<'_, OpenTable<I>> {
        lock(&self.table)
    }
}

impl<I: RegisteredId> OpenTable<I> {
    /// `None`: no slot is free.
    fn register<R: Register<Id = I>>(
        &mut self,
        node: u64,
        reply: &R,
        backing: BorrowedFd<'_>,
    ) -> io::Result<Option<RegisteredFile<I>>> {
        let number = reply.register(backing)?;
        let id = Arc::new(reply.own(number));
        Ok(self.slots.put(node, number).map(|slot| RegisteredFile { slot, number, id: Some(id) }))
    }

    fn remove(&mut self, node: u64) {
        if let Some(backing) = self.by_node.remove(&node).and_then(|open| open.passthrough) {
            self.slots.clear(backing.slot);
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
