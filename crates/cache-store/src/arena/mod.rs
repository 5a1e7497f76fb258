//! The memory of compressed blocks: slabs of 512 KiB from mmap(2), filled first-fit in granules of 64 bytes.
//!
//! - Not the process's allocator: after a shrink, memory must leave the process. A heap of which a random third was freed
//!   gives almost nothing back. Blocks here can be moved unless they are pinned, so any slab can be drained into the gaps of
//!   the others and released as a whole.
//! - Not size classes: a block of 64 KiB compresses to between 100 bytes and 56 KiB. A shard has a few dozen slabs, so
//!   classes would leave half of them nearly empty.
//! - A slab in use counts with its full size, as the kernel counts it. An empty slab is released at once.

mod pages;
mod slab;
#[cfg(test)]
mod tests;

pub(crate) use pages::RawBytes;

use slab::{SLAB_COST, Slab};

/// The unit of memory that the kernel gives and takes back, in bytes.
pub(crate) const SLAB: usize = 512 << 10;

/// The unit of space in a slab, in bytes: a cache line.
pub(crate) const GRANULE: usize = 64;

/// The list of slabs grows by this many.
const MORE_SLABS: usize = 16;

/// Where a block's bytes are: slab number and first granule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    slab: u32,
    start: u16,
}

impl Address {
    /// The slab's number.
    pub fn slab(self) -> usize {
        self.slab as usize
    }
}

/// The owners of the blocks in an arena.
pub(crate) trait Owners {
    /// True if the block is being read without the lock. Called before a block is moved.
    fn is_pinned(&self, owner: u32) -> bool;
    /// The block is at `address` now. Called after the move.
    fn moved(&mut self, owner: u32, address: Address);
}

/// The kernel has no memory to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoMemory;

/// All slabs of a shard.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    slabs: Vec<Slab>,
    resident: usize,
}

/// `len` bytes, rounded up to whole granules.
pub(crate) fn rounded(len: usize) -> usize {
    len.next_multiple_of(GRANULE)
}

fn granules(len: usize) -> u16 {
    u16::try_from(len.div_ceil(GRANULE)).unwrap_or(u16::MAX)
}

impl Arena {
    /// The memory of slabs in use and of lists, in bytes.
    pub fn held(&self) -> usize {
        self.resident * SLAB_COST + self.slabs.capacity() * size_of::<Slab>()
    }

    /// How much [`Arena::grow`] would add to [`Arena::held`], in bytes.
    pub fn growth(&self) -> usize {
        let list = if self.slabs.len() == self.slabs.capacity() { MORE_SLABS * size_of::<Slab>() } else { 0 };
        SLAB_COST + list
    }

    /// The number of slabs in use.
    pub fn resident(&self) -> usize {
        self.resident
    }

    /// Free bytes in the slabs in use.
    pub fn free(&self) -> usize {
        self.in_use().map(|(_, slab)| usize::from(slab.free()) * GRANULE).sum()
    }

