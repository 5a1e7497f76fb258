//! One slab: a mapping, and the list of its allocated parts.

use super::pages::{Pages, RawBytes};
use super::{Address, GRANULE, Owners, SLAB};

/// The granules of a slab.
pub(super) const GRANULES: u16 = (SLAB / GRANULE) as u16;

/// The most extents of a slab: blocks of half a KiB fill it. The list is allocated with the slab, so that later calls never
/// allocate and a slab's cost is known.
const MOST_EXTENTS: usize = 1024;

/// The memory of a slab in use and its list, in bytes.
pub(super) const SLAB_COST: usize = SLAB + MOST_EXTENTS * size_of::<Extent>();

/// An allocated part, in granules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub start: u16,
    pub len: u16,
    /// The slot of the block in it.
    pub owner: u32,
}

impl Extent {
    const fn end(self) -> u16 {
        self.start + self.len
    }
}

/// 512 KiB of memory, and its extents in order of address.
#[derive(Debug)]
pub(super) struct Slab {
    pages: Pages,
    extents: Vec<Extent>,
    /// Free granules.
    free: u16,
    /// The longest run of free granules.
    longest: u16,
    /// The slab counts as memory in use. If not, it has no extent and no memory.
    resident: bool,
}

impl Slab {
    /// A slab without memory. `None`: no address space.
    pub fn map() -> Option<Self> {
        let pages = Pages::map(SLAB)?;
        Some(Self { pages, extents: Vec::new(), free: GRANULES, longest: GRANULES, resident: false })
    }

    pub fn is_resident(&self) -> bool {
        self.resident
    }

    /// Takes the slab into use. False: no memory for the list.
    pub fn wake(&mut self) -> bool {
        self.resident = self.extents.try_reserve_exact(MOST_EXTENTS).is_ok();
        self.resident
    }

    /// Gives the memory of the slab and of its list back.
    pub fn release(&mut self) {
        debug_assert!(self.extents.is_empty());
        self.pages.release();
        self.extents = Vec::new();
        self.resident = false;
    }

    pub fn is_empty(&self) -> bool {
        self.extents.is_empty()
    }

    /// Free granules.
    pub fn free(&self) -> u16 {
        self.free
    }

    /// True if the list has no room for another extent.
    pub fn is_full(&self) -> bool {
        self.extents.len() == MOST_EXTENTS
    }

    pub fn fits(&self, len: u16) -> bool {
        self.resident && self.longest >= len && !self.is_full()
    }

    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Allocates `len` granules in the first gap that fits. `None`: no gap is long enough.
    pub fn take(&mut self, len: u16, owner: u32) -> Option<u16> {
        if !self.fits(len) {
            return None;
        }
        let (index, start, gap) = self.gaps().find(|&(_, _, gap)| gap >= len)?;
        self.extents.insert(index, Extent { start, len, owner });
        self.free -= len;
        if gap == self.longest {
            self.measure();
        }
        Some(start)
    }

    /// Frees all but the first `len` granules of the extent at `start`.
    pub fn cut(&mut self, start: u16, len: u16) {
        let Ok(index) = self.extents.binary_search_by_key(&start, |e| e.start) else { return };
        let cut = self.extents[index].len.saturating_sub(len);
        self.extents[index].len -= cut;
        self.free += cut;
        self.longest = self.longest.max(self.gap_behind(index));
    }

    /// The extent at `start` belongs to slot `owner` from now on.
    pub fn rename(&mut self, start: u16, owner: u32) {
        if let Ok(index) = self.extents.binary_search_by_key(&start, |e| e.start) {
            self.extents[index].owner = owner;
        }
    }

    /// Frees the extent that starts at `start`. Does nothing if there is none.
    pub fn give(&mut self, start: u16) {
        let Ok(index) = self.extents.binary_search_by_key(&start, |e| e.start) else { return };
        self.free += self.extents.remove(index).len;
        let gap = match index.checked_sub(1) {
            Some(before) => self.gap_behind(before),
            None => self.start_of(0),
        };
        self.longest = self.longest.max(gap);
    }

    fn gap_behind(&self, index: usize) -> u16 {
        self.start_of(index + 1) - self.extents[index].end()
    }

    fn start_of(&self, index: usize) -> u16 {
        self.extents.get(index).map_or(GRANULES, |e| e.start)
    }

    /// Moves the extents towards the start, around those that are being read. `slab` is this slab's number.
    pub fn slide(&mut self, slab: u32, owners: &mut impl Owners) {
        let mut end = 0;
        for index in 0..self.extents.len() {
            let extent = self.extents[index];
            if extent.start > end && !owners.is_pinned(extent.owner) {
                let from = self.bytes(extent.start, usize::from(extent.len) * GRANULE);
                self.write_raw(end, from);
                self.extents[index].start = end;
                owners.moved(extent.owner, Address { slab, start: end });
            }
            end = self.extents[index].end();
        }
        self.measure();
    }

    /// `len` bytes from granule `start` on.
    pub fn bytes(&self, start: u16, len: usize) -> RawBytes {
        self.pages.raw(usize::from(start) * GRANULE, len)
    }

    /// Fills an extent that was just allocated.
    pub fn write(&mut self, start: u16, bytes: &[u8]) {
        self.pages.write(usize::from(start) * GRANULE, bytes);
    }

    /// Fills an extent that was just allocated, with bytes of another one.
    pub fn write_raw(&mut self, start: u16, from: RawBytes) {
        self.pages.move_bytes(usize::from(start) * GRANULE, from);
    }

    /// Every gap: its index in the list, its first granule, its length.
    fn gaps(&self) -> impl Iterator<Item = (usize, u16, u16)> + '_ {
        let starts = self.extents.iter().map(|e| e.start).chain([GRANULES]);
        let ends = std::iter::once(0).chain(self.extents.iter().map(|e| e.end()));
        starts.zip(ends).enumerate().map(|(index, (next, end))| (index, end, next - end))
    }

    fn measure(&mut self) {
        self.longest = self.gaps().map(|(_, _, gap)| gap).max().unwrap_or(0);
    }

    /// Flips a bit of byte `at` after granule `start`. For tests.
    pub fn flip_bit(&mut self, start: u16, at: usize) {
        self.pages.flip_bit(usize::from(start) * GRANULE + at);
    }

    /// True if lists and counts agree. For tests.
    pub fn is_consistent(&self) -> bool {
        let taken: u16 = self.extents.iter().map(|e| e.len).sum();
        let longest = self.gaps().map(|(_, _, gap)| gap).max().unwrap_or(0);
        let ordered = self.extents.windows(2).all(|pair| pair[0].end() <= pair[1].start);
        ordered && self.free == GRANULES - taken && self.longest == longest
    }
}
