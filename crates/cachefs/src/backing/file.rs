//! A regular backing file, open. Its content is read without filling the kernel's cache, where that can be had.
//!
//! Three ways of reading, from the best to what always works; what the kernel refuses once is not asked for again:
//! - `O_DIRECT`, by a second descriptor that is made at the first read: the least CPU time, and nothing is held twice. For
//!   aligned buffers, and for reads that do not follow each other: it has no readahead.
//! - `RWF_DONTCACHE` (Linux 6.14): through the page cache with its readahead, and out of it again.
//! - pread(2), then `POSIX_FADV_DONTNEED`.
//!
//! All three see the same bytes: Linux writes dirty pages back before it reads past them (`filemap_write_and_wait_range`).
//! What is read to be kept has to be settled first: see [`File::settle`].

use std::io::{self, IoSlice, IoSliceMut};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{Advice, AtFlags, OFlags, StatxFlags, fadvise, statx};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use rustix::process::{Resource, getrlimit};

use super::{Stamp, at, dirty};

/// `RWF_DONTCACHE`, `include/uapi/linux/fs.h` since Linux 6.14.
const DONTCACHE: ReadWriteFlags = ReadWriteFlags::from_bits_retain(0x80);

/// Where `O_DIRECT` wants buffers, offsets and lengths if the kernel does not say: a page, which is enough for all but
/// odd disks.
const USUAL_ALIGN: u32 = 4096;

/// A read this close to where the last one ended is part of one that goes on and on: readahead pays, and has perhaps read it
/// already. The most that a readahead window usually is.
const NEAR: u64 = 1 << 20;

/// A read this long needs no readahead.
const LONG_READ: usize = 256 << 10;

/// Shorter writes stay in the kernel's cache until it writes them back: `RWF_DONTCACHE` starts that at once, for every one.
const LONG_WRITE: usize = 64 << 10;

/// Of dirty pages so much is written back at once at least: what follows is probably read next.
const AT_ONCE: u64 = 4 << 20;

/// An open backing file.
#[derive(Debug)]
pub struct File {
    plain: OwnedFd,
    direct: OnceLock<Option<Direct>>,
    no_direct: AtomicBool,
    no_dontcache: AtomicBool,
    no_cachestat: AtomicBool,
    memory: OnceLock<bool>,
    /// Where the last read ended; `u64::MAX`: there was none.
    last_end: AtomicU64,
}

#[derive(Debug)]
struct Direct {
    fd: OwnedFd,
    /// In bytes: of memory, and of offsets and lengths.
    mem_align: usize,
    offset_align: u64,
}

/// How to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Direct,
    DontCache,
    Advise,
}

impl File {
    /// Of a descriptor that is open for reading, or for both; not with `O_APPEND`, which would move writes.
    pub fn new(plain: OwnedFd) -> Self {
        Self {
            plain,
            direct: OnceLock::new(),
            no_direct: AtomicBool::new(false),
            no_dontcache: AtomicBool::new(false),
            no_cachestat: AtomicBool::new(false),
            memory: OnceLock::new(),
            last_end: AtomicU64::new(u64::MAX),
        }
    }

    /// What it is now.
    ///
    /// # Errors
    /// What fstat(2) answers.
    pub fn stamp(&self) -> io::Result<Stamp> {
        self.stamp_by(AtFlags::empty())
    }

    /// What it is now on the server, if it is on one (`AT_STATX_FORCE_SYNC`): a network file system believes attributes of an open
    /// file for up to a minute. A local one does the same as for [`File::stamp`].
    ///
    /// # Errors
    /// What statx(2) answers.
    pub fn fresh_stamp(&self) -> io::Result<Stamp> {
        self.stamp_by(AtFlags::STATX_FORCE_SYNC)
    }

    fn stamp_by(&self, how: AtFlags) -> io::Result<Stamp> {
        let flags = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        Ok(Stamp::of(&statx(&self.plain, c"", AtFlags::EMPTY_PATH | how, flags)?))
    }

