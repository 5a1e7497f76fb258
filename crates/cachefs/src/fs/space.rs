//! Data and holes, allocation, and copies inside the kernel.

use std::io;
use std::ops::Range;

use rustix::fs::{FallocateFlags, SeekFrom, StatVfs, copy_file_range, fallocate, fstatvfs, seek};
use rustix::io::Errno;

use super::{Caller, Fs};
use crate::node::{Access, Node};

/// A position in a node's file.
#[derive(Debug, Clone, Copy)]
pub struct FilePosition {
    /// The node's number.
    pub number: u64,
    /// In bytes.
    pub offset: u64,
}

/// The most bytes of one copy, so that a request does not occupy a thread for long. The caller repeats.
const MOST_COPIED: u64 = 64 << 20;

impl Fs {
    /// The statistics of the backing file system.
    ///
    /// # Errors
    /// Those of fstatvfs(3).
    pub fn statfs(&self, number: u64) -> io::Result<StatVfs> {
        Ok(fstatvfs(self.path(number)?)?)
    }

    /// Allocates or frees space; `mode` as of fallocate(2).
    ///
    /// # Errors
    /// Those of fallocate(2).
    pub fn fallocate(&self, caller: &Caller, at: FilePosition, len: u64, mode: i32) -> io::Result<()> {
        let node = self.nodes.get(at.number)?;
        let file = self.file(&node, Access::Write)?;
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        let before = file.stamp()?.size;
        let bytes = touched(mode, (at.offset, len), before);
        let allocate = || caller.changes(false, || Ok(fallocate(&*file, mode, at.offset, len)?));
        let allocated = self.changing(&node, |id| self.tier.change(id, bytes, &file, allocate));
        // On a full disk a part may be allocated, and the file longer.
        if allocated.is_err() && file.stamp().is_ok_and(|now| now.size != before) {
            self.attributes_are_old(node.number);
        }
        allocated
    }

    /// The start of the next data or hole from `at` on (`SEEK_DATA`, `SEEK_HOLE`; the kernel handles the others).
    ///
    /// # Errors
    /// Those of lseek(2).
    pub fn lseek(&self, at: FilePosition, whence: i32) -> io::Result<u64> {
        let node = self.nodes.get(at.number)?;
        let file = self.file(&node, Access::Read)?;
        if self.has_pages_of_its_own(&node) {
            return seek_data_only(at.offset, whence, file.stamp()?.size);
        }
        let to = match whence {
            libc::SEEK_DATA => SeekFrom::Data(at.offset),
            libc::SEEK_HOLE => SeekFrom::Hole(at.offset),
            _ => return Err(Errno::INVAL.into()),
        };
        Ok(seek(&*file, to)?)
    }

    /// True if the mount may have dirty pages where the backing file has a hole: those of a store through a mapping, which keeps its open.
    /// A mapping with passthrough is of the backing file.
    fn has_pages_of_its_own(&self, node: &Node) -> bool {
        node.may_be_written() && !self.passthrough.opens.is_passthrough(node.number)
    }

    /// Copies from one file to another. Returns the bytes copied.
    ///
    /// # Errors
    /// Those of copy_file_range(2).
    pub fn copy_file_range(
        &self,
        caller: &Caller,
        from: FilePosition,
        to: FilePosition,
        len: u64,
    ) -> io::Result<u32> {
        let (source, target) = (self.nodes.get(from.number)?, self.nodes.get(to.number)?);
        let input = self.file(&source, Access::Read)?;
        let output = self.file(&target, Access::Write)?;
        let bytes = to.offset.min(output.stamp()?.size)..to.offset.saturating_add(len.min(MOST_COPIED));
        let (mut read, mut written) = (from.offset, to.offset);
        let len = usize::try_from(len.min(MOST_COPIED)).unwrap_or(usize::MAX);
        let copy = || Ok(copy_file_range(&*input, Some(&mut read), &*output, Some(&mut written), len)?);
        let copied = self
            .changing(&target, |id| self.tier.change(id, bytes, &output, || caller.changes(false, copy)))?;
        Ok(u32::try_from(copied).unwrap_or(u32::MAX))
    }
}

/// The bytes whose blocks an fallocate(2) in a file of `size` bytes may change. To allocate changes none, but what was the end is it no more.
fn touched(mode: FallocateFlags, (offset, len): (u64, u64), size: u64) -> Range<u64> {
    let end = offset.saturating_add(len);
    let same_place = FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE;
    if (FallocateFlags::KEEP_SIZE | mode) == FallocateFlags::KEEP_SIZE {
        size..end.max(size)
    } else if same_place.contains(mode) {
        offset.min(size)..end
    } else {
        offset.min(size)..u64::MAX
    }
}

/// lseek(2) in a file of `size` bytes without holes, which POSIX allows for any file.
///
/// # Errors
/// ENXIO from the end on; EINVAL if `whence` is another.
fn seek_data_only(offset: u64, whence: i32, size: u64) -> io::Result<u64> {
    match whence {
        libc::SEEK_DATA | libc::SEEK_HOLE if offset >= size => Err(Errno::NXIO.into()),
        libc::SEEK_DATA => Ok(offset),
        libc::SEEK_HOLE => Ok(size),
        _ => Err(Errno::INVAL.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_touched_counts_as_changed() {
        let (hole, zero) =
            (FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, FallocateFlags::ZERO_RANGE);
        for (mode, at, expected) in [
            (FallocateFlags::empty(), (0, 100), 100..100),
            (FallocateFlags::empty(), (50, 100), 100..150),
            (FallocateFlags::KEEP_SIZE, (0, 50), 100..100),
            (hole, (10, 20), 10..30),
            (zero, (150, 20), 100..170),
            (FallocateFlags::COLLAPSE_RANGE, (10, 20), 10..u64::MAX),
        ] {
            assert_eq!(touched(mode, at, 100), expected, "{mode:?}");
        }
    }

    #[test]
    fn a_file_without_holes_is_data_up_to_its_end() {
        let seek = |offset, whence| seek_data_only(offset, whence, 10).map_err(|e| e.raw_os_error());
        assert_eq!((seek(0, libc::SEEK_DATA), seek(9, libc::SEEK_DATA)), (Ok(0), Ok(9)));
        assert_eq!((seek(0, libc::SEEK_HOLE), seek(9, libc::SEEK_HOLE)), (Ok(10), Ok(10)));
        for whence in [libc::SEEK_DATA, libc::SEEK_HOLE] {
            assert_eq!(
                (seek(10, whence), seek(u64::MAX, whence)),
                (Err(Some(libc::ENXIO)), Err(Some(libc::ENXIO)))
            );
        }
        assert_eq!(seek(0, libc::SEEK_SET), Err(Some(libc::EINVAL)));
    }
}
