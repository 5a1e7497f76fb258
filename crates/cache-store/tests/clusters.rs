//! Blocks that were admitted together stay and leave together.

#![allow(clippy::unwrap_used, clippy::panic, reason = "test code")]

use eke_cache_store::{Admitted, FileId, Key, Lookup, Scratch, Store, StoreSpec};
use eke_model::units::Bytes;

mod content;
use content::text;

const BLOCK: usize = 4096;
const TOGETHER: u64 = 16;

struct Set {
    store: Store,
    scratch: Scratch,
}

impl Set {
    fn new(together: usize) -> Self {
        let spec =
            StoreSpec { block_size: BLOCK, shards: 1, together, ..StoreSpec::for_cpus(Bytes::mib(2), 1) };
        let store = Store::new(spec).unwrap();
        Self { scratch: store.scratch().unwrap(), store }
    }

    fn admit(&mut self, file: u64, block: u64) {
        let key = Key::new(FileId(file), block);
        let admitted =
            self.store.admit(&mut self.scratch, self.store.ticket(key), &text(file * 100 + block, BLOCK));
        assert!(matches!(admitted, Admitted::Stored | Admitted::Present), "{key:?}: {admitted:?}");
    }

    fn ask(&mut self, file: u64, block: u64) -> bool {
        let key = Key::new(FileId(file), block);
        matches!(self.store.get(&mut self.scratch, key, &mut [0; BLOCK]), Lookup::Hit(_))
    }

    /// How many blocks of each stretch of the file are stored.
    fn held(&self, file: u64, stretches: u64) -> Vec<usize> {
        let holds = |block: &u64| self.store.contains(Key::new(FileId(file), *block));
        let stretch = |at: u64| (at * TOGETHER..(at + 1) * TOGETHER).filter(holds).count();
        (0..stretches).map(stretch).collect()
    }
}

/// Reads files from beginning to end, one after the other, more than fit.
fn read_files(set: &mut Set, files: u64, blocks: u64) {
    for file in 0..files {
        (0..blocks).for_each(|block| set.admit(file, block));
    }
}

#[test]
fn a_file_that_was_read_sequentially_has_no_holes() {
    let mut set = Set::new(TOGETHER as usize);
    read_files(&mut set, 200, 3 * TOGETHER);
    assert!(set.store.stats().evictions > 0);
    // The last stretch of the last file may still be incomplete.
    for file in 0..199 {
        assert!(
            set.held(file, 3).iter().all(|count| [0, TOGETHER as usize].contains(count)),
            "{:?}",
            set.held(file, 3)
        );
    }
    set.store.check().unwrap();
}

#[test]
fn blocks_that_came_in_alone_are_on_their_own() {
    let mut set = Set::new(TOGETHER as usize);
    // One block of each stretch, then the next one of each, ...
    for block in 0..TOGETHER {
        (0..200).for_each(|file| set.admit(file, block));
    }
    // First in, first out, block by block: stored counts differ by at most two, because of stretches with a ghost.
    let held: Vec<usize> = (0..200).map(|file| set.held(file, 1)[0]).collect();
    let (least, most) = (held.iter().min().unwrap(), held.iter().max().unwrap());
    assert!(most - least <= 2 && *least > 0, "{held:?}");
    set.store.check().unwrap();
}

#[test]
fn a_cluster_stays_whole_if_parts_of_it_are_requested_again() {
    let mut set = Set::new(TOGETHER as usize);
    (0..TOGETHER).for_each(|block| set.admit(1000, block));
    for file in 0..200 {
        assert!(set.ask(1000, 5) && set.ask(1000, 1), "{file}");
        (0..TOGETHER).for_each(|block| set.admit(file, block));
    }
    assert_eq!(set.held(1000, 1), [TOGETHER as usize]);
}

#[test]
fn one_pass_is_no_second_request() {
    let mut set = Set::new(TOGETHER as usize);
    (0..TOGETHER).for_each(|block| set.admit(1000, block));
    // Blocks that were read ahead are now requested for the first time.
    assert!((4..TOGETHER).all(|block| set.ask(1000, block)));
    read_files(&mut set, 200, TOGETHER);
    assert_eq!(set.held(1000, 1), [0]);
}

#[test]
fn a_cluster_outlives_its_first_block_and_any_other() {
    let mut set = Set::new(TOGETHER as usize);
    (0..TOGETHER).for_each(|block| set.admit(1, block));
    for (gone, left) in [(0, 15), (7, 14), (15, 13)] {
        let _ = set.store.drop_block(Key::new(FileId(1), gone));
        assert_eq!(set.held(1, 1), [left]);
        set.store.check().unwrap();
    }
    assert!(set.ask(1, 1) && set.ask(1, 1));
    assert_eq!(set.store.drop_file(FileId(1)), 13);
    set.store.check().unwrap();
}

#[test]
fn clusters_of_one_block_are_blocks() {
    let mut set = Set::new(1);
    read_files(&mut set, 200, TOGETHER);
    set.store.check().unwrap();
    let spec = StoreSpec { together: 65, ..StoreSpec::for_cpus(Bytes::mib(2), 1) };
    assert_eq!(Store::new(spec).err().unwrap().to_string(), "clusters of 65 blocks: give 1 to 64");
}
