//! Workers: queued blocks are compressed, blocks that stay are recompressed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use eke_cache_store::{Admitted, FileId, Key, Lookup, Store, StoreSpec, WorkDone};
use eke_model::units::Bytes;

mod content;
use content::{BLOCK, noise, text};

fn key(block: u64) -> Key {
    Key::new(FileId(1), block)
}

fn store() -> Store {
    Store::new(StoreSpec::for_cpus(Bytes::mib(16), 2)).unwrap()
}

fn submit(store: &Store, block: u64) -> Admitted {
    store.submit(0, store.ticket(key(block)), &text(block, BLOCK))
}

#[test]
fn queued_blocks_are_stored_after_the_workers_steps() {
    let (store, mut out) = (store(), vec![0; BLOCK]);
    let (mut scratch, mut worker) = (store.scratch().unwrap(), store.worker(1).unwrap());
    assert_eq!(worker.step(), WorkDone::Nothing);
    for block in 0..10 {
        assert_eq!(submit(&store, block), Admitted::Queued);
    }
    assert!(matches!(store.get(&mut scratch, key(0), &mut out), Lookup::Miss(_)));
    assert_eq!(
        [worker.step(), worker.step(), worker.step()],
        [WorkDone::Compressed(8), WorkDone::Compressed(2), WorkDone::Nothing]
    );
    for block in 0..10 {
        assert_eq!(store.get(&mut scratch, key(block), &mut out), Lookup::Hit(BLOCK));
        assert!(out == text(block, BLOCK));
    }
}

#[test]
fn a_full_queue_refuses_and_its_buffers_come_back() {
    let (store, depth) = (store(), 32);
    let mut worker = store.worker(0).unwrap();
    for _ in 0..3 {
        let queued = (0..100).filter(|&block| submit(&store, block) == Admitted::Queued).count();
        assert_eq!(queued, depth);
        while worker.step() != WorkDone::Nothing {}
        store.drop_file(FileId(1));
    }
    assert_eq!(store.stats().overrun, 3 * (100 - 32));
    assert_eq!(store.stats().queued, Bytes((32 * BLOCK) as u64));
    store.resize(Bytes::mib(8));
    assert_eq!(store.stats().queued, Bytes(0));
}

#[test]
fn a_block_that_changed_while_it_waited_is_not_admitted() {
    let store = store();
    let mut worker = store.worker(0).unwrap();
    for block in 0..3 {
        submit(&store, block);
    }
    let _ = store.drop_block(key(1));
    while worker.step() != WorkDone::Nothing {}
    assert_eq!((0..3).map(|b| store.contains(key(b))).collect::<Vec<_>>(), [true, false, true]);
    assert_eq!(store.stats().stale, 1);
}

#[test]
fn blocks_that_do_not_compress_or_are_short_or_zero_are_stored_too() {
    let store = store();
    let mut worker = store.worker(0).unwrap();
    let blocks = [text(2, 30_000), noise(1, BLOCK), text(1, 100)];
    for (index, block) in blocks.iter().enumerate() {
        assert_eq!(store.submit(7, store.ticket(key(index as u64)), block), Admitted::Queued);
    }
    assert_eq!(store.submit(7, store.ticket(key(9)), &[0; 512]), Admitted::Stored);
    while worker.step() != WorkDone::Nothing {}
    assert_eq!([0, 1, 2, 9].map(|b| store.contains(key(b))), [true; 4], "the file compresses");
    assert_eq!(store.stats().uncompressed, 2);
}

/// A store in which some blocks are requested again and again.
fn filled() -> Store {
    let store = store();
    let (mut scratch, mut out, mut random) =
        (store.scratch().unwrap(), vec![0; BLOCK], fastrand::Rng::with_seed(1));
    for block in 0..1500 {
        for block_read in [block, random.u64(..100)] {
            if let Lookup::Miss(ticket) = store.get(&mut scratch, key(block_read), &mut out) {
                store.admit(&mut scratch, ticket, &text(block_read, BLOCK));
            }
        }
    }
    store
}