    /// Has later changes of these bytes show in the stamp, also stores through a mapping of the backing file: writes dirty pages back. To be
    /// called before a read whose bytes are kept. Returns whether they will show.
    pub fn settle(&self, offset: u64, bytes: usize) -> bool {
        if *self.memory.get_or_init(|| dirty::is_memory(&self.plain)) {
            return false;
        }
        match self.has_dirty(offset, bytes) {
            Some(false) => true,
            _ => self.write_back(offset, (bytes as u64).max(AT_ONCE)).is_ok(),
        }
    }

    /// Are there dirty pages? `None`: the kernel does not say.
    pub fn has_dirty(&self, offset: u64, bytes: usize) -> Option<bool> {
        if self.no_cachestat.load(Ordering::Relaxed) {
            return None;
        }
        let found = dirty::has_dirty(self.plain.as_fd(), offset, bytes as u64);
        self.no_cachestat.store(found.is_err(), Ordering::Relaxed);
        found.ok()
    }

    /// By a descriptor that nobody calls fsync(2) on: that of direct reads, or a new one.
    fn write_back(&self, offset: u64, bytes: u64) -> io::Result<()> {
        if let Some(direct) = self.direct() {
            return dirty::write_back(direct.fd.as_fd(), offset, bytes);
        }
        let fd = at::reopen(self.plain.as_fd(), OFlags::RDONLY)?;
        dirty::write_back(fd.as_fd(), offset, bytes)
    }

    /// Reads from `offset`; less than asked for only at the end. Buffers that begin at a multiple of 4096 are read best.
    ///
    /// # Errors
    /// What preadv2(2) answers.
    pub fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let near = self.last_end.load(Ordering::Relaxed).abs_diff(offset) <= NEAR;
        let mut done = 0;
        while done < out.len() {
            match self.read_once(&mut out[done..], offset.saturating_add(done as u64), near) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        self.last_end.store(offset.saturating_add(done as u64), Ordering::Relaxed);
        Ok(done)
    }

    fn read_once(&self, out: &mut [u8], offset: u64, near: bool) -> Result<usize, Errno> {
        loop {
            let way = self.way(out, offset, near);
            match self.read_by(way, out, offset) {
                Err(e) if self.refused(way, e) => {}
                result => return result,
            }
        }
    }

    /// The best way for this read.
    fn way(&self, out: &[u8], offset: u64, near: bool) -> Way {
        let dontcache = !self.no_dontcache.load(Ordering::Relaxed);
        if near && dontcache && out.len() < LONG_READ {
            Way::DontCache
        } else if self.direct_for(out, offset).is_some() {
            Way::Direct
        } else if dontcache {
            Way::DontCache
        } else {
            Way::Advise
        }
    }

    fn read_by(&self, way: Way, out: &mut [u8], offset: u64) -> Result<usize, Errno> {
        match way {
            Way::Direct => {
                let direct = self.direct_for(out, offset).ok_or(Errno::INVAL)?;
                preadv2(&direct.fd, &mut [IoSliceMut::new(out)], offset, ReadWriteFlags::empty())
            }
            Way::DontCache => preadv2(&self.plain, &mut [IoSliceMut::new(out)], offset, DONTCACHE),
            Way::Advise => {
                let read =
                    preadv2(&self.plain, &mut [IoSliceMut::new(out)], offset, ReadWriteFlags::empty())?;
                // Only advice: where it is not taken, the kernel holds a page more.
                let _ = NonZeroU64::new(read as u64)
                    .map(|len| fadvise(&self.plain, offset, Some(len), Advice::DontNeed));
                Ok(read)
            }
        }
    }

    /// Did the kernel refuse the way, not the read? Then it is not gone again.
    fn refused(&self, way: Way, e: Errno) -> bool {
        let refusal = matches!(e, Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS);
        match way {
            Way::Direct if refusal => self.no_direct.store(true, Ordering::Relaxed),
            Way::DontCache if refusal => self.no_dontcache.store(true, Ordering::Relaxed),
            _ => return false,
        }
        true
    }

