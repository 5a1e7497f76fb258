//! A backing directory on btrfs with compression, whose direct reads go through the page cache.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use eke_cache_mounts::settings::PassthroughMode;
use eke_cachefs::backing;
use eke_linux::page_cache::counts;
use eke_testkit::real::{lacking, lock_machine, no_program, skip};
use eke_testkit::wait::wait_for;
use rustix::fs::{Advice, Mode, OFlags, fadvise};

use super::mounted::{Mounted, detach};

const SIZE: usize = 8 << 20;
const READ: usize = 128 << 10;
/// Pages of the file, of 2048.
const FEW: u64 = 100;
const MANY: u64 = 1000;

/// Unmounted when dropped.
struct Btrfs(tempfile::TempDir);

impl Btrfs {
    /// `None`: this kernel does not mount it.
    fn new() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let run = |program: &str, args: &[&str]| {
            Command::new(program).args(args).current_dir(dir.path()).output().unwrap().status.success()
        };
        fs::create_dir(dir.path().join("disk")).unwrap();
        File::create_new(dir.path().join("image")).unwrap().set_len(256 << 20).unwrap();
        assert!(run("mkfs.btrfs", &["-q", "image"]));
        run("mount", &["-o", "loop,compress-force=zstd", "image", "disk"]).then(|| Self(dir))
    }

    fn disk(&self) -> PathBuf {
        self.0.path().join("disk")
    }

    fn path(&self) -> PathBuf {
        self.disk().join("file")
    }

    fn cold(&self) -> File {
        cold(&self.path())
    }
}

fn content() -> Vec<u8> {
    (0..SIZE).map(|at| (at / 512 + at % 251) as u8).collect()
}

/// A compressed file, none of whose pages are in the page cache.
fn cold(path: &Path) -> File {
    let file = File::create(path).unwrap();
    file.write_all_at(&content(), 0).unwrap();
    file.sync_all().unwrap();
    // Threads that compress may still have some of them.
    wait_for("the page cache to drop the file", || {
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        cached_pages(&file) == 0
    });
    File::open(path).unwrap()
}

/// A disk on which direct reads leave pages.
fn disk(test: &str) -> Option<Btrfs> {
    let why = lacking(&["/dev/fuse", "/dev/loop-control"]).or_else(|| no_program(&["mkfs.btrfs", "mount"]));
    if let Some(why) = why {
        skip(test, &why);
        return None;
    }
    let Some(btrfs) = Btrfs::new() else {
        skip(test, "this kernel does not mount btrfs");
        return None;
    };
    if counts(tempfile::tempfile().unwrap(), 0, 1).is_err() {
        skip(test, "no cachestat(2)");
        return None;
    }
    let file = btrfs.cold();
    let flags = OFlags::RDONLY | OFlags::DIRECT;
    let direct = File::from(rustix::fs::open(btrfs.path(), flags, Mode::empty()).unwrap());
    read(|out, at| direct.read_at(out, at).unwrap(), all());
    let leaves = cached_pages(&file) > MANY;
    if !leaves {
        skip(test, "direct reads of this kernel leave nothing");
    }
    leaves.then_some(btrfs)
}

fn all() -> impl Iterator<Item = usize> {
    (0..SIZE).step_by(READ)
}

impl Drop for Btrfs {
    fn drop(&mut self) {
        detach(&self.disk());
    }
}

/// Reads aligned pieces of that many bytes in this order.
fn read(mut one: impl FnMut(&mut [u8], u64) -> usize, places: impl IntoIterator<Item = usize>) {
    let mut memory = vec![0; READ + 4096];
    let start = memory.as_ptr().align_offset(4096);
    places.into_iter().for_each(|at| assert_eq!(one(&mut memory[start..start + READ], at as u64), READ));
}

fn by_eke(file: &File, places: impl IntoIterator<Item = usize>) {
    let file = backing::File::new(OwnedFd::from(file.try_clone().unwrap()));
    read(|out, at| file.read_at(out, at).unwrap(), places);
}

fn cached_pages(file: &File) -> u64 {
    counts(file, 0, SIZE as u64).unwrap().cached
}

#[test]
fn direct_reads_leave_no_pages_of_compressed_extents() {
    let _machine = lock_machine();
    let Some(btrfs) = disk("direct_reads_leave_no_pages_of_compressed_extents") else { return };
    let file = btrfs.cold();
    by_eke(&file, all());
    assert!(cached_pages(&file) < FEW, "in order: {}", cached_pages(&file));
    // In the middle of extents, and far from each other.
    by_eke(&file, (0..7).rev().map(|n| (n << 20) + (64 << 10)));
    assert!(cached_pages(&file) < FEW, "here and there: {}", cached_pages(&file));
    // Another program's pages stay.
    read(|out, at| file.read_at(out, at).unwrap(), all());
    by_eke(&file, all());
    assert!(cached_pages(&file) > MANY, "of another program: {}", cached_pages(&file));
}

#[test]
fn a_compressed_file_that_is_read_by_the_mount_is_not_in_memory_twice() {
    let _machine = lock_machine();
    let name = "a_compressed_file_that_is_read_by_the_mount_is_not_in_memory_twice";
    let Some(btrfs) = disk(name) else { return };
    let mounted = Mounted::new(&btrfs.disk(), Duration::from_secs(1), PassthroughMode::Never);
    let (backing, content) = (cold(&mounted.backing("file")), content());
    std::thread::scope(|scope| {
        for part in 0..4 {
            let (file, content) = (File::open(mounted.at("file")).unwrap(), &content);
            scope.spawn(move || {
                let (start, mut bytes) = (part * SIZE / 4, vec![0; SIZE / 4]);
                file.read_exact_at(&mut bytes, start as u64).unwrap();
                assert!(bytes == content[start..start + SIZE / 4], "{part}");
            });
        }
    });
    assert!(cached_pages(&backing) < FEW, "{}", cached_pages(&backing));
}
