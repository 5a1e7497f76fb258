//! Memory that is given back leaves the process. One test, because it measures the memory of the whole process.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use eke_cache_store::{Admitted, FileId, Incompressible, Key, Lookup, Scratch, Store, StoreSpec};
use eke_model::units::Bytes;

mod content;
use content::{BLOCK, noise};

/// Allowance for other memory of the process.
const SLACK: Bytes = Bytes::mib(8);

/// The resident memory of this process, as the kernel counts it now (VmRSS lags behind).
fn resident() -> Bytes {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = text.lines().find(|line| line.starts_with("Rss:")).unwrap();
    Bytes(line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10)
}

/// Blocks of different lengths, made at little cost.
struct Content(Vec<u8>);

impl Content {
    fn block(&self, block: u64) -> &[u8] {
        let len = 8_000 + (block as usize * 7919) % (BLOCK - 8_000);
        &self.0[block as usize % 4096..][..len]
    }
}

fn fill(store: &Store, scratch: &mut Scratch, content: &Content, blocks: std::ops::Range<u64>) {
    for block in blocks {
        let ticket = store.ticket(Key::new(FileId(1), block));
        let admitted = store.admit(scratch, ticket, content.block(block));
        assert!(matches!(admitted, Admitted::Stored | Admitted::Present), "{block}: {admitted:?}");
    }
}

/// Counts stored blocks, and compares their content.
fn held(store: &Store, scratch: &mut Scratch, content: &Content, blocks: u64) -> u64 {
    let mut out = vec![0; BLOCK];
    let mut right = |block| match store.get(scratch, Key::new(FileId(1), block), &mut out) {
        Lookup::Hit(len) => {
            assert!(out[..len] == *content.block(block), "{block}");
            true
        }
        Lookup::Miss(_) => false,
        Lookup::Corrupted(_) => panic!("{block} is corrupted"),
    };
    (0..blocks).filter(|&block| right(block)).count() as u64
}

#[test]
fn a_smaller_limit_and_a_drop_give_memory_back_to_the_kernel() {
    let spec = StoreSpec { incompressible: Incompressible::Keep, ..StoreSpec::for_cpus(Bytes::mib(192), 2) };
    let (store, content) = (Store::new(spec).unwrap(), Content(noise(1, BLOCK + 4096)));
    let mut scratch = store.scratch().unwrap();
    let before = resident();
    let taken = || resident().saturating_sub(before);

    fill(&store, &mut scratch, &content, 0..8000);
    assert!(taken() > Bytes::mib(150) && taken() < Bytes::mib(192) + SLACK, "filled: {}", taken());

    for limit in [100, 40] {
        store.resize(Bytes::mib(limit));
        assert!(taken() < Bytes::mib(limit) + SLACK, "limit {limit} MiB: {}", taken());
        assert!(
            store.stats().held > Bytes::mib(limit).scaled(0.8),
            "more was thrown out than had to: {:?}",
            store.stats()
        );
        store.check().unwrap();
        assert_eq!(held(&store, &mut scratch, &content, 8000), store.stats().uncompressed);
    }

    store.resize(Bytes::mib(192));
    fill(&store, &mut scratch, &content, 8000..16_000);
    assert!(taken() > Bytes::mib(150), "grown again: {}", taken());
    store.drop_file(FileId(1));
    assert!(taken() < SLACK, "dropped: {}", taken());
    fill(&store, &mut scratch, &content, 0..8000);
    store.resize(Bytes(0));
    assert!(taken() < SLACK, "limit 0: {}", taken());
    assert!(store.stats().held < Bytes(1 << 20), "{:?}", store.stats());
}
