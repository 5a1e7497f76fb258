//! Pages that direct reads leave in the page cache.
//!
//! btrfs reads a compressed extent through the page cache, also for `O_DIRECT`, and leaves all of the extent's pages there, uncompressed
//! (`add_ra_bio_pages`, fs/btrfs/compression.c). The store would have that much less memory. So they are dropped after each read, but
//! not where there were pages before it: another program uses those.

use std::io;
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};

use eke_linux::page_cache;
use rustix::fs::{Advice, Statx, StatxAttributes, fadvise};

/// The longest compressed extent, in bytes (`BTRFS_MAX_UNCOMPRESSED`).
const EXTENT: u64 = 128 << 10;

/// Drops what the direct reads of one open file leave.
#[derive(Debug, Default)]
pub(super) struct LeftPages {
    /// Reads in progress.
    reads: AtomicUsize,
}

impl LeftPages {
    /// For this descriptor of direct reads, with its attributes. `None`: its file system leaves no pages.
    pub fn of(direct: impl AsFd, statx: &Statx) -> Option<Self> {
        if !may_be_compressed(statx) {
            return None;
        }
        // Readahead would leave pages far behind the range. It is only advice.
        let _ = fadvise(direct, 0, None, Advice::Random);
        Some(Self::default())
    }

    /// Reads, and drops what that leaves. `has_pages`: whether a part of the file has pages; false if the kernel does not report it.
    pub fn drop_after<T>(
        &self,
        file: BorrowedFd<'_>,
        (offset, len): (u64, u64),
        has_pages: impl Fn(&Range<u64>) -> bool,
        read: impl FnOnce() -> T,
    ) -> T {
        self.reads.fetch_add(1, Ordering::AcqRel);
        let own = self.own(offset, len, has_pages);
        let done = read();
        own.into_iter().flatten().for_each(|part| drop_pages(file, &part));
        self.reads.fetch_sub(1, Ordering::AcqRel);
        done
    }

    /// The parts that have no pages of other programs. While another thread of this process reads, pages count as of that read.
    fn own(&self, offset: u64, len: u64, has_pages: impl Fn(&Range<u64>) -> bool) -> [Option<Range<u64>>; 2] {
        parts(offset, len)
            .map(|part| (!has_pages(&part) || self.reads.load(Ordering::Acquire) > 1).then_some(part))
    }
}

/// The two parts that a read may leave: what it reads, and the rest of the last extent.
fn parts(offset: u64, len: u64) -> [Range<u64>; 2] {
    let end = offset.saturating_add(len);
    [offset..end, end..end.saturating_add(EXTENT)]
}

/// True on btrfs, and on an overlayfs over it: a device number of no disk, and an attribute for compressed files. It costs no call,
/// where fstatfs(2) would ask a server of NFS. CIFS looks the same, and leaves nothing to drop.
fn may_be_compressed(statx: &Statx) -> bool {
    statx.stx_dev_major == 0 && statx.stx_attributes_mask.contains(StatxAttributes::COMPRESSED)
}

/// True if the page cache has pages of this part. cachestat(2), Linux 6.5.
///
/// # Errors
/// Those of [`page_cache::counts`].
pub(super) fn has_pages(file: BorrowedFd<'_>, part: &Range<u64>) -> io::Result<bool> {
    // A length of 0 would be everything up to the end.
    let bytes = (part.end - part.start).max(1);
    Ok(page_cache::counts(file, part.start, bytes)?.cached > 0)
}

/// It is only advice: if the kernel ignores it, pages stay.
fn drop_pages(file: BorrowedFd<'_>, part: &Range<u64>) {
    let _ = NonZeroU64::new(part.end - part.start)
        .map(|len| fadvise(file, part.start, Some(len), Advice::DontNeed));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(reads: usize, has_pages: impl Fn(&Range<u64>) -> bool) -> [bool; 2] {
        let left = LeftPages { reads: AtomicUsize::new(reads) };
        left.own(4096, 4096, has_pages).map(|part| part.is_some())
    }

    #[test]
    fn pages_that_were_there_before_stay() {
        assert_eq!(dropped(1, |_| false), [true, true]);
        assert_eq!(dropped(1, |part| part.start == 4096), [false, true]);
        assert_eq!(dropped(1, |part| part.start == 8192), [true, false]);
        assert_eq!(dropped(2, |_| true), [true, true], "pages of another read");
    }

    #[test]
    fn the_parts_of_a_read_at_the_end_of_all_offsets_are_ranges() {
        for (offset, len) in [(0, 0), (u64::MAX - 1, 4096), (u64::MAX, u64::MAX)] {
            assert!(parts(offset, len).iter().all(|part| part.start <= part.end));
        }
    }
}
