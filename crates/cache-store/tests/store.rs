//! The store as its callers see it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use eke_cache_store::{Admitted, FileId, Heat, Incompressible, Key, Lookup, Scratch, Store, StoreSpec};
use eke_model::units::Bytes;

mod content;
use content::{BLOCK, noise, text};

fn store(limit: Bytes) -> (Store, Scratch) {
    let store = Store::new(StoreSpec::for_cpus(limit, 1)).unwrap();
    let scratch = store.scratch().unwrap();
    (store, scratch)
}

fn key(block: u64) -> Key {
    Key::new(FileId(1), block)
}

fn admit(store: &Store, scratch: &mut Scratch, key: Key, block: &[u8]) -> Admitted {
    store.admit(scratch, store.ticket(key), block)
}

fn get(store: &Store, scratch: &mut Scratch, key: Key) -> Option<Vec<u8>> {
    let mut out = vec![0xaa; BLOCK];
    match store.get(scratch, key, &mut out) {
        Lookup::Hit(len) => Some(out[..len].to_vec()),
        Lookup::Miss(_) | Lookup::Corrupted(_) => None,
    }
}

#[test]
fn a_hit_returns_the_admitted_block() {
    let (store, mut scratch) = store(Bytes::mib(8));
    for (index, len) in [4096, 1, 15, 65535, BLOCK].into_iter().enumerate() {
        let block = text(index as u64, len);
        let admitted = admit(&store, &mut scratch, key(index as u64), &block);
        // The shortest do not compress. They are stored uncompressed after a block that does.
        assert_eq!(admitted, Admitted::Stored, "{len}");
        assert_eq!(get(&store, &mut scratch, key(index as u64)), Some(block), "{len}");
    }
    assert_eq!(get(&store, &mut scratch, key(99)), None);
    store.check().unwrap();
}

#[test]
fn zero_blocks_take_only_a_table_entry() {
    let (store, mut scratch) = store(Bytes::mib(8));
    for block in 0..4000 {
        assert_eq!(admit(&store, &mut scratch, key(block), &[0; BLOCK]), Admitted::Stored);
    }
    assert_eq!(get(&store, &mut scratch, key(3999)), Some(vec![0; BLOCK]));
    let stats = store.stats();
    assert_eq!((stats.zero, stats.compressed, stats.raw), (4000, Bytes(0), Bytes(4000 * BLOCK as u64)));
    assert!(stats.held < Bytes::mib(1), "{}", stats.held);
}

#[test]
fn a_file_that_does_not_compress_is_refused_and_soon_not_tried() {
    let (store, mut scratch) = store(Bytes::mib(8));
    let admitted = (0..100).map(|block| admit(&store, &mut scratch, key(block), &noise(block, BLOCK)));
    let held = admitted.filter(|admitted| *admitted == Admitted::Stored).count();
    assert_eq!(held, 0);
    let stats = store.stats();
    assert!(stats.not_tried > 80 && stats.held < Bytes::mib(1), "{stats:?}");
    store.drop_file(FileId(1));
    let before = store.stats().not_tried;
    admit(&store, &mut scratch, key(0), &text(0, BLOCK));
    assert_eq!(store.stats().not_tried, before, "a file with other content is tried again");
}

#[test]
fn a_block_that_does_not_compress_is_no_hole_in_a_file_that_does() {
    let (store, mut scratch) = store(Bytes::mib(8));
    assert_eq!(admit(&store, &mut scratch, key(100), &noise(100, BLOCK)), Admitted::Incompressible);
    for block in 0..100 {
        let bytes = if block % 3 == 1 { noise(block, BLOCK) } else { text(block, BLOCK) };
        assert_eq!(admit(&store, &mut scratch, key(block), &bytes), Admitted::Stored);
        assert_eq!(get(&store, &mut scratch, key(block)), Some(bytes));
    }
}

#[test]
fn with_keep_incompressible_blocks_are_stored_as_they_are() {
    let spec = StoreSpec { incompressible: Incompressible::Keep, ..StoreSpec::for_cpus(Bytes::mib(8), 1) };
    let store = Store::new(spec).unwrap();
    let mut scratch = store.scratch().unwrap();
    for block in 0..20 {
        assert_eq!(admit(&store, &mut scratch, key(block), &noise(block, BLOCK)), Admitted::Stored);
    }
    assert!((0..20).all(|block| get(&store, &mut scratch, key(block)) == Some(noise(block, BLOCK))));
    assert_eq!(store.stats().uncompressed, 20);
}

