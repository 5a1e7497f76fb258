//! A spill on a disk that fails in every way: no wrong byte is ever served, and what goes wrong is counted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use eke_cache_spill::{Medium, Room, SEGMENT, Saved, SavedFile, Spill, SpillOptions};
use eke_cache_store::{EvictionListener, FileId, Heat, Key, Lookup, Store, StoreSpec};
use eke_model::units::Bytes;
use proptest::prelude::*;

/// What goes wrong with the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// A write writes half and reports no room.
    NoRoom,
    /// A write reports nothing, and the sync an error.
    LostWrite,
    /// A read reports an error.
    BadRead,
    /// A read flips a bit of what it returns.
    Flip(usize),
    /// A write is lost without a word, as after a power cut.
    Silent,
}

/// A disk in memory.
#[derive(Debug, Default)]
struct FakeDisk {
    bytes: Mutex<Vec<u8>>,
    faults: Mutex<Vec<Fault>>,
    /// Not 0: no byte is free.
    full: AtomicU64,
    /// Seconds that have passed.
    passed_s: AtomicU64,
}

impl FakeDisk {
    fn take(&self, is: impl Fn(&Fault) -> bool) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap();
        let at = faults.iter().position(is)?;
        Some(faults.remove(at))
    }

    fn fail(&self, fault: Fault) {
        self.faults.lock().unwrap().push(fault);
    }
}

#[derive(Debug, Clone, Default)]
struct Disk(Arc<FakeDisk>);

