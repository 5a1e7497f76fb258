//! The latency of a random read of one page: from the swap disk, and from the disk of files.

use std::collections::{HashSet, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::IoSliceMut;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use eke_linux::parse::file_system::may_hang;
use eke_linux::parse::mountinfo;
use eke_linux::{Root, page_cache};
use eke_model::sample::SwapArea;
use eke_statistics::Random;
use rustix::fs::{Advice, OFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};

use super::buffer::Buffer;
use super::measurements::DiskLatency;
use super::times::{p50_p99, since_ns};
use crate::error::{Error, Result};

/// The most reads of one disk.
const READS: usize = 512;
/// Directories of programs and their data, those with the nearest large files first; no home directory.
const FILE_DIRS: [&str; 8] = ["usr/bin", "usr/lib", "usr", "opt", "var/lib", "srv", "bin", "lib"];
/// The smallest file to read from.
const LARGE_BYTES: u64 = 1 << 20;
/// Enough files to choose from.
const FILES: usize = 128;
/// The most directory entries to read for them.
const ENTRIES: usize = 20_000;
/// `ZFS_SUPER_MAGIC` of OpenZFS (sys/zfs_vfsops_os.h): its cache is no page cache, and nothing asks what it holds.
const ZFS: u64 = 0x2fc1_2fc1;
/// The largest folio of a page cache: one that lies only in part in a range is not dropped with that (mm/truncate.c).
const FOLIO: u64 = 2 << 20;
/// So many whole ones are dropped at most: programs read again what is dropped.
const FOLIOS: usize = 16;

/// Random direct reads of a swap area, until `until` at most, of blocks that were written.
///
/// # Errors
/// The area cannot be opened or read by direct I/O, or none of its blocks was written.
pub(crate) fn swap_area(
    root: &Root,
    area: &SwapArea,
    until: Instant,
    random: &mut Random,
) -> Result<DiskLatency> {
    let path = root.path(&area.path);
    let pages = area.size.0 / rustix::param::page_size() as u64;
    let mut file = Opened { direct: Some(open(&path, true)?), buffered: None, path, pages };
    let (mut reads, mut misses) = (Reads::new()?, 0);
    while misses < READS && reads.wants_more(until) {
        misses += usize::from(!reads.one(&mut file, random)?);
    }
    if reads.times_ns.is_empty() {
        return Err(Error::Unwritten { path: file.path });
    }
    Ok(reads.latency(area.path.clone()))
}

/// Random reads of large files in `dir`, or in `/usr` and the like: by direct I/O, or, where the file system has none, of uncached pages through the
/// page cache. The search takes at most half of `time` once it has a file, and the reads as much; on a slow machine at least one page is read.
///
/// # Errors
/// There are no such files, or none can be read.
pub(crate) fn files(
    root: &Root,
    dir: Option<&Path>,
    time: Duration,
    random: &mut Random,
) -> Result<DiskLatency> {
    let dirs = dir.map_or_else(|| FILE_DIRS.map(|d| root.path(d)).into(), |dir| vec![root.path(dir)]);
    let what = dir.map_or_else(|| root.path("usr"), |dir| root.path(dir));
    let all_dirs =
        || dir.map_or_else(|| "/usr, /opt, /var/lib and /srv".to_owned(), |_| what.display().to_string());
    let search = Search {
        enough: FILES * 4,
        entries: ENTRIES,
        until: Instant::now() + time / 2,
        elsewhere: mounts_that_may_hang(root),
    };
    let mut found = search.run(dirs);
    if found.files.is_empty() {
        return Err(Error::NoLargeFile { dirs: all_dirs(), entries: found.entries, all: found.all });
    }
    random.shuffle(&mut found.files);
    let (mut opened, refusal) = open_some(found.files);
    let mut from_files = FromFiles { reads: Reads::new()?, failure: refusal };
    from_files.read(&mut opened, Instant::now() + time / 2, random);
    if from_files.reads.times_ns.is_empty() {
        let none = Error::NothingRead { dirs: all_dirs(), files: opened.len() };
        return Err(from_files.failure.unwrap_or(none));
    }
    Ok(from_files.reads.latency(what.display().to_string()))
}

/// The places of network file systems and automounts. Their servers may be gone, and they are not the disk of files, unless the whole system is on one.
fn mounts_that_may_hang(root: &Root) -> HashSet<PathBuf> {
    let mounts = mountinfo::parse(&root.read_bytes("proc/self/mountinfo").unwrap_or_default());
    let others = mounts.iter().filter(|mount| may_hang(&mount.kind) && mount.place != Path::new("/"));
    others.map(|mount| root.path(&mount.place)).collect()
}

/// Opens at most [`FILES`] files; returns the last refusal beside them.
fn open_some(paths: Vec<PathBuf>) -> (Vec<Opened>, Option<Error>) {
    let (mut opened, mut refusal) = (Vec::new(), None);
    for path in paths.into_iter().take(FILES) {
        match open_file(path) {
            Ok(file) => opened.push(file),
            Err(e) => refusal = Some(e),
        }
    }
    (opened, refusal)
}

/// Reads of several files.
struct FromFiles {
    reads: Reads,
    failure: Option<Error>,
}

impl FromFiles {
    fn read(&mut self, opened: &mut [Opened], until: Instant, random: &mut Random) {
        let mut misses = 0;
        while !opened.is_empty() && misses < READS && self.reads.wants_more(until) {
            let file = &mut opened[random.below(opened.len() as u64) as usize];
            match self.reads.one(file, random) {
                Ok(true) => {}
                Ok(false) => misses += 1,
                Err(e) => (misses, self.failure) = (misses + 1, Some(e)),
            }
        }
    }
}

fn open(path: &Path, direct: bool) -> Result<File> {
    let flags = if direct { OFlags::DIRECT.bits() as i32 } else { 0 };
    OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|e| Error::io("open", path, e))
}