#[test]
fn a_block_that_changed_in_memory_is_dropped_and_reported() {
    let (store, mut scratch) = store(Bytes::mib(8));
    admit(&store, &mut scratch, key(1), &text(1, BLOCK));
    assert!(store.damage(key(1)));
    let mut out = vec![0; BLOCK];
    let Lookup::Corrupted(ticket) = store.get(&mut scratch, key(1), &mut out) else { panic!("not noticed") };
    assert!(matches!(store.get(&mut scratch, key(1), &mut out), Lookup::Miss(_)));
    assert_eq!(store.admit(&mut scratch, ticket, &text(1, BLOCK)), Admitted::Stored);
    assert_eq!(get(&store, &mut scratch, key(1)), Some(text(1, BLOCK)));
    assert_eq!(store.stats().corrupted, 1);
    store.check().unwrap();
}

#[test]
fn a_ticket_is_void_after_a_drop_of_the_block_the_range_or_the_file() {
    let (store, mut scratch) = store(Bytes::mib(8));
    let drops: [&dyn Fn(); 4] = [
        &|| _ = store.drop_block(key(5)),
        &|| _ = store.drop_range(FileId(1), 4..6),
        &|| _ = store.drop_range(FileId(1), 0..1 << 40),
        &|| _ = store.drop_file(FileId(1)),
    ];
    for dropped in drops {
        let ticket = store.ticket(key(5));
        dropped();
        assert_eq!(store.admit(&mut scratch, ticket, &text(5, BLOCK)), Admitted::Stale);
        assert_eq!(store.submit(0, ticket, &text(5, BLOCK)), Admitted::Stale);
        assert_eq!(get(&store, &mut scratch, key(5)), None);
    }
    assert_eq!(store.stats().stale, 8);
}

#[test]
fn drops_remove_the_named_blocks_and_no_others() {
    let (store, mut scratch) = store(Bytes::mib(16));
    let other = Key::new(FileId(2), 7);
    admit(&store, &mut scratch, other, &text(0, BLOCK));
    for block in 0..200 {
        assert_eq!(admit(&store, &mut scratch, key(block), &text(block, BLOCK)), Admitted::Stored);
    }
    let held = || (0..200).filter(|&block| store.contains(key(block))).collect::<Vec<_>>();
    assert_eq!(store.drop_range(FileId(1), 3..5), 2);
    assert_eq!(store.drop_range(FileId(1), 100..u64::MAX), 100);
    let _ = store.drop_block(key(0));
    assert_eq!(held(), (1..3).chain(5..100).collect::<Vec<_>>());
    assert_eq!(store.drop_file(FileId(1)), 97);
    assert!(held().is_empty() && store.contains(other));
    assert_eq!(store.drop_file(FileId(3)), 0);
    store.check().unwrap();
}

#[test]
fn the_limit_holds_and_the_ratio_pays() {
    let (store, mut scratch) = store(Bytes::mib(16));
    for block in 0..2000 {
        assert_eq!(admit(&store, &mut scratch, key(block), &text(block, BLOCK)), Admitted::Stored);
        if block % 100 == 0 {
            store.check().unwrap();
        }
    }
    let stats = store.stats();
    assert!(stats.held <= Bytes::mib(16) && stats.held > Bytes::mib(14), "{stats:?}");
    assert!(stats.evictions > 100 && stats.no_room == 0, "{stats:?}");
    let wasted = 1.0 - stats.compressed.0 as f64 / stats.held.0 as f64;
    assert!(wasted < 0.15, "{wasted} of the memory holds nothing: {stats:?}");
}

#[test]
fn a_small_limit_holds_little_and_none_holds_nothing() {
    for limit in [Bytes(0), Bytes(1000), Bytes::mib(1)] {
        let (store, mut scratch) = store(limit);
        for block in 0..100 {
            let admitted = admit(&store, &mut scratch, key(block), &text(block, BLOCK));
            assert_eq!(
                admitted,
                if limit < Bytes::mib(1) { Admitted::NoRoom } else { Admitted::Stored },
                "{limit}"
            );
        }
        assert!(store.stats().held <= limit.max(Bytes(16 << 10)), "{:?}", store.stats());
    }
}

#[test]
fn a_spec_that_makes_no_sense_is_refused() {
    let usual = StoreSpec::for_cpus(Bytes::mib(8), 0);
    let wrong = [
        StoreSpec { block_size: 5000, ..usual.clone() },
        StoreSpec { block_size: 1 << 20, ..usual.clone() },
        StoreSpec { shards: 0, ..usual.clone() },
        StoreSpec { queue_depth: 0, ..usual.clone() },
        StoreSpec { batch: 17, ..usual.clone() },
    ];
    assert!(wrong.into_iter().all(|spec| Store::new(spec).is_err()));
    assert!(Store::new(usual).is_ok());
}