impl Medium for Disk {
    fn read(&self, out: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.0.bytes.lock().unwrap();
        let from = bytes.get(offset as usize..).unwrap_or_default();
        if from.len() < out.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        out.copy_from_slice(&from[..out.len()]);
        match self.0.take(|fault| matches!(fault, Fault::BadRead | Fault::Flip(_))) {
            Some(Fault::BadRead) => Err(io::Error::from_raw_os_error(5)),
            Some(Fault::Flip(at)) => {
                let len = out.len();
                out[at % len] ^= 1 << (at % 8);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn write(&self, new: &[u8], offset: u64) -> io::Result<()> {
        // The page of the day is no block.
        let is_page = offset == 0;
        let fault = if is_page { None } else { self.0.take(|f| matches!(f, Fault::NoRoom | Fault::Silent)) };
        let len = match fault {
            Some(Fault::NoRoom) => new.len() / 2,
            Some(_) => return Ok(()),
            None => new.len(),
        };
        let mut bytes = self.0.bytes.lock().unwrap();
        let (start, end) = (offset as usize, offset as usize + len);
        let most = bytes.len().max(end);
        bytes.resize(most, 0);
        bytes[start..end].copy_from_slice(&new[..len]);
        if fault.is_some() { Err(io::Error::from_raw_os_error(28)) } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        self.0
            .take(|fault| *fault == Fault::LostWrite)
            .map_or(Ok(()), |_| Err(io::Error::from_raw_os_error(5)))
    }

    fn room(&self) -> io::Result<Room> {
        let free = if self.0.full.load(Ordering::SeqCst) > 0 { Bytes(0) } else { Bytes(90 << 30) };
        Ok(Room { free, all: Bytes(100 << 30) })
    }
}

const BLOCK: usize = 256 << 10;
const NOW: u64 = 1_700_000_000;

fn options(segments: u64, day: u64) -> SpillOptions {
    SpillOptions { size: Bytes(segments * SEGMENT as u64), day: Bytes(day), blocks: 1000 }
}

fn spill(disk: &Disk, options: SpillOptions, saved: Option<&Saved>) -> Spill {
    let clock = disk.0.clone();
    let now_s = move || NOW + clock.passed_s.load(Ordering::SeqCst);
    Spill::new(Box::new(disk.clone()), options, saved, Box::new(now_s))
}

fn key(block: u64) -> Key {
    Key::new(FileId(block % 3), block)
}

/// Bytes that do not compress, so that few blocks fill a segment.
fn content(block: u64, version: u64) -> Vec<u8> {
    let mut random = fastrand(block * 1000 + version);
    (0..BLOCK).map(|_| random() as u8).collect()
}

fn fastrand(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 32
    }
}

/// Evicts a block as a store does.
fn evict(spill: &Arc<Spill>, block: u64, version: u64) {
    let listener: Arc<dyn EvictionListener> = Arc::new(Hot(spill.clone()));
    let spec = StoreSpec {
        block_size: BLOCK,
        shards: 1,
        incompressible: eke_cache_store::Incompressible::Keep,
        listener: Some(listener),
        ..StoreSpec::for_cpus(Bytes::mib(4), 1)
    };
    let store = Store::new(spec).unwrap();
    store.admit(&mut store.scratch().unwrap(), store.ticket(key(block)), &content(block, version));
    store.resize(Bytes(0));
}

/// Passes evictions on as those of hot blocks.
#[derive(Debug)]
struct Hot(Arc<Spill>);

impl EvictionListener for Hot {
    fn evicted(&self, block: &eke_cache_store::CompressedBlock<'_>, _: Heat) {
        self.0.evicted(block, Heat::Main);
    }

    fn dropped(&self, file: FileId, blocks: &std::ops::Range<u64>) {
        self.0.dropped(file, blocks);
    }
}

/// The block's bytes in its file, if the spill has it.
fn read(spill: &Spill, block: u64) -> Option<Vec<u8>> {
    let mut buffer = Vec::new();
    let spilled = spill.read(key(block), &mut buffer)?;
    assert!(spill.is_at(key(block), spilled.place) || !spill.contains(key(block)));
    let store = Store::new(StoreSpec { block_size: BLOCK, ..StoreSpec::for_cpus(Bytes::mib(4), 1) }).unwrap();
    let mut out = vec![0; spilled.block.raw_len];
    assert!(store.decompress(&mut store.scratch().unwrap(), &spilled.block, &mut out));
    Some(out)
}

#[derive(Debug, Clone)]
enum Op {
    Evict(u64),
    Drop(u64),
    DropFile(u64),
    Read(u64),
    Write,
    Fail(Fault),
    Full(bool),
    Remount,
}

fn fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        Just(Fault::NoRoom),
        Just(Fault::LostWrite),
        Just(Fault::BadRead),
        Just(Fault::Silent),
        any::<usize>().prop_map(Fault::Flip),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let block = 0..12_u64;
    prop_oneof![
        8 => block.clone().prop_map(Op::Evict),
        2 => block.clone().prop_map(Op::Drop),
        1 => (0..3_u64).prop_map(Op::DropFile),
        6 => block.prop_map(Op::Read),
        4 => Just(Op::Write),
        2 => fault().prop_map(Op::Fail),
        1 => any::<bool>().prop_map(Op::Full),
        1 => Just(Op::Remount),
    ]
}

/// As a clean unmount and the next mount do.
fn remount(disk: &Disk, old: &Arc<Spill>, options: SpillOptions) -> Arc<Spill> {
    std::thread::scope(|threads| {
        threads.spawn(|| old.run());
        old.close();
    });
    let file = |file| SavedFile { file, size: 1, times_ns: [0; 3] };
    let mut saved = Saved { files: old.files().into_iter().map(file).collect(), ..Saved::default() };
    assert!(old.save(&mut saved));
    let again = Saved::parse(&saved.bytes().unwrap()).unwrap();
    assert_eq!(again, saved);
    Arc::new(spill(disk, options, Some(&again)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn no_fault_makes_a_wrong_byte(ops in prop::collection::vec(op(), 1..50), segments in 1..4_u64) {
        let (disk, options) = (Disk::default(), options(segments + 1, u64::MAX));
        let mut spill = Arc::new(spill(&disk, options, None));
        let mut versions: HashMap<u64, u64> = HashMap::new();
        for op in ops {
            match op {
                Op::Evict(block) => evict(&spill, block, *versions.entry(block).or_default()),
                Op::Drop(block) => {
                    spill.dropped(key(block).file, &(block..block + 1));
                    *versions.entry(block).or_default() += 1;
                }
                Op::DropFile(file) => {
                    spill.dropped(FileId(file), &(0..u64::MAX));
                    (0..12).filter(|block| block % 3 == file).for_each(|block| *versions.entry(block).or_default() += 1);
                }
                Op::Read(block) => {
                    if let Some(bytes) = read(&spill, block) {
                        let version = versions.get(&block).copied().unwrap_or_default();
                        prop_assert!(bytes == content(block, version), "block {block}, version {version}");
                    }
                }
                Op::Write => {
                    spill.write_sealed();
                    disk.0.passed_s.fetch_add(70, Ordering::SeqCst);
                }
                Op::Fail(fault) => disk.0.fail(fault),
                Op::Full(full) => disk.0.full.store(u64::from(full), Ordering::SeqCst),
                Op::Remount => spill = remount(&disk, &spill, options),
            }
        }
    }
}

fn filled(disk: &Disk, options: SpillOptions, blocks: std::ops::Range<u64>) -> Arc<Spill> {
    let spill = Arc::new(spill(disk, options, None));
    for block in blocks {
        evict(&spill, block, 0);
        spill.write_sealed();
    }
    spill
}

#[test]
fn blocks_come_back_from_memory_and_from_the_disk() {
    let spill = filled(&Disk::default(), options(8, u64::MAX), 0..8);
    for block in 0..8 {
        assert!(read(&spill, block).is_some_and(|bytes| bytes == content(block, 0)), "{block}");
    }
    let stats = spill.stats();
    assert_eq!((stats.blocks, stats.hits, stats.written, stats.errors, stats.corrupted), (8, 8, 8, 0, 0));
    assert!(
        stats.bytes_written >= SEGMENT as u64 / 2 && stats.day_written.0 == stats.bytes_written,
        "{stats:?}"
    );
    assert!(stats.memory.0 >= 2 * SEGMENT as u64 && stats.held.0 % SEGMENT as u64 == 0, "{stats:?}");
}

#[test]
fn a_full_ring_keeps_the_newest_blocks() {
    let spill = filled(&Disk::default(), options(2, u64::MAX), 0..20);
    let there: Vec<u64> = (0..20).filter(|&block| read(&spill, block).is_some()).collect();
    assert!(there.len() >= 6 && there.contains(&19) && !there.contains(&0), "{there:?}");
    assert!(there.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{there:?}");
    assert_eq!(spill.stats().held, Bytes(2 * SEGMENT as u64));
}

#[test]
fn a_full_index_keeps_the_newest_blocks_too() {
    let few = SpillOptions { blocks: 8, ..options(8, u64::MAX) };
    let disk = Disk::default();
    let spill = filled(&disk, few, 0..40);
    let there: Vec<u64> = (0..40).filter(|&block| read(&spill, block).is_some()).collect();
    assert!(there.len() >= 4 && there.contains(&39), "{there:?}");
    assert!(spill.stats().no_room == 0 && spill.stats().written == 40, "{:?}", spill.stats());
    assert!(spill.stats().held < Bytes(8 * SEGMENT as u64), "segments without blocks make room first");
    let fewer = remount(&disk, &spill, SpillOptions { blocks: 4, ..few });
    assert!(fewer.stats().restored > 0, "the newest");
}

#[test]
fn a_disk_that_was_full_is_used_when_it_has_room() {
    let disk = Disk::default();
    disk.0.full.store(1, Ordering::SeqCst);
    let spill = filled(&disk, options(8, u64::MAX), 0..12);
    let stats = spill.stats();
    assert!(stats.no_room > 0 && stats.day_written == Bytes(0) && stats.bytes_written == 0, "{stats:?}");
    disk.0.full.store(0, Ordering::SeqCst);
    spill.look_for_room();
    (20..32).for_each(|block| {
        evict(&spill, block, 0);
        spill.write_sealed();
    });
    assert!(spill.stats().bytes_written > 0 && read(&spill, 20).is_some(), "{:?}", spill.stats());
}

#[test]
fn the_days_budget_holds_over_a_restart_and_a_crash() {
    let (disk, options) = (Disk::default(), options(8, SEGMENT as u64 + 5));
    let spill = filled(&disk, options, 0..12);
    let stats = spill.stats();
    assert!(stats.over_day > 0 && stats.bytes_written <= options.day.0, "{stats:?}");
    // Without a word of farewell.
    drop(spill);
    let again = filled(&disk, options, 20..32);
    assert!(again.stats().over_day > 0 && again.stats().bytes_written == 0, "{:?}", again.stats());
    assert_eq!(again.stats().day_written, stats.day_written);
}

#[test]
fn a_failed_write_costs_its_segment_and_a_rest() {
    for fault in [Fault::NoRoom, Fault::LostWrite] {
        let disk = Disk::default();
        disk.0.fail(fault);
        let spill = filled(&disk, options(8, u64::MAX), 0..8);
        let stats = spill.stats();
        assert_eq!((stats.errors, stats.bytes_written), (1, 0), "{fault:?}: {stats:?}");
        assert!(stats.no_room > 0 && read(&spill, 0).is_none(), "{fault:?}: {stats:?}");
    }
}

#[test]
fn a_segment_that_cannot_be_read_is_dropped_and_so_is_a_wrong_block() {
    let disk = Disk::default();
    let spill = filled(&disk, options(8, u64::MAX), 0..9);
    disk.0.fail(Fault::Flip(100_000));
    assert_eq!((read(&spill, 0), spill.stats().corrupted, spill.contains(key(0))), (None, 1, false));
    assert!(read(&spill, 1).is_some());
    disk.0.fail(Fault::BadRead);
    assert_eq!((read(&spill, 1), spill.stats().errors), (None, 1));
    assert!(!spill.contains(key(2)) && spill.contains(key(8)));
}

#[test]
fn a_full_disk_takes_no_more_and_keeps_what_it_has() {
    let disk = Disk::default();
    disk.0.full.store(1, Ordering::SeqCst);
    let none = filled(&disk, options(8, u64::MAX), 0..8);
    assert!(none.stats().no_room > 0 && none.stats().bytes_written == 0, "{:?}", none.stats());
    disk.0.full.store(0, Ordering::SeqCst);
    let spill = filled(&disk, options(8, u64::MAX), 0..8);
    disk.0.full.store(1, Ordering::SeqCst);
    for block in 8..30 {
        evict(&spill, block, 0);
        spill.write_sealed();
    }
    assert!(spill.stats().held.0 <= 4 * SEGMENT as u64, "{:?}", spill.stats());
    assert!(read(&spill, 29).is_some());
}

#[test]
fn a_writer_that_is_behind_makes_nobody_wait() {
    let disk = Disk::default();
    let spill = Arc::new(spill(&disk, options(8, u64::MAX), None));
    (0..12).for_each(|block| evict(&spill, block, 0));
    assert!(spill.stats().behind > 0 && spill.stats().bytes_written == 0, "{:?}", spill.stats());
    assert!(read(&spill, 0).is_some_and(|bytes| bytes == content(0, 0)), "from memory");
}

#[test]
fn what_the_disk_lost_is_not_served_after_a_remount() {
    let (disk, options) = (Disk::default(), options(8, u64::MAX));
    let spill = filled(&disk, options, 0..9);
    let size = disk.0.bytes.lock().unwrap().len();
    let again = remount(&disk, &spill, options);
    assert!(read(&again, 0).is_some() && again.stats().restored == 9, "{:?}", again.stats());
    for truncated in [size / 2, 0] {
        disk.0.bytes.lock().unwrap().truncate(truncated);
        (0..9).for_each(|block| assert!(read(&again, block).is_none_or(|bytes| bytes == content(block, 0))));
    }
    assert!(again.stats().errors > 0 && again.stats().blocks < 9, "{:?}", again.stats());
}

#[test]
fn a_smaller_spill_begins_empty() {
    let disk = Disk::default();
    let spill = filled(&disk, options(8, u64::MAX), 0..20);
    let again = remount(&disk, &spill, options(2, u64::MAX));
    assert_eq!((again.stats().blocks, again.stats().restored), (0, 0));
}

#[test]
fn a_block_that_nobody_requested_again_is_not_written() {
    let spill = Arc::new(spill(&Disk::default(), options(8, u64::MAX), None));
    let listener: Arc<dyn EvictionListener> = spill.clone();
    let spec = StoreSpec { shards: 1, listener: Some(listener), ..StoreSpec::for_cpus(Bytes::mib(4), 1) };
    let store = Store::new(spec).unwrap();
    let mut scratch = store.scratch().unwrap();
    let (once, twice) = (Key::new(FileId(1), 0), Key::new(FileId(2), 0));
    let text = b"to eke out: to make a small supply last. ".repeat(1000);
    for key in [once, twice] {
        store.admit(&mut scratch, store.ticket(key), &text);
    }
    let mut out = vec![0; text.len()];
    // The second request is what counts.
    (0..2).for_each(|_| assert!(matches!(store.get(&mut scratch, twice, &mut out), Lookup::Hit(_))));
    store.resize(Bytes(0));
    assert!(spill.contains(twice) && !spill.contains(once), "{:?}", spill.stats());
    assert_eq!((spill.stats().written, spill.stats().unrequested), (1, 1));
}