#[test]
fn blocks_that_stay_are_recompressed_once_and_read_the_same() {
    let (store, mut out) = (filled(), vec![0; BLOCK]);
    let (mut scratch, mut worker) = (store.scratch().unwrap(), store.worker(0).unwrap());
    let before = store.stats();
    assert_eq!((before.recompressed, worker.step()), (0, WorkDone::Nothing));
    store.begin_round();
    let mut recompressed = 0;
    loop {
        match worker.step() {
            WorkDone::Recompressed(done) => recompressed += u64::from(done),
            WorkDone::Compressed(_) => panic!("nothing was queued"),
            WorkDone::Nothing => break,
        }
    }
    let after = store.stats();
    assert!(
        recompressed > 20 && after.recompressed == recompressed && after.compressed < before.compressed,
        "{after:?}"
    );
    assert_eq!(after.raw, before.raw);
    store.check().unwrap();
    for block in (0..1500).filter(|&b| store.contains(key(b))) {
        assert_eq!(store.get(&mut scratch, key(block), &mut out), Lookup::Hit(BLOCK));
        assert!(out == text(block, BLOCK), "{block}");
    }
    store.begin_round();
    while worker.step() != WorkDone::Nothing {}
    assert_eq!(store.stats().recompressions, recompressed, "what was tried is not tried again");
}

#[test]
fn a_round_ends_when_its_caller_ends_it() {
    let store = filled();
    let mut worker = store.worker(0).unwrap();
    store.begin_round();
    assert!(matches!(worker.step(), WorkDone::Recompressed(_)));
    store.end_round();
    assert_eq!(worker.step(), WorkDone::Nothing);
}

#[test]
fn threads_that_read_write_drop_and_resize_never_see_another_block() {
    let store = &store();
    std::thread::scope(|scope| {
        let workers = [0, 1].map(|cpu| scope.spawn(move || store.worker(cpu).unwrap().run()));
        let readers = [1u64, 2, 3].map(|seed| scope.spawn(move || read_and_drop(store, seed)));
        for round in 0..40 {
            store.resize(Bytes::mib(if round % 2 == 0 { 4 } else { 16 }));
            store.begin_round();
            std::thread::yield_now();
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        store.close();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
    store.check().unwrap();
    assert!(store.stats().hits > 100, "{:?}", store.stats());
    assert_eq!(store.stats().corrupted, 0);
}

/// Blocks whose first bytes are their number.
fn read_and_drop(store: &Store, seed: u64) {
    let (mut scratch, mut out) = (store.scratch().unwrap(), vec![0; BLOCK]);
    let mut randoms = fastrand::Rng::with_seed(seed);
    for _ in 0..1500 {
        let random = randoms.u64(..);
        let block = random % 64;
        let ticket = match store.get(&mut scratch, key(block), &mut out) {
            Lookup::Hit(len) => {
                assert!(len == BLOCK && out == numbered(block));
                continue;
            }
            Lookup::Miss(ticket) => ticket,
            Lookup::Corrupted(_) => panic!("corrupted"),
        };
        match random >> 60 {
            0 => store.drop_file(FileId(1)),
            1..4 => drop_and_forget(store, block),
            4..8 => u64::from(store.submit(seed as usize, ticket, &numbered(block)) == Admitted::Queued),
            _ => u64::from(store.admit(&mut scratch, ticket, &numbered(block)) == Admitted::Stored),
        };
    }
}

fn drop_and_forget(store: &Store, block: u64) -> u64 {
    store.drop_block(key(block)).key().block
}

fn numbered(block: u64) -> Vec<u8> {
    block
        .to_le_bytes()
        .iter()
        .copied()
        .chain((8..BLOCK).map(|i| (i as u64 / 50 * (block + 1)) as u8))
        .collect()
}
