//! The tier over real files, compared with their content.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

mod freshness;
mod model;

use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use eke_cache_mounts::settings::Compress;
use eke_cache_store::{FileId, Key, Store, StoreSpec, WorkDone};
use eke_cachefs::backing::{File, Stamp};
use eke_cachefs::tier::clock::{Clock, SystemClock};
use eke_cachefs::tier::policy::AdmissionPolicy;
use eke_cachefs::tier::ready::Readiness;
use eke_cachefs::tier::{Freshness, Options, ReadContext, Reporting, Tier, WritePosition};
use eke_model::units::Bytes;
use eke_testkit::wait::wait_for;
use proptest::prelude::*;

const BLOCK: usize = 4096;

/// A backing file, another descriptor of it, and a tier over it.
struct Set {
    tier: Tier,
    store: Arc<Store>,
    context: ReadContext,
    file: FileId,
    backing: File,
    other: std::fs::File,
}

fn set_with(compress: Compress, options: Options) -> Set {
    set_of_blocks(BLOCK, compress, options)
}

fn set_of_blocks(block_size: usize, compress: Compress, options: Options) -> Set {
    let spec = StoreSpec { block_size, shards: 2, ..StoreSpec::for_cpus(Bytes::mib(4), 1) };
    let store = Arc::new(Store::new(spec).unwrap());
    let tier = Tier::new(store.clone(), compress, options);
    let other = tempfile::tempfile().unwrap();
    let backing = File::new(OwnedFd::from(other.try_clone().unwrap()));
    let meta = other.metadata().unwrap();
    let (context, file) = (tier.context(), tier.id(meta.dev(), meta.ino()));
    Set { tier, store, context, file, backing, other }
}

fn set(compress: Compress) -> Set {
    set_with(compress, Options::default())
}

impl Set {
    fn read(&mut self, offset: u64, len: usize) -> Vec<u8> {
        self.tier.read(&mut self.context, self.file, &self.backing, offset, len).unwrap().to_vec()
    }

    fn write(&mut self, position: WritePosition, data: &[u8]) {
        let written = self.tier.write(&mut self.context, self.file, &self.backing, position, data);
        assert_eq!(written.unwrap(), data.len());
    }

    fn truncate(&self, size: u64) {
        let from = size.min(self.other.metadata().unwrap().len());
        self.tier.change(self.file, from..u64::MAX, &self.backing, || self.other.set_len(size)).unwrap();
    }

    /// The kernel's time stamps are as coarse as its tick: a change within a tick would not show.
    fn wait_for_next_stamp(&self) {
        let last = self.other.metadata().unwrap();
        wait_for("the next tick of the time stamps", || {
            let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
            (now.tv_sec, now.tv_nsec) > (last.ctime(), last.ctime_nsec())
        });
    }

    fn open(&self) -> Freshness {
        self.tier.opened(self.file, self.backing.stamp().unwrap(), || Reporting::Unwatched)
    }

    fn compress(&self) {
        let mut worker = self.store.worker(0).unwrap();
        while worker.step() != WorkDone::Nothing {}
    }
}

fn text(len: usize, seed: u64) -> Vec<u8> {
    (0..len).map(|at| ((at as u64 / 7 * (seed + 3)) % 61) as u8).collect()
}

/// A clock that is this many nanoseconds ahead.
#[derive(Default)]
struct Ahead(AtomicI64);

impl Clock for Ahead {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn wall_ns(&self) -> i128 {
        SystemClock.wall_ns() + i128::from(self.0.load(Ordering::SeqCst))
    }
}

#[test]
fn a_second_read_comes_from_memory() {
    let mut set = set(Compress::Sync);
    set.other.write_all_at(&text(100_000, 1), 0).unwrap();
    assert!(set.read(0, 100_000) == text(100_000, 1));
    let cold = set.tier.report();
    assert_eq!((cold.misses, cold.bytes_from_backing), (25, 100_000));
    assert!(set.read(0, 100_000) == text(100_000, 1));
    let warm = set.tier.report();
    assert_eq!((warm.misses, warm.hits + warm.recent_hits, warm.bytes_from_store), (25, 25, 100_000));
    assert_eq!(warm.bytes_from_backing, 100_000);
}

#[test]
fn what_is_read_ahead_follows_from_what_was_read_there_not_from_the_place() {
    let blocks_read = |reads: &[(u64, usize)]| {
        let mut set = set(Compress::Sync);
        set.other.write_all_at(&text(4 << 20, 1), 0).unwrap();
        let mut before = 0;
        let mut read = |(block, len): &(u64, usize)| {
            set.read(block * BLOCK as u64, *len);
            let all = set.tier.report().bytes_from_backing;
            (all - std::mem::replace(&mut before, all)) / BLOCK as u64
        };
        reads.iter().map(&mut read).collect::<Vec<_>>()
    };
    const LONG: usize = 128 << 10;
    let table = [
        ("its first bytes", vec![(0, 4096)], vec![2]),
        ("its beginning", vec![(0, 20 << 10)], vec![5]),
        ("a jump", vec![(500, 4096), (300, 4096), (301, 4096), (302, 4096)], vec![1, 1, 4, 0]),
        ("on from a jump", vec![(500, 4096), (501, 4096), (505, 4096), (510, 4096)], vec![1, 4, 5, 10]),
        ("long requests at two places", vec![(500, LONG), (100, LONG), (132, LONG)], vec![32, 32, 32]),
        ("short ones at a block's end", vec![(500, 4096), (501, 12 << 10)], vec![1, 4]),
    ];
    for (what, reads, expected) in table {
        assert_eq!(blocks_read(&reads), expected, "{what}");
    }
}

