//! The memory of compressed blocks: slabs of 512 KiB from the kernel, filled first-fit in granules of 64 bytes.
//!
//! Not the process's allocator: after a shrink, memory must leave the process, and a heap that had a third of its blocks
//! freed at random gives next to nothing back. Here blocks may be moved (unless they are pinned), so that any slab can be
//! drained into the holes of the others and given back whole. Not size classes: blocks of 64 KiB compress to anything
//! between 100 bytes and 56 KiB, and with a few dozen slabs to a shard, classes would keep half of them nearly empty.
//!
//! A slab in use counts whole as memory held: that is what the kernel sees. One without blocks is released at once.

mod pages;
mod slab;
#[cfg(test)]
mod tests;

pub(crate) use pages::RawBytes;

use slab::{SLAB_COST, Slab};

/// The unit of memory that comes from and goes back to the kernel, bytes.
pub(crate) const SLAB: usize = 512 << 10;

/// The unit of space in a slab, bytes: a cache line.
pub(crate) const GRANULE: usize = 64;

/// By how many slabs their list grows.
const MORE_SLABS: usize = 16;

/// Where a block's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    slab: u32,
    start: u16,
}

impl Place {
    /// The slab.
    pub fn slab(self) -> usize {
        self.slab as usize
    }
}

/// Who has blocks in an arena: asked before one is moved, and told after.
pub(crate) trait Owners {
    /// Is the block being read without the lock?
    fn is_pinned(&self, owner: u32) -> bool;
    /// The block is at `place` now.
    fn moved(&mut self, owner: u32, place: Place);
}

/// There is no memory to be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoMemory;

/// Slabs.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    slabs: Vec<Slab>,
    resident: usize,
}

/// `len` bytes in whole granules.
pub(crate) fn rounded(len: usize) -> usize {
    len.next_multiple_of(GRANULE)
}

fn granules(len: usize) -> u16 {
    u16::try_from(len.div_ceil(GRANULE)).unwrap_or(u16::MAX)
}

impl Arena {
    /// The memory that it takes, bytes: slabs in use and lists.
    pub fn held(&self) -> usize {
        self.resident * SLAB_COST + self.slabs.capacity() * size_of::<Slab>()
    }

    /// What [`Arena::grow`] would add to that.
    pub fn growth(&self) -> usize {
        let list = if self.slabs.len() == self.slabs.capacity() { MORE_SLABS * size_of::<Slab>() } else { 0 };
        SLAB_COST + list
    }

    /// Slabs in use.
    pub fn resident(&self) -> usize {
        self.resident
    }

    /// Bytes free in the slabs in use.
    pub fn free(&self) -> usize {
        self.in_use().map(|(_, slab)| usize::from(slab.free()) * GRANULE).sum()
    }

    /// Finds room for `len` bytes in the slabs in use, the lowest first, so that the highest drain.
    pub fn take(&mut self, len: usize, owner: u32) -> Option<Place> {
        self.take_beside(usize::MAX, len, owner)
    }

    /// Brings one more slab into use.
    pub fn grow(&mut self) -> Result<(), NoMemory> {
        let index = match self.slabs.iter().position(|s| !s.is_resident()) {
            Some(index) => index,
            None => self.map()?,
        };
        let awake = self.slabs[index].wake();
        self.resident += usize::from(awake);
        if awake { Ok(()) } else { Err(NoMemory) }
    }

    fn map(&mut self) -> Result<usize, NoMemory> {
        if self.slabs.len() == self.slabs.capacity() {
            self.slabs.try_reserve_exact(MORE_SLABS).map_err(|_| NoMemory)?;
        }
        self.slabs.push(Slab::map().ok_or(NoMemory)?);
        Ok(self.slabs.len() - 1)
    }

    /// The block at `place` has another slot from now on.
    pub fn rename(&mut self, place: Place, owner: u32) {
        self.slabs[place.slab()].rename(place.start, owner);
    }

    /// Frees a block's place; a slab that has become empty goes back to the kernel.
    pub fn give(&mut self, place: Place) {
        let Some(slab) = self.slabs.get_mut(place.slab()) else { return };
        slab.give(place.start);
        if slab.is_empty() {
            self.release(place.slab());
        }
    }

