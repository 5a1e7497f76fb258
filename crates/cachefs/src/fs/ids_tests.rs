use std::ffi::OsStr;

use eke_cache_mounts::settings::Compress;
use eke_cache_store::{Key, Store, StoreSpec};
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::*;
use crate::backing::at;
use crate::node::NoLedger;

/// Of another device.
const DEV: u64 = 99;
const MOST: usize = 8;

/// A file system with ids for so many files on other devices.
fn serving(dir: &std::path::Path, most: usize) -> (Fs, Arc<Tier>, Arc<Store>) {
    let root = openat(CWD, dir, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    let spec = StoreSpec { block_size: 4096, shards: 1, ..StoreSpec::for_cpus(Bytes::mib(2), 1) };
    let store = Arc::new(Store::new(spec).unwrap());
    let tier = Tier::new(Arc::clone(&store), Compress::Sync, crate::tier::Options::default());
    let tier = Arc::new(tier.with_few_ids(most));
    let fs = Fs::new(root, Arc::clone(&tier), Arc::new(NoLedger), Options::default()).unwrap();
    (fs, tier, store)
}

#[test]
fn when_ids_are_scarce_unused_files_lose_theirs() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("file")).unwrap();
    let (fs, tier, store) = serving(dir.path(), MOST);
    let mut found = at::stat_at(fs.path(ROOT).unwrap(), OsStr::new("file")).unwrap();
    found.stx_dev_minor += 1;
    let node = fs.nodes().learn(&found, ROOT, OsStr::new("file")).unwrap();
    assert!(is_foreign(node.number));
    let of_node = fs.id(&node);

    let ids: Vec<FileId> = (1..MOST as u64).map(|ino| tier.id(DEV, ino)).collect();
    let none = tier.id(DEV, 1000);
    assert_eq!(tier.id(DEV, 1001), none, "there is no room");
    let key = Key::new(ids[0], 0);
    let _ = store.admit(&mut store.scratch().unwrap(), store.ticket(key), &[7; 4096]);
    assert!(store.contains(key));

    fs.give_up_ids();
    assert_eq!((fs.id(&node), tier.id(DEV, 1)), (of_node, ids[0]), "a node, and a block");
    let new = tier.id(DEV, 1000);
    assert!(new != none && new != of_node && !ids.contains(&new));
    assert_eq!(tier.known_id(DEV, 2), None);
}

#[test]
fn a_file_that_gets_an_id_during_a_change_keeps_no_block_from_before() {
    let dir = tempfile::tempdir().unwrap();
    let (fs, tier, store) = serving(dir.path(), 1);
    tier.id(DEV, 1);
    let mut found = at::stat(fs.path(ROOT).unwrap()).unwrap();
    found.stx_dev_minor += 1;
    let node = fs.nodes().learn(&found, ROOT, OsStr::new("file")).unwrap();
    let mut key = None;
    fs.changing(&node, |none| {
        fs.give_up_ids();
        let now = fs.id(&node);
        assert_ne!(now, none);
        let read = Key::new(now, 0);
        let _ = store.admit(&mut store.scratch().unwrap(), store.ticket(read), &[7; 4096]);
        assert!(store.contains(read));
        key = Some(read);
    });
    assert!(!store.contains(key.unwrap()));
}
