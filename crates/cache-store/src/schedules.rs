//! The lock protocols under shuttle: whole stores, thousands of random schedules. In this build every lock and atomic of the
//! crate is shuttle's (see `sync`). Tests with real threads are in `tests/work.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

use std::sync::Arc;

use eke_model::units::Bytes;
use shuttle::thread;

use crate::codec::{Codec, Compressed, Engine, Unreadable};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::{Admitted, FileId, Key, Lookup, OutOfMemory, Store, StoreSpec, WorkDone};

const BLOCK: usize = 4096;
const FILE: FileId = FileId(1);

/// Compresses a block of one repeated byte into this many of it, with a mask.
#[derive(Clone, Copy)]
struct Repeats(usize, u8);

impl Codec for Repeats {
    fn name(&self) -> &'static str {
        "repeats"
    }

    fn bound(&self, len: usize) -> usize {
        len
    }

    fn gives_up_early(&self) -> bool {
        true
    }

    fn engine(&self) -> Result<Box<dyn Engine>, OutOfMemory> {
        Ok(Box::new(*self))
    }
}

impl Engine for Repeats {
    fn compress_batch(&mut self, blocks: &[&[u8]], out: &mut Compressed) {
        for block in blocks {
            out.push_with(self.0, |room| {
                room.fill(block[0] ^ self.1);
                Some(room.len())
            });
        }
    }

    fn decompress(&mut self, compressed: &[u8], out: &mut [u8]) -> Result<(), Unreadable> {
        // A chance for the schedule to do harm while the bytes are read.
        thread::yield_now();
        out.fill(compressed[0] ^ self.1);
        if compressed.iter().all(|&byte| byte == compressed[0]) { Ok(()) } else { Err(Unreadable) }
    }
}

fn store(limit: Bytes) -> Store {
    let (fast, high_ratio) = (Arc::new(Repeats(2048, 0)), Arc::new(Repeats(512, 0x55)));
    let usual = StoreSpec::for_cpus(limit, 1);
    let spec = StoreSpec {
        block_size: BLOCK,
        shards: 1,
        queue_depth: 2,
        batch: 2,
        fast,
        high_ratio: Some(high_ratio),
        ..usual
    };
    Store::new(spec).unwrap()
}

fn check(schedules: usize, scenario: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(scenario, schedules);
    shuttle::check_pct(scenario, schedules, 3);
}

/// A backing file of one block: its only byte, repeated.
struct BackingFile(AtomicU64);

impl BackingFile {
    fn read(&self) -> Vec<u8> {
        vec![self.0.load(Ordering::SeqCst) as u8; BLOCK]
    }
}

fn key(block: u64) -> Key {
    Key::new(FILE, block)
}

/// The byte of a hit; `None` for a miss.
fn get(store: &Store, key: Key) -> Option<u8> {
    let mut out = vec![0; BLOCK];
    match store.get(&mut store.scratch().unwrap(), key, &mut out) {
        Lookup::Hit(_) => Some(out[0]),
        Lookup::Miss(_) => None,
        Lookup::Corrupted(_) => panic!("a block was moved or written while it was read"),
    }
}

/// Reads through the cache as the file system does.
fn read_through(store: &Store, backing: &BackingFile, queued: bool) {
    let (mut scratch, mut out) = (store.scratch().unwrap(), vec![0; BLOCK]);
    if let Lookup::Miss(ticket) = store.get(&mut scratch, key(0), &mut out) {
        let block = backing.read();
        thread::yield_now();
        if queued {
            store.submit(0, ticket, &block);
        } else {
            store.admit(&mut scratch, ticket, &block);
        }
    }
}

/// Readers, one writer, a worker: once a write is acknowledged, no hit is older.
fn write_while_others_read(drop_block: fn(&Store)) {
    let store = Arc::new(store(Bytes::mib(2)));
    let backing = Arc::new(BackingFile(AtomicU64::new(1)));
    let readers = [false, true].map(|queued| {
        let (store, backing) = (store.clone(), backing.clone());
        thread::spawn(move || {
            read_through(&store, &backing, queued);
            store.worker(0).unwrap().step();
        })
    });
    backing.0.store(2, Ordering::SeqCst);
    drop_block(&store);
    assert_ne!(get(&store, key(0)), Some(1), "older than an acknowledged write");
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    assert_ne!(get(&store, key(0)), Some(1), "older than an acknowledged write");
    assert_eq!(store.check(), Ok(()));
}

#[test]
fn no_hit_is_older_than_a_write_that_dropped_the_block() {
    check(700, || write_while_others_read(|store| _ = store.drop_block(key(0))));
}

#[test]
fn no_hit_is_older_than_a_write_that_dropped_the_file() {
    check(700, || write_while_others_read(|store| _ = store.drop_file(FILE)));
}