fn open_file(path: PathBuf) -> Result<Opened> {
    let buffered = open(&path, false)?;
    if rustix::fs::fstatfs(&buffered).is_ok_and(|at| at.f_type as u64 == ZFS) {
        return Err(Error::OwnCache { path, file_system: "ZFS" });
    }
    let bytes = buffered.metadata().map_err(|e| Error::io("read the size of", &path, e))?.len();
    let pages = bytes / rustix::param::page_size() as u64;
    Ok(Opened { direct: open(&path, true).ok(), buffered: Some(buffered), path, pages })
}

/// The limits of a search for files of [`LARGE_BYTES`] or more.
struct Search {
    /// Files to end with.
    enough: usize,
    /// The most directory entries to read.
    entries: usize,
    /// The end once there is a file.
    until: Instant,
    /// Mount points that are not looked at, nor what is below them.
    elsewhere: HashSet<PathBuf>,
}

/// The result of a search.
#[derive(Default)]
struct Found {
    files: Vec<PathBuf>,
    /// Directory entries read.
    entries: usize,
    /// Was every directory read to its end?
    all: bool,
}

impl Search {
    /// Regular files, breadth first, symbolic links not followed.
    fn run(&self, dirs: Vec<PathBuf>) -> Found {
        let mut seen: HashSet<PathBuf> = HashSet::new();
        let is_here = |dir: &PathBuf| !dir.ancestors().any(|above| self.elsewhere.contains(above));
        let mut dirs: VecDeque<PathBuf> =
            dirs.into_iter().filter(is_here).filter(|d| !d.is_symlink()).collect();
        let mut found = Found::default();
        while let Some(dir) = dirs.pop_front() {
            if self.elsewhere.contains(&dir) || !seen.insert(dir.clone()) {
                continue;
            }
            for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
                if self.is_over(&found) {
                    return found;
                }
                found.entries += 1;
                match entry.file_type() {
                    Ok(t) if t.is_dir() => dirs.push_back(entry.path()),
                    Ok(t) if t.is_file() && entry.metadata().is_ok_and(|m| m.len() >= LARGE_BYTES) => {
                        found.files.push(entry.path());
                    }
                    _ => {}
                }
            }
        }
        found.all = true;
        found
    }

    /// On a slow machine the time is up before the first file; only the entries bound that.
    fn is_over(&self, found: &Found) -> bool {
        let in_time = found.files.is_empty() || Instant::now() < self.until;
        !in_time || found.files.len() >= self.enough || found.entries >= self.entries
    }
}