#[test]
fn small_reads_next_to_each_other_decompress_a_block_once() {
    let mut set = set(Compress::Sync);
    set.other.write_all_at(&text(BLOCK, 1), 0).unwrap();
    set.read(0, BLOCK);
    for at in 0..8 {
        assert!(set.read(at * 512, 512) == text(BLOCK, 1)[at as usize * 512..][..512]);
    }
    let report = set.tier.report();
    assert_eq!((report.misses, report.hits, report.recent_hits), (1, 1, 7));
}

#[test]
fn with_async_the_workers_admit_what_was_read() {
    let mut set = set(Compress::Async);
    set.other.write_all_at(&text(3 * BLOCK, 1), 0).unwrap();
    set.read(0, 3 * BLOCK);
    assert_eq!(set.store.stats().insertions, 0);
    set.compress();
    assert_eq!(set.store.stats().insertions, 3);
    set.read(0, 3 * BLOCK);
    assert_eq!(set.tier.report().misses, 3);
}

/// Reads 16 KiB blocks; the first one shows how long a block takes.
#[test]
fn of_a_block_in_the_middle_the_first_short_read_brings_in_nothing_and_the_second_the_block() {
    const BIG: usize = 16 << 10;
    let mut set = set_of_blocks(BIG, Compress::Sync, Options::default());
    set.other.write_all_at(&text(10 * BIG, 1), 0).unwrap();
    set.other.sync_all().unwrap();
    rustix::fs::fadvise(&set.other, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    set.open();
    set.read(3 * BIG as u64, BIG);
    let (whole, read) = (set.store.stats().insertions, set.tier.report().bytes_from_backing);
    assert_eq!(set.read(5 * BIG as u64 + 100, 1000), &text(10 * BIG, 1)[5 * BIG + 100..][..1000]);
    let alone = (set.store.stats().insertions - whole, set.tier.report().bytes_from_backing - read);
    assert_eq!(alone, (0, 1000));
    set.read(5 * BIG as u64 + 9000, 1000);
    assert_eq!(set.store.stats().insertions - whole, 1);
    set.read(5 * BIG as u64 + 100, 1000);
    assert_eq!(set.tier.report().bytes_from_backing - read, 1000 + BIG as u64, "it is resident");
}

struct Never;

impl AdmissionPolicy for Never {
    fn admit(&self, _: FileId, _: u64) -> bool {
        false
    }
}

#[test]
fn blocks_of_declined_files_are_read_and_not_admitted() {
    let mut set = set_with(Compress::Sync, Options { policy: Arc::new(Never), ..Options::default() });
    set.other.write_all_at(&text(BLOCK, 1), 0).unwrap();
    (0..2).for_each(|_| assert!(set.read(0, BLOCK) == text(BLOCK, 1)));
    assert_eq!((set.store.stats().insertions, set.tier.report().declined), (0, 2));
}

#[test]
fn without_a_store_everything_is_read_from_the_backing_file() {
    let (tier, other) = (Tier::default(), tempfile::tempfile().unwrap());
    let (backing, mut context) = (File::new(OwnedFd::from(other.try_clone().unwrap())), tier.context());
    let file = tier.id(1, 2);
    tier.write(&mut context, file, &backing, WritePosition::End, &text(9000, 1)).unwrap();
    assert!(tier.read(&mut context, file, &backing, 100, 20_000).unwrap() == &text(9000, 1)[100..]);
    assert_eq!(tier.report().bytes_from_backing, 8900);
}

#[test]
fn errors_of_the_backing_file_are_passed_on() {
    let mut set = set(Compress::Sync);
    set.backing = File::new(std::fs::File::open("/").unwrap().into());
    let error = set.tier.read(&mut set.context, set.file, &set.backing, 0, 10).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::ISDIR.raw_os_error()));
}

#[test]
fn a_sparse_file_of_a_tebibyte_costs_nothing() {
    let mut set = set(Compress::Sync);
    set.truncate(1 << 40);
    set.write(WritePosition::At(1 << 39), b"middle");
    for at in [0, 12_345_678_901, (1 << 40) - 10_000] {
        assert!(set.read(at, 10_000) == [0; 10_000]);
    }
    assert_eq!(set.read((1 << 39) - 3, 12), b"\0\0\0middle\0\0\0");
    assert_eq!(set.read(1 << 40, 100), b"");
    let stats = set.store.stats();
    assert!(stats.zero > 8 && stats.fast + stats.uncompressed <= 2, "{stats:?}");
}

