//! An open regular backing file. If possible, its content is read without filling the kernel's page cache.
//!
//! What is in the kernel's page cache already is read from there. Otherwise there are three ways of reading, the best first. A way that
//! the kernel refused once is not tried again.
//! - `O_DIRECT`, by a second descriptor that is opened at the first read: the least CPU time, and nothing is in memory
//!   twice (see `left_pages`). It needs aligned buffers, and has no readahead, so it is not for short sequential reads.
//! - `RWF_DONTCACHE` (Linux 6.14): through the page cache with its readahead, and out of it again.
//! - pread(2), then `POSIX_FADV_DONTNEED`.
//!
//! All return the same bytes: Linux writes dirty pages back before it reads past them (`filemap_write_and_wait_range`). Bytes are kept
//! only if later changes of them show: see [`File::pages`].

use std::io::{self, IoSlice, IoSliceMut};
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use eke_linux::page_cache::{self, PageCounts};
use rustix::fs::{Advice, AtFlags, OFlags, Statx, StatxFlags, fadvise, statx};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use rustix::process::{Resource, getrlimit};

use super::left_pages::{self, LeftPages};
use super::{Stamp, at, dirty};

/// `RWF_DONTCACHE`, `include/uapi/linux/fs.h` since Linux 6.14.
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// `STATX_ATTR_APPEND`, `include/uapi/linux/stat.h`.
const ONLY_GROWS: u64 = 0x20;

/// The alignment for `O_DIRECT` if the kernel does not report it: a page, which is enough for all but unusual disks.
const USUAL_ALIGN: u32 = 4096;

/// A read at most this far from the end of the last one counts as sequential: readahead pays, or has already read it. This
/// is the usual maximum of a readahead window.
const NEAR: u64 = 1 << 20;

/// A read this long needs no readahead.
const LONG_READ: usize = 256 << 10;

/// The least range of a writeback of dirty pages: what follows is probably read next.
const AT_ONCE: u64 = 4 << 20;

/// An open backing file.
#[derive(Debug)]
pub struct File {
    plain: OwnedFd,
    only_appends: bool,
    direct: OnceLock<Option<Direct>>,
    no_direct: AtomicBool,
    no_dontcache: AtomicBool,
    no_cachestat: AtomicBool,
    memory: OnceLock<bool>,
    /// Where the last read ended; `u64::MAX`: no read yet.
    last_end: AtomicU64,
    /// Where the reads began that each went on where the one before ended.
    run_start: AtomicU64,
}

#[derive(Debug)]
struct Direct {
    fd: OwnedFd,
    /// The alignment of memory, and of offsets and lengths, in bytes.
    mem_align: usize,
    offset_align: u64,
    /// If reads may leave pages.
    left: Option<LeftPages>,
}

/// The kernel's pages of a part of the file, before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// Later changes of these bytes show in the stamp, including stores through a mapping. The bytes come from the file system.
    Settled,
    /// The same, and nearly all are in the kernel's page cache.
    Cached,
    /// The same, and some are in the kernel's page cache and just being written to the disk.
    Mixed,
    /// Some are dirty: a store through a mapping may change them without a sign.
    Dirty,
    /// Stores through a mapping never show.
    Unseen,
}

/// A way of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadMethod {
    PageCache,
    Direct,
    DontCache,
    Advise,
}

impl File {
    /// From a descriptor that is open for reading, or for both. Not with `O_APPEND`, which would move writes.
    pub fn new(plain: OwnedFd) -> Self {
        Self {
            plain,
            only_appends: false,
            direct: OnceLock::new(),
            no_direct: AtomicBool::new(false),
            no_dontcache: AtomicBool::new(false),
            no_cachestat: AtomicBool::new(false),
            memory: OnceLock::new(),
            last_end: AtomicU64::new(u64::MAX),
            run_start: AtomicU64::new(u64::MAX),
        }
    }

    /// A file that was opened with `O_APPEND`, since the backing file system lets nobody write elsewhere (chattr(1), `a`).
    pub fn appending(plain: OwnedFd) -> Self {
        Self { only_appends: true, ..Self::new(plain) }
    }