struct Opened {
    /// With `O_DIRECT`, if the file system accepts it. btrfs, f2fs and ext4 accept it, and yet read compressed or journaled data through the page cache.
    direct: Option<File>,
    /// Of a file, to ask what the page cache has of it.
    buffered: Option<File>,
    path: PathBuf,
    pages: u64,
}

/// The reads so far.
struct Reads {
    page: Buffer,
    times_ns: Vec<u64>,
    /// How many of them went past the page cache.
    direct: usize,
    /// How many folios were dropped.
    folios: usize,
}

impl Reads {
    fn new() -> Result<Self> {
        Ok(Self { page: Buffer::new(1)?, times_ns: Vec::new(), direct: 0, folios: 0 })
    }

    /// One read in any time.
    fn wants_more(&self, until: Instant) -> bool {
        self.times_ns.is_empty() || (self.times_ns.len() < READS && Instant::now() < until)
    }

    /// Reads a random page of `file`. `false` if the disk has no part in it: the page was never written, or the page cache still has it.
    fn one(&mut self, file: &mut Opened, random: &mut Random) -> Result<bool> {
        let at = random.below(file.pages) * rustix::param::page_size() as u64;
        let Some(any) = file.direct.as_ref().or(file.buffered.as_ref()) else { return Ok(false) };
        if !is_written(any, at) {
            return Ok(false);
        }
        match (&file.direct, &file.buffered) {
            (Some(direct), Some(buffered)) => {
                let read = self.past_cache(direct, buffered, &file.path, at)?;
                if read.is_none() {
                    file.direct = None;
                }
                Ok(read.unwrap_or(false))
            }
            (None, Some(buffered)) => self.through_cache(buffered, &file.path, at),
            (_, None) => self.timed(any, &file.path, at).map(|time| self.count(time, true)),
        }
    }

    /// A direct read. If the page cache has the page afterwards, the read was not direct, or other programs use the page: it counts only if the cache
    /// lacked the page before. `None` where the kernel does not say that to this user.
    fn past_cache(&mut self, direct: &File, buffered: &File, path: &Path, at: u64) -> Result<Option<bool>> {
        let was_cached = self.drop_page(buffered, at);
        let time = self.timed(direct, path, at)?;
        let is_cached = match was_cached {
            Some(_) => is_resident(buffered, at).unwrap_or(false),
            None => nowait(buffered, at, self.page.bytes_mut()).is_ok(),
        };
        Ok(match (was_cached, is_cached) {
            (_, false) => Some(self.count(time, true)),
            (Some(false), true) => Some(self.count(time, false)),
            (Some(true), true) => Some(false),
            (None, true) => None,
        })
    }

    fn through_cache(&mut self, buffered: &File, path: &Path, at: u64) -> Result<bool> {
        drop_cached(buffered, at, self.page.bytes().len() as u64);
        if is_cached(buffered, at, self.page.bytes_mut()) {
            return Ok(false);
        }
        self.timed(buffered, path, at).map(|time| self.count(time, false))
    }

    fn timed(&mut self, file: &File, path: &Path, at: u64) -> Result<u64> {
        let start = Instant::now();
        let got = file.read_exact_at(self.page.bytes_mut(), at);
        got.map_err(|e| Error::io("read a page from", path, e))?;
        Ok(since_ns(start))
    }

    fn count(&mut self, time_ns: u64, direct: bool) -> bool {
        self.times_ns.push(time_ns);
        self.direct += usize::from(direct);
        true
    }

    /// Drops a page, alone or with its folio. Is it cached all the same? `None` if the kernel does not say.
    fn drop_page(&mut self, file: &File, at: u64) -> Option<bool> {
        drop_cached(file, at, self.page.bytes().len() as u64);
        let is_cached = is_resident(file, at)?;
        if !is_cached || self.folios >= FOLIOS {
            return Some(is_cached);
        }
        self.folios += 1;
        drop_cached(file, at / FOLIO * FOLIO, FOLIO);
        is_resident(file, at)
    }

    /// Other programs that read the same pages make single reads indirect, so most of them tell.
    fn latency(mut self, what: String) -> DiskLatency {
        let (p50, p99) = p50_p99(&mut self.times_ns);
        let reads = self.times_ns.len();
        DiskLatency { what, device: None, reads: reads as u64, p50, p99, direct: 2 * self.direct > reads }
    }
}

