//! Writes and other changes of a file: first the backing file, then the blocks that they drop.

use std::io;
use std::ops::Range;

use eke_cache_store::FileId;
use rustix::io::Errno;

use super::{ReadContext, Tier};
use crate::backing::{File, Stamp};

/// Where a write goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WritePosition {
    /// At this offset.
    At(u64),
    /// At the file's end at that moment (`O_APPEND`).
    End,
}

impl Tier {
    /// Writes to the backing file, then drops the blocks of that part. Returns the bytes written.
    ///
    /// # Errors
    /// Those of the backing file.
    pub fn write(
        &self,
        _context: &mut ReadContext,
        file: FileId,
        backing: &File,
        position: WritePosition,
        data: &[u8],
    ) -> io::Result<usize> {
        let written = match position {
            WritePosition::At(offset) => {
                let bytes = offset..offset.saturating_add(data.len() as u64);
                self.around(file, stats(backing), || backing.write_at(data, offset), |_| bytes)
            }
            WritePosition::End => {
                let before = backing.stamp()?.size;
                let append = || backing.append(data);
                self.around(file, stats(backing), append, |done| appended(backing, before, done))
            }
        }?;
        self.counters.bytes_written.add(written);
        Ok(written)
    }

    /// Makes `change` to the backing file (truncation, fallocate, a copy in the kernel), drops its blocks with any of these `bytes`, and notes its
    /// new stamp.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn change<T>(
        &self,
        file: FileId,
        bytes: Range<u64>,
        backing: &File,
        change: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.around(file, stats(backing), change, |_| bytes)
    }

    /// Makes a `change` of mode, owner, times, names or attributes: the content stays, with its blocks and the kernel's pages, under a new stamp.
    /// `stat`: of the file.
    ///
    /// # Errors
    /// Those of `change`.
    pub fn change_beside<T>(
        &self,
        file: FileId,
        stat: impl Fn() -> io::Result<Stamp>,
        change: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        // A remote file is asked at its next open in any case, and of an unknown one there is nothing to keep.
        if self.is_remote || self.stamps.size(file).is_none() {
            return change();
        }
        self.around(file, (&stat, &stat), change, |_| 0..0)
    }

    /// Makes `change` and drops the blocks of the bytes that `changed` returns. A failed change may have changed bytes too. The stamp before comes from
    /// the file system itself, that after it from this kernel.
    fn around<T>(
        &self,
        file: FileId,
        (fresh, after): (impl Fn() -> io::Result<Stamp>, impl Fn() -> io::Result<Stamp>),
        change: impl FnOnce() -> io::Result<T>,
        changed: impl FnOnce(&io::Result<T>) -> Range<u64>,
    ) -> io::Result<T> {
        let begun = self.stamps.begin(file, fresh);
        if begun.foreign {
            self.drop_outdated(file);
        }
        let done = change();
        self.drop_bytes(file, changed(&done));
        if self.is_remote {
            self.stamps.end_unseen(file, begun);
        } else {
            self.stamps.end(file, begun, after, || self.clock.wall_ns());
        }
        if done.as_ref().is_err_and(may_be_half_done) {
            self.stamps.doubt(file);
        }
        done
    }

    fn drop_bytes(&self, file: FileId, bytes: Range<u64>) {
        if let Some(store) = self.store.as_ref().filter(|_| bytes.start < bytes.end) {
            let size = store.block_size() as u64;
            store.drop_range(file, bytes.start / size..bytes.end.div_ceil(size));
        }
    }
}

fn stats(backing: &File) -> (impl Fn() -> io::Result<Stamp>, impl Fn() -> io::Result<Stamp>) {
    (|| backing.fresh_stamp(), || backing.stamp())
}

/// A change that failed on its way may have changed bytes and no time, as truncate(2) past a quota of Btrfs does, while the kernel
/// keeps its pages. These errors come before anything is changed, and a program may meet them again and again.
fn may_be_half_done(error: &io::Error) -> bool {
    const BEFORE: [Errno; 6] =
        [Errno::OPNOTSUPP, Errno::INVAL, Errno::PERM, Errno::ACCESS, Errno::ROFS, Errno::AGAIN];
    Errno::from_io_error(error).is_none_or(|errno| !BEFORE.contains(&errno))
}

/// The bytes that an append has changed. All of them, if the file was truncated meanwhile.
fn appended(backing: &File, before: u64, done: &io::Result<usize>) -> Range<u64> {
    let least = before + done.as_ref().map_or(0, |&written| written as u64);
    backing.stamp().ok().filter(|now| now.size >= least).map_or(0..u64::MAX, |now| before..now.size)
}