#[test]
fn bad_lengths_are_refused_and_small_buffers_are_misses() {
    let (store, mut scratch) = store(Bytes::mib(8));
    assert_eq!(admit(&store, &mut scratch, key(0), &[]), Admitted::BadLength);
    assert_eq!(admit(&store, &mut scratch, key(0), &vec![1; BLOCK + 1]), Admitted::BadLength);
    assert_eq!(admit(&store, &mut scratch, key(0), &text(0, BLOCK)), Admitted::Stored);
    assert_eq!(admit(&store, &mut scratch, key(0), &text(0, BLOCK)), Admitted::Present);
    assert!(matches!(store.get(&mut scratch, key(0), &mut [0; 100]), Lookup::Miss(_)));
    assert_eq!(get(&store, &mut scratch, key(0)), Some(text(0, BLOCK)));
    store.check().unwrap();
}

#[test]
fn the_limit_holds_for_tables_too_wherever_it_is_when_they_grow() {
    for limit in (20..400_000).step_by(7000) {
        let (store, mut scratch) = store(Bytes(limit));
        for block in 0..(limit / 100) {
            admit(&store, &mut scratch, key(block), &[0; 512]);
            assert!(
                store.stats().held <= Bytes(limit.max(16 << 10)),
                "{limit}, {block}: {:?}",
                store.stats()
            );
        }
        store.check().unwrap();
        // Below that the smallest tables may use all the room.
        let least = if limit > 16 << 10 { limit / 400 } else { 0 };
        assert!(store.stats().zero >= least, "{limit}: {:?}", store.stats());
    }
}

/// Many small blocks, then a limit at which the tables must shrink and blocks move to other slots.
#[test]
fn tables_shrink_and_no_block_is_lost_on_the_way() {
    const SMALL: usize = 4096;
    let spec = StoreSpec { block_size: SMALL, shards: 1, ..StoreSpec::for_cpus(Bytes::mib(32), 1) };
    let store = Store::new(spec).unwrap();
    let (mut scratch, mut out) = (store.scratch().unwrap(), vec![0; SMALL]);
    let name = |block: u64| Key::new(FileId(block % 3), block);
    for block in 0..6000 {
        store.admit(&mut scratch, store.ticket(name(block)), &text(block % 40 * 4, SMALL));
    }
    let before = store.stats();
    store.resize(Bytes(2_500_000));
    store.check().unwrap();
    let after = store.stats();
    assert!(after.held <= Bytes(2_500_000) && after.tables.0 * 2 < before.tables.0, "{before:?} {after:?}");
    assert!(after.held > Bytes(1_500_000), "{after:?}");
    let held: Vec<u64> = (0..6000).filter(|&block| store.contains(name(block))).collect();
    assert_eq!(held.len() as u64, after.fast);
    for &block in &held {
        assert_eq!(store.get(&mut scratch, name(block), &mut out), Lookup::Hit(SMALL));
        assert!(out == text(block % 40 * 4, SMALL), "{block}");
    }
    let of_file = |file| held.iter().filter(|&&block| block % 3 == file).count() as u64;
    assert_eq!(store.drop_file(FileId(1)), of_file(1));
    for block in 6000..9000 {
        store.admit(&mut scratch, store.ticket(name(block)), &text(block % 40 * 4, SMALL));
        if block % 100 == 0 {
            store.check().unwrap();
        }
    }
    assert_eq!(store.stats().no_room, 0);
    store.resize(Bytes(0));
    assert_eq!((store.stats().fast, store.check()), (0, Ok(())));
}

#[test]
fn what_is_admitted_to_stay_outlives_a_scan() {
    let (store, mut scratch) = store(Bytes::mib(4));
    let to_stay = |store: &Store, scratch: &mut Scratch, block| {
        store.admit_to_stay(scratch, store.ticket(key(block)), &text(block, BLOCK))
    };
    admit(&store, &mut scratch, key(0), &text(0, BLOCK));
    assert_eq!(to_stay(&store, &mut scratch, 0), (Admitted::Present, 0), "it is promoted");
    let mut taken = 0;
    for block in 1..16 {
        let (admitted, bytes) = to_stay(&store, &mut scratch, block);
        assert_eq!(admitted, Admitted::Stored);
        taken += bytes;
    }
    assert!(taken > 0 && taken < 15 * BLOCK, "{taken}");
    for block in 0..2000 {
        let scanned = Key::new(FileId(2), block);
        store.admit(&mut scratch, store.ticket(scanned), &text(block, BLOCK));
    }
    assert!(store.stats().evictions > 100);
    assert_eq!((0..16).filter(|block| store.contains(key(*block))).count(), 16);
    let mut heats = Vec::new();
    store.each(|key, heat| heats.extend((key.file == FileId(1)).then_some(heat)));
    assert_eq!(heats, [Heat::Main; 16]);
    assert!(get(&store, &mut scratch, key(3)).is_some());
    store.check().unwrap();
}