    /// Allocates `len` bytes in the slabs in use. Takes the lowest slab that fits, so that the highest ones drain.
    pub fn take(&mut self, len: usize, owner: u32) -> Option<Address> {
        self.take_except(usize::MAX, len, owner)
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

    /// The block at `address` belongs to slot `owner` from now on.
    pub fn rename(&mut self, address: Address, owner: u32) {
        self.slabs[address.slab()].rename(address.start, owner);
    }

    /// Frees a block's bytes. A slab that becomes empty goes back to the kernel.
    pub fn give(&mut self, address: Address) {
        let Some(slab) = self.slabs.get_mut(address.slab()) else { return };
        slab.give(address.start);
        if slab.is_empty() {
            self.release(address.slab());
        }
    }

    /// Shortens a block to its first `len` bytes. `len` is at most its present length.
    pub fn cut(&mut self, address: Address, len: usize) {
        self.slabs[address.slab()].cut(address.start, granules(len));
    }

    /// Fills a block that was just allocated or shortened.
    pub fn write(&mut self, address: Address, bytes: &[u8]) {
        self.slabs[address.slab()].write(address.start, bytes);
    }

    /// The block's bytes. They stay in place while the block is pinned.
    pub fn bytes(&self, address: Address, len: usize) -> RawBytes {
        self.slabs[address.slab()].bytes(address.start, len)
    }

    /// Compacts the slab with the most free space. True if that made a gap of `len` bytes.
    pub fn compact(&mut self, len: usize, owners: &mut impl Owners) -> bool {
        self.compact_except(usize::MAX, len, owners)
    }

    /// Moves the blocks of the emptiest slab into gaps of the others. Releases the slab if that empties it.
    pub fn drain(&mut self, owners: &mut impl Owners) -> Drained {
        let Some(from) = self.emptiest(owners) else { return Drained::Pinned };
        while let Some(extent) = self.slabs[from].extents().last().copied() {
            let len = usize::from(extent.len) * GRANULE;
            let address = match self.take_except(from, len, extent.owner) {
                Some(address) => address,
                None if self.compact_except(from, len, owners) => continue,
                None => return Drained::Left(extent.owner),
            };
            let bytes = self.slabs[from].bytes(extent.start, len);
            self.slabs[address.slab()].write_raw(address.start, bytes);
            self.slabs[from].give(extent.start);
            owners.moved(extent.owner, address);
        }
        self.release(from);
        Drained::Slab
    }

    /// The slab with the most free space and no block that is being read. Few slabs are searched for such blocks: there may be thousands.
    fn emptiest(&self, owners: &impl Owners) -> Option<usize> {
        let is_pinned = |slab: &Slab| slab.extents().iter().any(|e| owners.is_pinned(e.owner));
        let better = |best: Option<(usize, u16)>, (index, slab): (usize, &Slab)| {
            let is_fuller = best.is_some_and(|(_, free)| slab.free() <= free);
            if is_fuller || is_pinned(slab) { best } else { Some((index, slab.free())) }
        };
        self.in_use().rev().fold(None, better).map(|(index, _)| index)
    }

    fn compact_except(&mut self, not: usize, len: usize, owners: &mut impl Owners) -> bool {
        let len = granules(len);
        let useful = |(index, slab): &(usize, &Slab)| *index != not && slab.free() >= len && !slab.is_full();
        let most_free = self.in_use().filter(useful).max_by_key(|(_, s)| s.free());
        let Some(index) = most_free.map(|(index, _)| index) else { return false };
        self.slabs[index].slide(index as u32, owners);
        self.slabs[index].fits(len)
    }

    fn take_except(&mut self, not: usize, len: usize, owner: u32) -> Option<Address> {
        let len = granules(len);
        let fitting = |(index, slab): &(usize, &mut Slab)| *index != not && slab.fits(len);
        let (index, slab) = self.slabs.iter_mut().enumerate().find(fitting)?;
        slab.take(len, owner).map(|start| Address { slab: index as u32, start })
    }

    fn in_use(&self) -> impl DoubleEndedIterator<Item = (usize, &Slab)> {
        self.slabs.iter().enumerate().filter(|(_, slab)| slab.is_resident())
    }

    fn release(&mut self, index: usize) {
        self.slabs[index].release();
        self.resident -= 1;
    }

    /// Allocated bytes, in whole granules.
    pub fn taken(&self) -> usize {
        self.resident * SLAB - self.free()
    }

    /// Flips a bit of byte `at` of a block. For tests.
    pub fn flip_bit(&mut self, address: Address, at: usize) {
        self.slabs[address.slab()].flip_bit(address.start, at);
    }

    /// True if every slab's lists and counts agree. For tests.
    pub fn is_consistent(&self) -> bool {
        self.slabs.iter().all(Slab::is_consistent) && self.resident == self.in_use().count()
    }
}

/// The result of [`Arena::drain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drained {
    /// A slab went back to the kernel.
    Slab,
    /// The other slabs have no room for the block of this slot.
    Left(u32),
    /// Every slab has blocks that are being read.
    Pinned,
}