/// Has the file system something to read at `at`? What fallocate(2) allots reads as zeros, without the disk, until somebody writes there. A swap file
/// stays so: swapping goes past the file system. A block device, and a file system that knows no holes, call everything data (lseek(2)).
fn is_written(file: &File, at: u64) -> bool {
    match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => data <= at,
        Err(answer) => answer != Errno::NXIO,
    }
}

/// Drops these bytes from the page cache, except pages that a program has mapped, and has no neighbour of them read.
fn drop_cached(file: &File, at: u64, bytes: u64) {
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Random);
    let _ = rustix::fs::fadvise(file, at, std::num::NonZeroU64::new(bytes), Advice::DontNeed);
}

/// Would a read of this page not wait for the disk? squashfs and overlays have no such reads.
fn is_cached(file: &File, at: u64, page: &mut [u8]) -> bool {
    match nowait(file, at, page) {
        Err(Errno::AGAIN) => false,
        Err(_) => page_cache::is_resident(file, at).unwrap_or(true),
        Ok(_) => true,
    }
}

/// A read that answers EAGAIN where it would wait for a disk (`RWF_NOWAIT`, Linux 4.14).
fn nowait(file: &File, at: u64, page: &mut [u8]) -> rustix::io::Result<usize> {
    rustix::io::preadv2(file, &mut [IoSliceMut::new(page)], at, ReadWriteFlags::NOWAIT)
}