#[test]
fn a_file_that_is_truncated_while_it_is_read_gives_no_error_and_no_other_bytes() {
    const SIZE: usize = 20 * BLOCK;
    let Set { tier, file, backing, other, .. } = &set(Compress::Async);
    let fill = || other.write_all_at(&text(SIZE, 1), 0).unwrap();
    fill();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = eke_testkit::wait::RaiseOnDrop(&done);
        scope.spawn(|| {
            let mut context = tier.context();
            while !done.load(Ordering::SeqCst) {
                let read = tier.read(&mut context, *file, backing, 100, SIZE).unwrap();
                let right = |(&byte, expected): (&u8, u8)| byte == expected || byte == 0;
                assert!(read.iter().zip(text(SIZE, 1).split_off(100)).all(right));
            }
        });
        for round in 0..300 {
            tier.change(*file, 0..u64::MAX, backing, || other.set_len(round * 97)).unwrap();
            fill();
        }
    });
}

#[test]
fn a_resident_read_does_one_lookup_per_block_and_an_abandoned_one_counts_nothing() {
    let mut set = set_with(Compress::Sync, Options { recent_blocks: 0, ..Options::default() });
    set.other.write_all_at(&text(3 * BLOCK, 5), 0).unwrap();
    assert_eq!(set.read(0, 2 * BLOCK), text(2 * BLOCK, 5));
    let before = set.store.stats();
    assert!(matches!(set.tier.prepare(set.file, 0, 3 * BLOCK + 1), Readiness::Missing));
    let after = set.store.stats();
    assert_eq!((after.hits, after.misses), (before.hits, before.misses), "nothing was requested");

    let before = set.store.stats();
    let Readiness::Resident(read) = set.tier.prepare(set.file, 0, 2 * BLOCK) else { panic!("resident") };
    let bytes = set.tier.read_prepared(&mut set.context, read, &set.backing, 0, 2 * BLOCK).unwrap();
    assert!(bytes == text(2 * BLOCK, 5));
    let after = set.store.stats();
    assert_eq!((after.lookups - before.lookups, after.hits - before.hits), (2, 2));
}

#[test]
fn a_warmed_file_is_in_the_store_and_its_old_pages_are_not_kept() {
    let mut set = set_with(Compress::Async, Options { tick: Duration::ZERO, ..Options::default() });
    let content: Vec<u8> = (0..10 * BLOCK as u32 + 5).map(|at| (at / 97 % 7) as u8).collect();
    set.other.write_all_at(&content, 0).unwrap();
    set.wait_for_next_stamp();
    let warm = |set: &mut Set, bytes| {
        set.tier.visited(set.file, set.backing.stamp().unwrap());
        set.tier.warm(&mut set.context, (set.file, &set.backing), bytes, true).unwrap()
    };
    let size = content.len() as u64;
    let warmed = warm(&mut set, 0..size);
    assert_eq!((warmed.read, warmed.kept, warmed.no_room, warmed.incompressible), (size, size, 0, 0));
    assert!(warmed.taken > 0 && warmed.taken < size / 2, "{warmed:?}");
    let again = warm(&mut set, 0..size);
    assert_eq!((again.read, again.kept, again.taken), (0, size, 0));
    assert_eq!((set.tier.report().bytes_warmed, set.tier.report().bytes_from_backing), (size, 0));
    assert_eq!(set.open(), Freshness::Changed, "the kernel's pages are from before");
    assert_eq!(set.open(), Freshness::Unchanged);
    assert_eq!(set.read(0, content.len()), content);
    assert_eq!(set.tier.report().misses, 0, "the open dropped no block");
    // A change by somebody else.
    set.other.write_all_at(b"new", 0).unwrap();
    set.wait_for_next_stamp();
    assert!(warm(&mut set, 0..BLOCK as u64).read > 0);
    assert_eq!(&set.read(0, 3), b"new");
    assert_eq!((set.open(), set.open()), (Freshness::Changed, Freshness::Unchanged));
}

#[test]
fn a_file_that_does_not_compress_is_not_warmed() {
    let mut set = set(Compress::Sync);
    let mut random = vec![0; 300 * BLOCK];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom").unwrap(), &mut random).unwrap();
    set.other.write_all_at(&random, 0).unwrap();
    set.tier.visited(set.file, set.backing.stamp().unwrap());
    let size = random.len() as u64;
    let warmed = set.tier.warm(&mut set.context, (set.file, &set.backing), 0..size, true).unwrap();
    assert_eq!(warmed.read, size);
    assert!(warmed.incompressible > size / 2, "{warmed:?}");
}

/// A watch reports changes of all files of a file system, and most are never read here.
#[test]
fn a_file_that_nobody_asked_for_gets_no_id() {
    let tier = Tier::default();
    let (own, other) = (tier.id(1, 7), tier.id(2, 7));
    assert_eq!((tier.known_id(1, 7), tier.known_id(2, 7)), (Some(own), Some(other)));
    assert!(tier.known_id(1, 8).is_some(), "an inode's number needs no room");
    let before = tier.tables();
    assert!((8..100).all(|ino| tier.known_id(2, ino).is_none()));
    assert_eq!(tier.tables(), before);
}