    /// The descriptor that reads directly, if it can for this buffer and offset.
    fn direct_for(&self, out: &[u8], offset: u64) -> Option<&Direct> {
        if self.no_direct.load(Ordering::Relaxed) {
            return None;
        }
        self.direct().filter(|d| d.takes(out, offset))
    }

    fn direct(&self) -> Option<&Direct> {
        self.direct.get_or_init(|| Direct::open(&self.plain)).as_ref()
    }

    /// Did the last read end just there?
    pub fn goes_on_at(&self, offset: u64) -> bool {
        self.last_end.load(Ordering::Relaxed) == offset
    }

    /// Writes at `offset`, once.
    ///
    /// # Errors
    /// What pwritev2(2) answers.
    pub fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        self.write_once(data, offset, ReadWriteFlags::empty())
    }

    /// Writes at the end, wherever that is then, once (`RWF_APPEND`, Linux 4.16).
    ///
    /// # Errors
    /// What pwritev2(2) answers.
    pub fn append(&self, data: &[u8]) -> io::Result<usize> {
        self.write_once(data, 0, ReadWriteFlags::APPEND)
    }

    fn write_once(&self, data: &[u8], offset: u64, flags: ReadWriteFlags) -> io::Result<usize> {
        loop {
            let dontcache = data.len() >= LONG_WRITE && !self.no_dontcache.load(Ordering::Relaxed);
            let all = if dontcache { flags | DONTCACHE } else { flags };
            match pwritev2(&self.plain, &[IoSlice::new(data)], offset, all) {
                Err(Errno::INTR) => {}
                Err(e) if dontcache && self.refused(Way::DontCache, e) => {}
                result => return Ok(result?),
            }
        }
    }
}

impl Direct {
    /// Opens the file anew; `None` where the file system or the file's mode forbids it, or descriptors become few.
    fn open(plain: &OwnedFd) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECT | OFlags::NOCTTY;
        let fd = at::reopen(plain.as_fd(), flags).ok().filter(has_low_number)?;
        let (mem_align, offset_align) = alignment(&fd)?;
        Some(Self { fd, mem_align: mem_align as usize, offset_align: u64::from(offset_align) })
    }

    fn takes(&self, out: &[u8], offset: u64) -> bool {
        let (address, len) = (out.as_ptr().addr(), out.len() as u64);
        address % self.mem_align == 0 && offset % self.offset_align == 0 && len % self.offset_align == 0
    }
}

/// The kernel gives the lowest number that is free (open(2)): one beyond a quarter of the limit means that so many are open, and
/// the rest is for files that cannot do without.
fn has_low_number(fd: &OwnedFd) -> bool {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    u64::try_from(fd.as_raw_fd()).is_ok_and(|number| number < limit / 4)
}

/// What direct reads must be aligned to, in bytes: memory, offsets (`STATX_DIOALIGN`, Linux 6.1). `None`: there are none.
fn alignment(fd: &OwnedFd) -> Option<(u32, u32)> {
    let statx = statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
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
    fn where_the_kernel_does_not_say_what_is_dirty_all_is_written_back() {
        let file = tempfile::tempfile().unwrap();
        if dirty::is_memory(&file) || dirty::has_dirty(file.as_fd(), 0, 1).is_err() {
            return eke_testkit::real::skip("settle", "no disk, or no cachestat(2) to see it by");
        }
        for direct in [true, false] {
            file.write_all_at(&[1; 100_000], 0).unwrap();
            let backing = File::new(file.try_clone().unwrap().into());
            backing.no_cachestat.store(true, Ordering::Relaxed);
            if !direct {
                assert!(backing.direct.set(None).is_ok());
            }
            assert!(dirty::has_dirty(file.as_fd(), 0, 100_000).unwrap());
            assert!(backing.settle(0, 100_000) && backing.has_dirty(0, 100_000).is_none());
            assert!(!dirty::has_dirty(file.as_fd(), 0, 100_000).unwrap(), "{direct}");
        }
    }
}