/// Has the page cache this page? Asked without a read. `None` for a user to whom the kernel does not tell the truth: neither root nor the owner.
fn is_resident(file: &File, at: u64) -> Option<bool> {
    let user = rustix::process::geteuid();
    let is_told = user.is_root() || file.metadata().is_ok_and(|file| file.uid() == user.as_raw());
    if is_told { page_cache::is_resident(file, at).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use eke_model::units::Bytes;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "a file of a fake machine")]
    fn put(root: &Path, name: &str, bytes: usize) {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, vec![1; bytes]).unwrap();
    }

    fn search(root: &Path, entries: usize) -> Found {
        let past = Instant::now();
        Search { enough: 9, entries, until: past, elsewhere: HashSet::new() }
            .run(FILE_DIRS.map(|d| root.join(d)).into())
    }

    #[test]
    fn a_root_without_large_files_has_an_error_with_what_was_read() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "usr/lib/small", 10);
        let e = files(&Root::at(dir.path()), None, Duration::ZERO, &mut Random::new(1)).err().unwrap();
        assert!(e.to_string().contains("no file of 1 MiB or more in /usr, /opt"), "{e}");
        assert!(e.to_string().contains("after all 2 directory entries"), "{e}");
    }

    /// Half a second was over before the search reached a directory with a large file.
    #[test]
    fn a_slow_search_goes_on_until_it_has_one_file() {
        let dir = tempfile::tempdir().unwrap();
        (0..40).for_each(|n| put(dir.path(), &format!("usr/share/{n}/small"), 10));
        put(dir.path(), "usr/share/deep/er/large", 1 << 20);
        put(dir.path(), "var/lib/large", 1 << 20);
        let found = search(dir.path(), 1000);
        assert_eq!((found.files.len(), found.all), (1, false));
    }

    #[test]
    fn a_search_ends_with_its_entries_and_reports_that() {
        let dir = tempfile::tempdir().unwrap();
        (0..40).for_each(|n| put(dir.path(), &format!("usr/share/{n}"), 10));
        let found = search(dir.path(), 20);
        assert_eq!((found.files.len(), found.entries, found.all), (0, 20, false));
        let e = Error::NoLargeFile { dirs: "/usr".into(), entries: 20, all: false };
        assert!(e.to_string().contains("the first 20 directory entries"), "{e}");
    }

    #[test]
    fn a_mount_of_a_server_is_not_the_disk_of_files() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "srv/data/large", 1 << 20);
        put(dir.path(), "opt/remote/large", 1 << 20);
        let nfs = |place: &str| format!("40 22 0:50 / {place} rw - nfs4 server:/x rw\n");
        put(dir.path(), "proc/self/mountinfo", 0);
        #[expect(clippy::disallowed_methods, reason = "a file of a fake machine")]
        std::fs::write(dir.path().join("proc/self/mountinfo"), nfs("/srv") + &nfs("/opt/remote")).unwrap();
        let e = files(&Root::at(dir.path()), None, Duration::ZERO, &mut Random::new(1)).err().unwrap();
        assert!(e.to_string().contains("after all 1 directory entries"), "{e}");
    }

    #[test]
    fn programs_come_first_and_nothing_twice() {
        let dir = tempfile::tempdir().unwrap();
        (0..40).for_each(|n| put(dir.path(), &format!("usr/aaa/{n}"), 10));
        put(dir.path(), "usr/lib/multiarch/libc.so", 1 << 20);
        put(dir.path(), "usr/bin/program", 1 << 20);
        let found = search(dir.path(), 1000);
        assert_eq!((found.files, found.entries), (vec![dir.path().join("usr/bin/program")], 1));
        let until = Instant::now() + Duration::from_secs(60);
        let all = Search { enough: 9, entries: 1000, until, elsewhere: HashSet::new() }
            .run(FILE_DIRS.map(|d| dir.path().join(d)).into());
        assert_eq!((all.files.len(), all.all), (2, true));
    }

    /// The blocks that fallocate(1) gives a swap file read as a hole does: at once, without the disk.
    #[test]
    fn what_was_never_written_is_not_timed() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "half", 4 << 20);
        put(dir.path(), "hole", 0);
        let opened = |name: &str| {
            let path = dir.path().join(name);
            let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
            file.set_len(8 << 20).unwrap();
            file.sync_all().unwrap();
            Opened {
                direct: None,
                buffered: Some(file),
                path,
                pages: (8 << 20) / rustix::param::page_size() as u64,
            }
        };
        let (half, mut hole) = (opened("half"), opened("hole"));
        assert_eq!([0, 4 << 20].map(|at| is_written(half.buffered.as_ref().unwrap(), at)), [true, false]);
        let (mut reads, mut random) = (Reads::new().unwrap(), Random::new(1));
        assert!((0..64).all(|_| !reads.one(&mut hole, &mut random).unwrap()));
        assert!(reads.times_ns.is_empty());
        let area = SwapArea { path: "/hole".into(), size: Bytes::mib(8), ..SwapArea::default() };
        let e = swap_area(&Root::at(dir.path()), &area, Instant::now(), &mut random).err().unwrap();
        let no_direct = "Invalid argument";
        assert!(e.to_string().contains("was never written") || e.to_string().contains(no_direct), "{e}");
    }

    /// A file that the page cache has, and its latency from `reads` pages of it. `None` where files have no disk, as on tmpfs.
    fn latency_of(reads: usize, direct: impl FnOnce(&Path) -> File) -> Option<DiskLatency> {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "file", 4 << 20);
        let mut file = open_file(dir.path().join("file")).unwrap();
        file.buffered.as_ref().unwrap().sync_all().unwrap();
        std::fs::read(&file.path).unwrap();
        file.direct.as_ref()?;
        file.direct = Some(direct(&file.path));
        let (mut timed, mut random) = (Reads::new().unwrap(), Random::new(1));
        (0..reads).for_each(|_| _ = timed.one(&mut file, &mut random).unwrap());
        Some(timed.latency("file".into()))
    }

    /// btrfs reads compressed data through the page cache, whatever a program asks for.
    #[test]
    fn a_read_that_is_not_direct_is_of_a_page_that_the_cache_lacks() {
        let read = latency_of(64, |path| open(path, false).unwrap());
        let Some(read) = read else { return eke_testkit::real::skip("not_direct", "no disk below") };
        assert!(!read.direct && read.reads > 0, "{read:?}");
    }

    #[test]
    fn direct_reads_count_beside_programs_that_use_the_file() {
        let mut in_use = None;
        let read = latency_of(256, |path| {
            let (file, quarter) = (open(path, false).unwrap(), 1 << 20);
            in_use = Some(super::super::buffer::LockedFile::new(file, quarter));
            open(path, true).unwrap()
        });
        let Some(read) = read else { return eke_testkit::real::skip("in_use", "no disk below") };
        assert!(read.direct && (64..256).contains(&read.reads), "{read:?}");
    }

    #[test]
    fn one_page_is_wanted_in_any_time() {
        let past = Instant::now();
        let mut reads = Reads::new().unwrap();
        assert!(reads.wants_more(past));
        reads.times_ns.push(1);
        assert!(!reads.wants_more(past));
    }
}