    /// Cuts a place down to its first `len` bytes, which are no more than it has.
    pub fn cut(&mut self, place: Place, len: usize) {
        self.slabs[place.slab()].cut(place.start, granules(len));
    }

    /// Fills a place that was just taken, or cut.
    pub fn write(&mut self, place: Place, bytes: &[u8]) {
        self.slabs[place.slab()].write(place.start, bytes);
    }

    /// Where the bytes are. They stay there while the block is pinned.
    pub fn bytes(&self, place: Place, len: usize) -> RawBytes {
        self.slabs[place.slab()].bytes(place.start, len)
    }

    /// Pushes together the slab with the most room, if that makes a gap of `len` bytes that was not there.
    pub fn compact(&mut self, len: usize, owners: &mut impl Owners) -> bool {
        self.compact_beside(usize::MAX, len, owners)
    }

    /// Moves the blocks of the emptiest slab into the others' gaps, and gives the slab back if none is left in it.
    pub fn drain(&mut self, owners: &mut impl Owners) -> Drained {
        let unpinned = |slab: &Slab| !slab.extents().iter().any(|e| owners.is_pinned(e.owner));
        let emptiest = self.in_use().filter(|(_, s)| unpinned(s)).max_by_key(|(_, s)| s.free());
        let Some(from) = emptiest.map(|(index, _)| index) else { return Drained::Pinned };
        while let Some(extent) = self.slabs[from].extents().last().copied() {
            let len = usize::from(extent.len) * GRANULE;
            let place = match self.take_beside(from, len, extent.owner) {
                Some(place) => place,
                None if self.compact_beside(from, len, owners) => continue,
                None => return Drained::Left(extent.owner),
            };
            let bytes = self.slabs[from].bytes(extent.start, len);
            self.slabs[place.slab()].write_raw(place.start, bytes);
            self.slabs[from].give(extent.start);
            owners.moved(extent.owner, place);
        }
        self.release(from);
        Drained::Slab
    }

    fn compact_beside(&mut self, not: usize, len: usize, owners: &mut impl Owners) -> bool {
        let len = granules(len);
        let useful = |(index, slab): &(usize, &Slab)| *index != not && slab.free() >= len && !slab.is_full();
        let most_free = self.in_use().filter(useful).max_by_key(|(_, s)| s.free());
        let Some(index) = most_free.map(|(index, _)| index) else { return false };
        self.slabs[index].slide(index as u32, owners);
        self.slabs[index].fits(len)
    }

    fn take_beside(&mut self, not: usize, len: usize, owner: u32) -> Option<Place> {
        let len = granules(len);
        let fitting = |(index, slab): &(usize, &mut Slab)| *index != not && slab.fits(len);
        let (index, slab) = self.slabs.iter_mut().enumerate().find(fitting)?;
        slab.take(len, owner).map(|start| Place { slab: index as u32, start })
    }

    fn in_use(&self) -> impl Iterator<Item = (usize, &Slab)> {
        self.slabs.iter().enumerate().filter(|(_, slab)| slab.is_resident())
    }

    fn release(&mut self, index: usize) {
        self.slabs[index].release();
        self.resident -= 1;
    }

    /// Bytes taken, in whole granules.
    pub fn taken(&self) -> usize {
        self.resident * SLAB - self.free()
    }

    /// Flips a bit of the byte `at` of a block: for tests.
    pub fn flip_bit(&mut self, place: Place, at: usize) {
        self.slabs[place.slab()].flip_bit(place.start, at);
    }

    /// Every slab's lists and counts agree: for tests.
    pub fn is_consistent(&self) -> bool {
        self.slabs.iter().all(Slab::is_consistent) && self.resident == self.in_use().count()
    }
}

/// What [`Arena::drain`] came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drained {
    /// A slab went back to the kernel.
    Slab,
    /// The block of this slot stands in the way: the others have no room for it.
    Left(u32),
    /// Every slab has blocks that are being read.
    Pinned,
}