    /// True if all writes go to the end.
    pub fn only_appends(&self) -> bool {
        self.only_appends
    }

    /// True if it has the attribute that it may only grow (chattr(1), `a`), however it was opened. A file system that does not
    /// report it in statx(2) enforces it itself (NFS).
    ///
    /// # Errors
    /// Those of statx(2).
    pub fn may_only_grow(&self) -> io::Result<bool> {
        let statx = statx(&self.plain, c"", AtFlags::EMPTY_PATH, StatxFlags::empty())?;
        Ok(statx.stx_attributes.bits() & ONLY_GROWS != 0)
    }

    /// The file's present stamp.
    ///
    /// # Errors
    /// Those of fstat(2).
    pub fn stamp(&self) -> io::Result<Stamp> {
        self.stamp_by(AtFlags::empty())
    }

    /// The file's present stamp on the server, if it is remote (`AT_STATX_FORCE_SYNC`): a network file system caches
    /// attributes of an open file for up to a minute. On a local one it is the same as [`File::stamp`].
    ///
    /// # Errors
    /// Those of statx(2).
    pub fn fresh_stamp(&self) -> io::Result<Stamp> {
        self.stamp_by(AtFlags::STATX_FORCE_SYNC)
    }

    fn stamp_by(&self, how: AtFlags) -> io::Result<Stamp> {
        let flags = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        Ok(Stamp::of(&statx(&self.plain, c"", AtFlags::EMPTY_PATH | how, flags)?))
    }

    /// The kernel's pages of these bytes, before they are read. Starts to write dirty ones back: a page under writeback is protected, so
    /// later stores show again. It waits for the write only if the kernel does not report pages.
    pub fn pages(&self, offset: u64, bytes: usize) -> Pages {
        if *self.memory.get_or_init(|| dirty::is_memory(&self.plain)) {
            return Pages::Unseen;
        }
        let Some(counts) = self.counts(offset, bytes) else { return self.written_back(offset, bytes) };
        let is_dirty = counts.dirty > 0 && {
            // An error shows in the second count.
            let _ = self.by_own_descriptor(|fd| dirty::start_write_back(fd, offset, bytes as u64));
            self.has_dirty(offset, bytes) != Some(false)
        };
        match counts {
            _ if is_dirty => Pages::Dirty,
            counts if counts.cached == 0 => Pages::Settled,
            counts if is_cached(&counts, self.up_to_end(offset, bytes)) => Pages::Cached,
            counts if counts.dirty + counts.writeback > 0 => Pages::Mixed,
            _ => Pages::Settled,
        }
    }

    /// So many of these bytes the file has, as far as is known here.
    fn up_to_end(&self, offset: u64, bytes: usize) -> usize {
        let stamp = self.stamp_by(AtFlags::STATX_DONT_SYNC);
        let left = stamp.map_or(u64::MAX, |stamp| stamp.size.saturating_sub(offset));
        usize::try_from(left).unwrap_or(usize::MAX).min(bytes)
    }

    /// The same after dirty pages were written back, which waits for the disk.
    pub fn settle(&self, offset: u64, bytes: usize) -> Pages {
        match self.pages(offset, bytes) {
            Pages::Dirty => self.written_back(offset, bytes),
            pages => pages,
        }
    }

    fn written_back(&self, offset: u64, bytes: usize) -> Pages {
        let bytes = (bytes as u64).max(AT_ONCE);
        let written = self.by_own_descriptor(|fd| dirty::write_back(fd, offset, bytes));
        if written.is_ok() { Pages::Settled } else { Pages::Unseen }
    }

    /// True if there are dirty pages. Pages under writeback are protected already. `None`: the kernel does not report it.
    pub fn has_dirty(&self, offset: u64, bytes: usize) -> Option<bool> {
        Some(self.counts(offset, bytes)?.dirty > 0)
    }

    fn counts(&self, offset: u64, bytes: usize) -> Option<PageCounts> {
        self.unless_refused(|file| page_cache::counts(file, offset, bytes as u64))
    }

