//! The latency of a random read of one page: from the swap disk, and from the disk of files.

use std::fs::{File, OpenOptions};
use std::io::IoSliceMut;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use eke_linux::Root;
use eke_model::sample::SwapArea;
use eke_statistics::Random;
use rustix::fs::{Advice, OFlags};
use rustix::io::{Errno, ReadWriteFlags};

use super::buffer::Buffer;
use super::measurements::DiskLatency;
use super::zram::{p50_p99, since_ns};
use crate::error::{Error, Result};

/// The most reads of one disk.
const READS: usize = 512;
/// Directories of programs and their data; no home directory.
const FILE_DIRS: [&str; 6] = ["usr", "opt", "var/lib", "srv", "bin", "lib"];
/// The smallest file to read from.
const LARGE_BYTES: u64 = 1 << 20;
/// Enough files to choose from.
const FILES: usize = 128;
/// The most directory entries to read for them.
const ENTRIES: usize = 20_000;

/// Random direct reads of a swap area, until `until` at most.
///
/// # Errors
/// The area cannot be opened or read by direct I/O.
pub(crate) fn swap_area(
    root: &Root,
    area: &SwapArea,
    until: Instant,
    random: &mut Random,
) -> Result<DiskLatency> {
    let path = root.path(&area.path);
    let pages = area.size.0 / rustix::param::page_size() as u64;
    let file = Opened { file: open(&path, true)?, path, pages, direct: true };
    let mut reads = Reads::new()?;
    while reads.wants_more(until) {
        reads.one(&file, random)?;
    }
    Ok(reads.latency(area.path.clone(), true))
}

/// Random reads of large files in `dir`, or in `/usr` and the like, until `until` at most: by direct I/O, or, if the file system has none, of
/// uncached pages through the page cache.
///
/// # Errors
/// There are no such files, or none can be read.
pub(crate) fn files(
    root: &Root,
    dir: Option<&Path>,
    until: Instant,
    random: &mut Random,
) -> Result<DiskLatency> {
    let dirs = dir.map_or_else(|| FILE_DIRS.map(|d| root.path(d)).into(), |dir| vec![root.path(dir)]);
    let what = dir.map_or_else(|| root.path("usr"), |dir| root.path(dir));
    let mut paths = large_files(dirs, until);
    random.shuffle(&mut paths);
    let mut reads = Reads::new()?;
    let mut failure = Error::io("find a file of 1 MiB or more in", &what, Errno::NOENT.into());
    let mut direct = true;
    let mut opened = Vec::new();
    for path in paths.into_iter().take(FILES) {
        match open_file(path) {
            Ok(file) => opened.push(file),
            Err(e) => failure = e,
        }
    }
    let mut misses = 0;
    while !opened.is_empty() && misses < READS && reads.wants_more(until) {
        let file = &opened[random.below(opened.len() as u64) as usize];
        match reads.one(file, random) {
            Ok(true) => direct &= file.direct,
            Ok(false) => misses += 1,
            Err(e) => (misses, failure) = (misses + 1, e),
        }
    }
    if reads.times_ns.is_empty() {
        Err(failure)
    } else {
        Ok(reads.latency(what.display().to_string(), direct))
    }
}

fn open(path: &Path, direct: bool) -> Result<File> {
    let flags = if direct { OFlags::DIRECT.bits() as i32 } else { 0 };
    OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|e| Error::io("open", path, e))
}

fn open_file(path: PathBuf) -> Result<Opened> {
    let (file, direct) =
        open(&path, true).map(|f| (f, true)).or_else(|_| open(&path, false).map(|f| (f, false)))?;
    let bytes = file.metadata().map_err(|e| Error::io("read the size of", &path, e))?.len();
    Ok(Opened { file, path, pages: bytes / rustix::param::page_size() as u64, direct })
}

/// Regular files of [`LARGE_BYTES`] or more, breadth first, symbolic links not followed.
fn large_files(below: Vec<PathBuf>, until: Instant) -> Vec<PathBuf> {
    let mut dirs: std::collections::VecDeque<PathBuf> =
        below.into_iter().filter(|d| !d.is_symlink()).collect();
    let (mut found, mut seen) = (Vec::new(), 0);
    while let Some(dir) = dirs.pop_front() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            seen += 1;
            match entry.file_type() {
                Ok(t) if t.is_dir() => dirs.push_back(entry.path()),
                Ok(t) if t.is_file() && entry.metadata().is_ok_and(|m| m.len() >= LARGE_BYTES) => {
                    found.push(entry.path())
                }
                _ => {}
            }
        }
        if found.len() >= FILES * 4 || seen >= ENTRIES || Instant::now() >= until {
            break;
        }
    }
    found
}

struct Opened {
    file: File,
    path: PathBuf,
    pages: u64,
    direct: bool,
}

/// The reads so far.
struct Reads {
    page: Buffer,
    times_ns: Vec<u64>,
}

impl Reads {
    fn new() -> Result<Self> {
        Ok(Self { page: Buffer::new(1)?, times_ns: Vec::new() })
    }

    fn wants_more(&self, until: Instant) -> bool {
        self.times_ns.len() < READS && Instant::now() < until
    }

    /// Reads a random page of `file`. `false` if the page cache still has it: that would not be the disk's latency.
    fn one(&mut self, file: &Opened, random: &mut Random) -> Result<bool> {
        let at = random.below(file.pages) * rustix::param::page_size() as u64;
        if !file.direct && is_cached(&file.file, at, self.page.bytes_mut()) {
            return Ok(false);
        }
        let start = Instant::now();
        let got = file.file.read_exact_at(self.page.bytes_mut(), at);
        got.map_err(|e| Error::io("read a page from", &file.path, e))?;
        self.times_ns.push(since_ns(start));
        Ok(true)
    }

    fn latency(mut self, what: String, direct: bool) -> DiskLatency {
        let (p50, p99) = p50_p99(&mut self.times_ns);
        DiskLatency { what, device: None, reads: self.times_ns.len() as u64, p50, p99, direct }
    }
}

/// Drops the page at `at` from the page cache. `false` if it is gone (`RWF_NOWAIT`, Linux 4.14: EAGAIN means that the read would wait for a disk). On a
/// kernel or file system without that flag the page counts as cached.
fn is_cached(file: &File, at: u64, page: &mut [u8]) -> bool {
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Random);
    let _ = rustix::fs::fadvise(file, at, std::num::NonZeroU64::new(page.len() as u64), Advice::DontNeed);
    let answer = rustix::io::preadv2(file, &mut [IoSliceMut::new(page)], at, ReadWriteFlags::NOWAIT);
    answer != Err(Errno::AGAIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_root_without_large_files_says_what_it_looked_for() {
        let dir = tempfile::tempdir().unwrap();
        let until = Instant::now() + Duration::from_millis(100);
        let e = files(&Root::at(dir.path()), None, until, &mut Random::new(1)).err().unwrap();
        assert!(e.to_string().contains("find a file of 1 MiB or more"), "{e}");
    }
}