#[test]
fn two_writers_leave_the_backing_files_content_in_the_store() {
    check(700, || {
        let store = Arc::new(store(Bytes::mib(2)));
        let backing = Arc::new(BackingFile(AtomicU64::new(1)));
        let writers = [2, 3].map(|value| {
            let (store, backing) = (store.clone(), backing.clone());
            thread::spawn(move || {
                let mut scratch = store.scratch().unwrap();
                let ticket = store.drop_block(key(0));
                backing.0.store(value, Ordering::SeqCst);
                if store.admit(&mut scratch, ticket, &[value as u8; BLOCK]) == Admitted::Stale {
                    let _ = store.drop_block(key(0));
                }
            })
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let hit = get(&store, key(0));
        assert!(hit.is_none_or(|byte| u64::from(byte) == backing.0.load(Ordering::SeqCst)), "{hit:?}");
    });
}

#[test]
fn a_pinned_block_stays_in_place_while_others_are_evicted() {
    check(150, || {
        let store = Arc::new(store(Bytes::mib(3)));
        let mut scratch = store.scratch().unwrap();
        for block in 0..8 {
            store.admit(&mut scratch, store.ticket(key(block)), &[block as u8 + 1; BLOCK]);
            // Requested once, the block stays and is recompressed.
            let _ = get(&store, key(block));
        }
        let reader = spawn(&store, |store| {
            for block in [0, 7] {
                assert!(get(store, key(block)).is_none_or(|byte| u64::from(byte) == block + 1));
            }
        });
        let recompressor = spawn(&store, |store| {
            store.begin_round();
            let mut worker = store.worker(0).unwrap();
            while worker.step() != WorkDone::Nothing {}
        });
        let dropper = spawn(&store, |store| {
            let _ = store.drop_block(key(0));
            let mut scratch = store.scratch().unwrap();
            store.admit(&mut scratch, store.ticket(key(9)), &[10; BLOCK]);
        });
        store.resize(Bytes(0));
        store.resize(Bytes::mib(3));
        [reader, recompressor, dropper].into_iter().for_each(|thread| thread.join().unwrap());
        store.resize(Bytes::mib(2));
        assert_eq!(store.check(), Ok(()));
    });
}

#[test]
fn a_block_that_is_read_is_not_overwritten_by_recompression() {
    check(300, || {
        let store = Arc::new(store(Bytes::mib(3)));
        let mut scratch = store.scratch().unwrap();
        store.admit(&mut scratch, store.ticket(key(0)), &[7; BLOCK]);
        // A block that returns soon after its eviction stays.
        store.resize(Bytes(0));
        store.resize(Bytes::mib(3));
        store.admit(&mut scratch, store.ticket(key(0)), &[7; BLOCK]);
        assert_eq!(get(&store, key(0)), Some(7));
        store.begin_round();
        let reader = spawn(&store, |store| assert_eq!(get(store, key(0)), Some(7)));
        let mut worker = store.worker(0).unwrap();
        while worker.step() != WorkDone::Nothing {}
        reader.join().unwrap();
        store.begin_round();
        while worker.step() != WorkDone::Nothing {}
        assert_eq!((get(&store, key(0)), store.stats().recompressed), (Some(7), 1));
    });
}

#[test]
fn queued_blocks_are_compressed_before_the_last_step_and_closing_ends_all_workers() {
    check(300, || {
        let store = Arc::new(store(Bytes::mib(2)));
        let workers = [0, 1].map(|cpu| spawn(&store, move |store| store.worker(cpu).unwrap().run()));
        let blocks = 0..4;
        let submitters = blocks.map(|block| {
            spawn(&store, move |store| {
                let submitted = store.submit(0, store.ticket(key(block)), &[1; BLOCK]);
                assert!(matches!(submitted, Admitted::Queued | Admitted::Overrun), "{submitted:?}");
            })
        });
        submitters.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
        store.close();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        let mut last = store.worker(0).unwrap();
        while last.step() != WorkDone::Nothing {}
        assert_eq!(store.stats().insertions + store.stats().overrun, 4);
    });
}

#[test]
fn a_sleeping_worker_gets_every_notification() {
    check(300, || {
        let store = Arc::new(store(Bytes::mib(2)));
        let worker = spawn(&store, |store| store.worker(0).unwrap().run());
        let _ = store.submit(0, store.ticket(key(0)), &[1; BLOCK]);
        // Without the notification nobody compresses the block and this never ends; shuttle reports that.
        while !store.contains(key(0)) {
            thread::yield_now();
        }
        store.close();
        worker.join().unwrap();
    });
}

fn spawn(store: &Arc<Store>, run: impl FnOnce(&Store) + Send + 'static) -> thread::JoinHandle<()> {
    let store = store.clone();
    thread::spawn(move || run(&store))
}

/// A reader that keeps a resident block outside the store, by a ticket from before the lookup.
fn keep_outside(store: &Store) -> (crate::Ticket, Option<u8>) {
    let ticket = store.ticket(key(0));
    (ticket, get(store, key(0)))
}

fn kept_outside_while_dropped(drop_block: fn(&Store)) {
    let store = Arc::new(store(Bytes::mib(2)));
    store.admit(&mut store.scratch().unwrap(), store.ticket(key(0)), &[1; BLOCK]);
    let reader = {
        let store = store.clone();
        thread::spawn(move || keep_outside(&store))
    };
    drop_block(&store);
    let (ticket, content) = reader.join().unwrap();
    assert!(content.is_none() || !store.is_current(&ticket), "older than an acknowledged write");
}

#[test]
fn what_was_found_before_a_drop_has_no_current_ticket_after_it() {
    check(700, || kept_outside_while_dropped(|store| _ = store.drop_range(FILE, 0..1)));
    check(700, || kept_outside_while_dropped(|store| _ = store.drop_file(FILE)));
}