    /// The result of a cachestat(2), which is not called again once the kernel refused it.
    fn unless_refused<T>(&self, ask: impl FnOnce(BorrowedFd<'_>) -> io::Result<T>) -> Option<T> {
        if self.no_cachestat.load(Ordering::Relaxed) {
            return None;
        }
        let found = ask(self.plain.as_fd());
        self.no_cachestat.store(found.is_err(), Ordering::Relaxed);
        found.ok()
    }

    /// With a descriptor that nobody calls fsync(2) on: that of direct reads, or a new one.
    fn by_own_descriptor(&self, act: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>) -> io::Result<()> {
        if let Some(direct) = self.direct() {
            return act(direct.fd.as_fd());
        }
        act(at::reopen(self.plain.as_fd(), OFlags::RDONLY)?.as_fd())
    }

    /// Reads from `offset`; fewer bytes than requested only at the end. Buffers aligned to 4096 are read best.
    ///
    /// # Errors
    /// Those of preadv2(2).
    pub fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.read_from(Pages::Settled, out, offset)
    }

    /// The same, with what [`File::pages`] found.
    ///
    /// # Errors
    /// Those of preadv2(2).
    pub fn read_from(&self, pages: Pages, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let last_end = self.last_end.load(Ordering::Relaxed);
        let near = last_end.abs_diff(offset) <= NEAR;
        if last_end != offset {
            self.run_start.store(offset, Ordering::Relaxed);
        }
        let mut done = 0;
        while done < out.len() {
            match self.read_once(pages, &mut out[done..], offset.saturating_add(done as u64), near) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        self.last_end.store(offset.saturating_add(done as u64), Ordering::Relaxed);
        Ok(done)
    }

    fn read_once(&self, pages: Pages, out: &mut [u8], offset: u64, near: bool) -> Result<usize, Errno> {
        loop {
            let method = self.method(pages, out, offset, near);
            match self.read_by(method, out, offset) {
                Err(e) if self.refused(method, e) => {}
                result => return result,
            }
        }
    }

    /// The best way for this read.
    fn method(&self, pages: Pages, out: &[u8], offset: u64, near: bool) -> ReadMethod {
        let dontcache = !self.no_dontcache.load(Ordering::Relaxed);
        let is_cached = pages == Pages::Cached;
        if is_cached || matches!(pages, Pages::Mixed | Pages::Dirty) {
            // What was there stays: `RWF_DONTCACHE` drops what it has read, and the advice no page that is dirty or being written.
            match dontcache {
                true => ReadMethod::DontCache,
                false if is_cached => ReadMethod::PageCache,
                false => ReadMethod::Advise,
            }
        } else if near && dontcache && out.len() < LONG_READ {
            ReadMethod::DontCache
        } else if self.direct_for(out, offset).is_some() {
            ReadMethod::Direct
        } else if dontcache {
            ReadMethod::DontCache
        } else {
            ReadMethod::Advise
        }
    }

    fn read_by(&self, method: ReadMethod, out: &mut [u8], offset: u64) -> Result<usize, Errno> {
        match method {
            ReadMethod::Direct => {
                let direct = self.direct_for(out, offset).ok_or(Errno::INVAL)?;
                self.read_direct(direct, out, offset)
            }
            ReadMethod::DontCache => preadv2(&self.plain, &mut [IoSliceMut::new(out)], offset, DONTCACHE),
            ReadMethod::PageCache => {
                preadv2(&self.plain, &mut [IoSliceMut::new(out)], offset, ReadWriteFlags::empty())
            }
            ReadMethod::Advise => {
                let read =
                    preadv2(&self.plain, &mut [IoSliceMut::new(out)], offset, ReadWriteFlags::empty())?;
                // It is only advice: if the kernel ignores it, a page more stays cached.
                let _ = NonZeroU64::new(read as u64)
                    .map(|len| fadvise(&self.plain, offset, Some(len), Advice::DontNeed));
                Ok(read)
            }
        }
    }

    fn read_direct(&self, direct: &Direct, out: &mut [u8], offset: u64) -> Result<usize, Errno> {
        let len = out.len() as u64;
        let mut read = || preadv2(&direct.fd, &mut [IoSliceMut::new(out)], offset, ReadWriteFlags::empty());
        let Some(left) = &direct.left else { return read() };
        let has_pages = |part: &Range<u64>| {
            self.unless_refused(|file| left_pages::has_pages(file, part)).unwrap_or(false)
        };
        left.drop_after(direct.fd.as_fd(), (offset, len), has_pages, read)
    }

    /// Records it if the kernel refused the way and not the read.
    fn refused(&self, method: ReadMethod, e: Errno) -> bool {
        let refusal = matches!(e, Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS);
        match method {
            ReadMethod::Direct if refusal => self.no_direct.store(true, Ordering::Relaxed),
            ReadMethod::DontCache if refusal => self.no_dontcache.store(true, Ordering::Relaxed),
            _ => return false,
        }
        true
    }

    /// The descriptor for direct reads, if it can serve this buffer and offset.
    fn direct_for(&self, out: &[u8], offset: u64) -> Option<&Direct> {
        if self.no_direct.load(Ordering::Relaxed) {
            return None;
        }
        self.direct().filter(|d| d.takes(out, offset))
    }

    fn direct(&self) -> Option<&Direct> {
        self.direct.get_or_init(|| Direct::open(&self.plain)).as_ref()
    }

    /// The bytes that were read without a gap up to there.
    pub fn run_before(&self, offset: u64) -> u64 {
        let goes_on = self.last_end.load(Ordering::Relaxed) == offset;
        if goes_on { offset.saturating_sub(self.run_start.load(Ordering::Relaxed)) } else { 0 }
    }

    /// Writes once, at `offset`, into the page cache: with `RWF_DONTCACHE` the kernel would start to write each back at once, and the
    /// writer would wait for the disk.
    ///
    /// # Errors
    /// Those of pwritev2(2).
    pub fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        self.write_once(data, offset, ReadWriteFlags::empty())
    }

