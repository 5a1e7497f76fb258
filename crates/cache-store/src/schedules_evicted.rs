//! Evictions, drops and returns under shuttle: a block that was dropped never comes back from the listener.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "test code")]

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use eke_model::units::Bytes;
use shuttle::thread;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, lock};
use crate::{Admitted, CompressedBlock, EvictionListener, FileId, Form, Heat, Key, Lookup, Store, StoreSpec};

const BLOCK: usize = 4096;
const FILE: FileId = FileId(1);
const KEY: Key = Key::new(FILE, 0);

/// A kept block: its form, length, sum and bytes, and its number, so that no other is taken for it.
type Kept = (Form, usize, u64, Vec<u8>, u64);

/// Keeps all that is evicted.
#[derive(Debug, Default)]
struct KeepAll {
    kept: Mutex<HashMap<Key, Kept>>,
    numbers: AtomicU64,
}

impl EvictionListener for KeepAll {
    fn evicted(&self, block: &CompressedBlock<'_>, _: Heat) {
        let number = self.numbers.fetch_add(1, Ordering::SeqCst);
        let kept = (block.form, block.raw_len, block.sum, block.compressed.to_vec(), number);
        lock(&self.kept).insert(block.key, kept);
    }

    fn dropped(&self, file: FileId, blocks: &Range<u64>) {
        lock(&self.kept).retain(|key, _| key.file != file || !blocks.contains(&key.block));
    }
}

impl KeepAll {
    fn get(&self, key: Key) -> Option<Kept> {
        lock(&self.kept).get(&key).cloned()
    }
}

/// Reads as the tier does: from the store, else from the listener, else from the file. Returns the content.
fn read(store: &Store, listener: &KeepAll, file: &AtomicU64) -> u8 {
    let (mut scratch, mut out) = (store.scratch().unwrap(), vec![0; BLOCK]);
    let ticket = match store.get(&mut scratch, KEY, &mut out) {
        Lookup::Hit(_) => return out[0],
        Lookup::Miss(ticket) | Lookup::Corrupted(ticket) => ticket,
    };
    if let Some((form, raw_len, sum, bytes, number)) = listener.get(KEY) {
        thread::yield_now();
        let block = CompressedBlock { key: KEY, form, raw_len, sum, compressed: &bytes };
        assert!(block.is_whole() && store.decompress(&mut scratch, &block, &mut out));
        store.readmit(ticket, &block, || listener.get(KEY).is_some_and(|kept| kept.4 == number));
        return out[0];
    }
    let content = vec![file.load(Ordering::SeqCst) as u8; BLOCK];
    thread::yield_now();
    store.admit(&mut scratch, ticket, &content);
    content[0]
}

fn race(drop_blocks: fn(&Store)) {
    let listener = Arc::new(KeepAll::default());
    let usual = StoreSpec::for_cpus(Bytes::mib(2), 1);
    let spec = StoreSpec { block_size: BLOCK, shards: 2, listener: Some(listener.clone()), ..usual };
    let (store, file) = (Arc::new(Store::new(spec).unwrap()), Arc::new(AtomicU64::new(1)));
    assert_eq!(read(&store, &listener, &file), 1);
    store.resize(Bytes(0));
    store.resize(Bytes::mib(2));
    assert!(listener.get(KEY).is_some());
    let readers = [false, true].map(|evicts| {
        let (store, listener, file) = (store.clone(), listener.clone(), file.clone());
        thread::spawn(move || {
            read(&store, &listener, &file);
            if evicts {
                store.resize(Bytes(0));
                store.resize(Bytes::mib(2));
            }
        })
    });
    file.store(2, Ordering::SeqCst);
    drop_blocks(&store);
    assert_eq!(read(&store, &listener, &file), 2, "older than an acknowledged write");
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    assert_eq!(read(&store, &listener, &file), 2, "older than an acknowledged write");
    assert_eq!(store.check(), Ok(()));
}

#[test]
fn a_dropped_block_does_not_come_back() {
    shuttle::check_random(|| race(|store| _ = store.drop_block(KEY)), 700);
    shuttle::check_pct(|| race(|store| _ = store.drop_block(KEY)), 700, 3);
}

#[test]
fn a_dropped_file_does_not_come_back() {
    shuttle::check_random(|| race(|store| _ = store.drop_file(FILE)), 700);
    shuttle::check_pct(|| race(|store| _ = store.drop_file(FILE)), 700, 3);
}

#[test]
fn an_evicted_block_returns_once_and_as_it_was() {
    shuttle::check_random(
        || {
            let listener = Arc::new(KeepAll::default());
            let usual = StoreSpec::for_cpus(Bytes::mib(2), 1);
            let store = Store::new(StoreSpec { listener: Some(listener.clone()), ..usual }).unwrap();
            let mut scratch = store.scratch().unwrap();
            let content = b"to eke out: to make a small supply last. ".repeat(1000);
            store.admit(&mut scratch, store.ticket(KEY), &content);
            store.resize(Bytes(0));
            store.resize(Bytes::mib(2));
            let (form, raw_len, sum, bytes, _) = listener.get(KEY).unwrap();
            let block = CompressedBlock { key: KEY, form, raw_len, sum, compressed: &bytes };
            let again = |ticket, block: &CompressedBlock<'_>| store.readmit(ticket, block, || true);
            assert_eq!(again(store.ticket(Key::new(FILE, 1)), &block), Admitted::BadLength);
            let old = store.ticket(KEY);
            let _ = store.drop_block(KEY);
            assert_eq!(again(old, &block), Admitted::Stale);
            assert_eq!(store.readmit(store.ticket(KEY), &block, || false), Admitted::Stale);
            assert_eq!(again(store.ticket(KEY), &block), Admitted::Stored);
            assert_eq!(again(store.ticket(KEY), &block), Admitted::Present);
            let mut out = vec![0; content.len()];
            assert_eq!(store.get(&mut scratch, KEY, &mut out), Lookup::Hit(content.len()));
            assert!(out == content);
        },
        1,
    );
}
