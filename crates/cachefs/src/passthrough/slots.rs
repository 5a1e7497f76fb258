//! The nodes that are open with passthrough and their backing ids, in a file that outlives the worker. The ids live as long
//! as the connection. Opening such a node with another id, or with none, is EIO (`fuse_file_io_open` in fs/fuse/iomode.c). A
//! slot has 16 bytes, written by one pwrite(2): node, id, and its use: [`OPEN`] or [`LEAVES`].

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The most nodes that are open with passthrough at once, or of which a mapping may be left. Where the file system cannot tell, those are
/// all that the kernel knows and that were read by passthrough: 1 MiB of slots.
pub(super) const SLOTS: u64 = 65_536;

/// The id of a closed node. The kernel's begin with 1 (`fuse_backing_id_alloc` in fs/fuse).
pub(super) const CLOSED: u32 = 0;

const BYTES: usize = 16;
/// The node is open with passthrough.
const OPEN: u8 = 1;
/// The same, or it was; it may be mapped after that, too.
const LEAVES: u8 = 2;

/// The file; `None` where no worker can follow this one.
#[derive(Debug)]
pub(super) struct Slots {
    file: Option<File>,
    /// The free ones before `unused`.
    free: Vec<u64>,
    /// From here on all are free.
    unused: u64,
}

/// The content of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SavedId {
    pub slot: u64,
    pub node: u64,
    pub id: u32,
    pub leaves: bool,
}

impl Slots {
    /// Reads what an earlier worker saved in the file.
    pub fn new(file: Option<File>) -> (Self, Vec<SavedId>) {
        let kept = file.as_ref().map(read_all).unwrap_or_default();
        let unused = kept.last().map_or(0, |last| last.slot + 1);
        let is_free = |slot: &u64| kept.binary_search_by_key(slot, |k| k.slot).is_err();
        let free = (0..unused).filter(is_free).collect();
        (Self { file, free, unused }, kept)
    }

    /// Saves a node's id. `leaves`: a mapping may outlive it. `None`: no slot is free, or the write failed.
    pub fn put(&mut self, node: u64, id: u32, leaves: bool) -> Option<u64> {
        let slot = self.take()?;
        if self.write(slot, &encode(node, id, leaves)) {
            return Some(slot);
        }
        self.free.push(slot);
        None
    }

    fn take(&mut self) -> Option<u64> {
        if self.free.is_empty() && self.unused < SLOTS {
            self.free.push(self.unused);
            self.unused += 1;
        }
        self.free.pop()
    }

    /// The node has this id now, or [`CLOSED`], and a mapping may outlive it.
    pub fn set_leaves(&self, slot: u64, node: u64, id: u32) {
        self.write(slot, &encode(node, id, true));
    }

    /// The node no longer uses passthrough.
    pub fn clear(&mut self, slot: u64) {
        if self.write(slot, &[0; BYTES]) {
            self.free.push(slot);
        }
    }

    fn write(&self, slot: u64, bytes: &[u8; BYTES]) -> bool {
        self.file.as_ref().is_none_or(|file| file.write_all_at(bytes, slot * BYTES as u64).is_ok())
    }
}

/// In their order. A file shorter than all slots has none beyond its end.
fn read_all(file: &File) -> Vec<SavedId> {
    let mut bytes = vec![0; SLOTS as usize * BYTES];
    let mut len = 0;
    while let Ok(read @ 1..) = file.read_at(&mut bytes[len..], len as u64) {
        len += read;
    }
    bytes[..len].chunks_exact(BYTES).zip(0..).filter_map(|(slot, number)| decode(slot, number)).collect()
}

fn encode(node: u64, id: u32, leaves: bool) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes[..8].copy_from_slice(&node.to_le_bytes());
    bytes[8..12].copy_from_slice(&id.to_le_bytes());
    bytes[12] = if leaves { LEAVES } else { OPEN };
    bytes
}

fn decode(bytes: &[u8], slot: u64) -> Option<SavedId> {
    let node = u64::from_le_bytes(bytes[..8].try_into().ok()?);
    let id = u32::from_le_bytes(bytes[8..12].try_into().ok()?);
    let leaves = bytes[12] == LEAVES;
    (leaves || bytes[12] == OPEN).then_some(SavedId { slot, node, id, leaves })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_ids_reach_the_next_worker_and_cleared_ones_do_not() {
        let file = tempfile::tempfile().unwrap();
        let (mut slots, kept) = Slots::new(Some(file.try_clone().unwrap()));
        assert!(kept.is_empty());
        let (a, b) = (slots.put(u64::MAX, 7, true).unwrap(), slots.put(12, 8, false).unwrap());
        slots.clear(a);
        let (mut next, kept) = Slots::new(Some(file));
        assert_eq!(kept, [SavedId { slot: b, node: 12, id: 8, leaves: false }]);
        assert_eq!([13, 14].map(|node| next.put(node, 9, false)), [Some(a), Some(b + 1)]);
    }

    #[test]
    fn slots_are_limited() {
        let (mut slots, _) = Slots::new(None);
        assert!((0..SLOTS).all(|n| slots.put(n, 1, false).is_some()));
        assert_eq!(slots.put(1, 1, false), None);
    }
}