    /// Writes once, at the file's end at that moment (`RWF_APPEND`, Linux 4.16).
    ///
    /// # Errors
    /// Those of pwritev2(2).
    pub fn append(&self, data: &[u8]) -> io::Result<usize> {
        self.write_once(data, 0, ReadWriteFlags::APPEND)
    }

    fn write_once(&self, data: &[u8], offset: u64, flags: ReadWriteFlags) -> io::Result<usize> {
        loop {
            match pwritev2(&self.plain, &[IoSlice::new(data)], offset, flags) {
                Err(Errno::INTR) => {}
                result => return Ok(result?),
            }
        }
    }
}

/// True if at most a sixteenth is missing.
fn is_cached(counts: &PageCounts, bytes: usize) -> bool {
    let pages = bytes.div_ceil(rustix::param::page_size()) as u64;
    counts.cached > 0 && counts.cached >= pages - pages / 16
}

impl Direct {
    /// Opens the file again. `None`: the file system or the file's mode forbids it, or few descriptors are left.
    fn open(plain: &OwnedFd) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NOCTTY;
        let fd = at::reopen(plain.as_fd(), flags).ok().filter(|fd| is_within(fd, OF_READERS))?;
        let statx = statx(&fd, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
        let (mem_align, offset_align) = alignment(&statx)?;
        let left = LeftPages::of(&fd, &statx);
        Some(Self { fd, mem_align: mem_align as usize, offset_align: u64::from(offset_align), left })
    }

    fn takes(&self, out: &[u8], offset: u64) -> bool {
        let (address, len) = (out.as_ptr().addr(), out.len() as u64);
        address % self.mem_align == 0 && offset % self.offset_align == 0 && len % self.offset_align == 0
    }
}

/// The eighths that users may take for good.
pub const OF_USERS: u64 = 5;
/// The eighths for what can be opened again: files to be read, and direct reads. With as many for paths one is left for files that are written to.
pub const OF_READERS: u64 = 2;

/// True if this descriptor's number is within so many eighths of the limit. The kernel gives the lowest free number (open(2)),
/// so a higher one means that many are open. What can be opened again gets two eighths, files that
/// users write to, or that have no name any more, five. Two more are for paths, whose numbers are anywhere; the rest is for requests that need one for a
/// moment, and for root.
pub fn is_within(fd: impl AsFd, eighths: u64) -> bool {
    left_within(fd, eighths) > 0
}

