//! A process without memory: the store has fewer blocks, and nothing fails. One test, because the limit is the process's.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use eke_cache_store::{Admitted, FileId, Incompressible, Key, Lookup, Store, StoreSpec};
use eke_model::units::Bytes;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

mod content;
use content::{BLOCK, noise};

/// The address space of the process, in bytes.
fn mapped() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split_whitespace().next().unwrap().parse::<u64>().unwrap() * rustix::param::page_size() as u64
}

#[test]
fn without_memory_blocks_make_room_for_others_and_reads_go_on() {
    let spec = StoreSpec { incompressible: Incompressible::Keep, ..StoreSpec::for_cpus(Bytes::mib(4096), 1) };
    let store = Store::new(spec).unwrap();
    let (mut scratch, mut out, mut content) = (store.scratch().unwrap(), vec![0; BLOCK], noise(1, BLOCK));
    let before = getrlimit(Resource::As);
    setrlimit(Resource::As, Rlimit { current: Some(mapped() + (32 << 20)), maximum: before.maximum })
        .unwrap();

    let (mut outcomes, mut newest) = ([0u64; 2], 0);
    for block in 0..4000u64 {
        content[..8].copy_from_slice(&block.to_le_bytes());
        let key = Key::new(FileId(block % 7), block);
        let admitted = store.admit(&mut scratch, store.ticket(key), &content);
        outcomes[usize::from(admitted != Admitted::Stored)] += 1;
        newest = if admitted == Admitted::Stored { block } else { newest };
    }
    let hit = store.get(&mut scratch, Key::new(FileId(newest % 7), newest), &mut out);
    let stats = store.stats();
    setrlimit(Resource::As, before).unwrap();

    assert_eq!(hit, Lookup::Hit(BLOCK));
    assert!(out[..8] == newest.to_le_bytes());
    assert!(outcomes[0] > 3000, "{outcomes:?} {stats:?}");
    assert!(stats.held < Bytes::mib(40) && stats.evictions > 3000, "{stats:?}");
    store.check().unwrap();
}