/// How many numbers above this descriptor's are within so many eighths of the limit, with its own.
pub fn left_within(fd: impl AsFd, eighths: u64) -> u64 {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let number = u64::try_from(fd.as_fd().as_raw_fd()).unwrap_or(u64::MAX);
    (limit / 8 * eighths).saturating_sub(number)
}

/// The alignment of direct reads in bytes: of memory and of offsets (`STATX_DIOALIGN`, Linux 6.1). `None`: the file has no
/// direct reads.
fn alignment(statx: &Statx) -> Option<(u32, u32)> {
    if statx.stx_mask & StatxFlags::DIOALIGN.bits() == 0 {
        return Some((USUAL_ALIGN, USUAL_ALIGN));
    }
    let aligned = (statx.stx_dio_mem_align, statx.stx_dio_offset_align);
    (aligned.0 > 0 && aligned.1 > 0).then_some(aligned)
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.plain.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn dirty_pages_are_protected_and_read_from_the_page_cache_without_waiting() {
        let file = tempfile::tempfile().unwrap();
        if dirty::is_memory(&file) || page_cache::counts(&file, 0, 1).is_err() {
            return eke_testkit::real::skip("pages", "no disk, or no cachestat(2) to see it by");
        }
        let backing = File::new(file.try_clone().unwrap().into());
        file.write_all_at(&[1; 100_000], 0).unwrap();
        if page_cache::counts(&file, 0, 100_000).unwrap().dirty == 0 {
            return eke_testkit::real::skip("pages", "its pages are not seen, as on an overlay");
        }
        assert_eq!(backing.pages(0, 2 << 20), Pages::Cached, "all that the file has");
        assert_eq!(backing.has_dirty(0, 100_000), Some(false));
        let mut out = vec![0; 100_000];
        assert_eq!(backing.read_from(Pages::Cached, &mut out, 0).unwrap(), 100_000);
        assert!(out.iter().all(|byte| *byte == 1));
        assert_eq!(backing.settle(0, 100_000), Pages::Cached);
        let counts = page_cache::counts(&file, 0, 100_000).unwrap();
        assert!(is_cached(&counts, 100_000), "what was in the page cache stays there: {counts:?}");
    }

    #[test]
    fn what_is_in_the_page_cache_is_read_from_there() {
        let file = tempfile::tempfile().unwrap();
        let backing = File::new(file.try_clone().unwrap().into());
        let mut out = vec![0; 8192];
        let method = |pages| backing.method(pages, &out, 0, false);
        assert!(!matches!(method(Pages::Cached), ReadMethod::Direct | ReadMethod::Advise));
        assert_ne!(method(Pages::Dirty), ReadMethod::Direct);
        backing.no_dontcache.store(true, Ordering::Relaxed);
        let method = |pages| backing.method(pages, &out, 0, false);
        assert_eq!(method(Pages::Cached), ReadMethod::PageCache);
        assert_eq!([Pages::Mixed, Pages::Dirty].map(method), [ReadMethod::Advise; 2]);
        file.write_all_at(&[7; 8192], 0).unwrap();
        assert_eq!(backing.read_from(Pages::Cached, &mut out, 0).unwrap(), 8192);
        assert_eq!(out, [7; 8192]);
    }

    #[test]
    fn without_cachestat_everything_is_written_back() {
        let file = tempfile::tempfile().unwrap();
        if dirty::is_memory(&file) || page_cache::counts(&file, 0, 1).is_err() {
            return eke_testkit::real::skip("pages", "no disk, or no cachestat(2) to see it by");
        }
        for direct in [true, false] {
            file.write_all_at(&[1; 100_000], 0).unwrap();
            let backing = File::new(file.try_clone().unwrap().into());
            backing.no_cachestat.store(true, Ordering::Relaxed);
            if !direct {
                assert!(backing.direct.set(None).is_ok());
            }
            assert!(page_cache::counts(&file, 0, 100_000).unwrap().dirty > 0);
            assert_eq!((backing.pages(0, 100_000), backing.has_dirty(0, 100_000)), (Pages::Settled, None));
            assert_eq!(page_cache::counts(&file, 0, 100_000).unwrap().dirty, 0, "{direct}");
        }
    }
}
