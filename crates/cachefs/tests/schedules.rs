//! The tier under shuttle: its own files, built with shuttle's locks and a model of the backing file, under thousands of
//! random schedules. The store is the real one. It has no step of shuttle inside, so each of its calls is one step here;
//! `eke-cache-store` tests its own locks in the same way.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "test code")]

use std::sync::Arc;
use std::time::Duration;

use eke_cache_store::{FileId, Store, StoreSpec};
use eke_model::units::Bytes;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

use backing::File;
use settings::Compress;
use tier::ready::Readiness;
use tier::{Freshness, Options, Reporting, Tier, WritePosition};

#[allow(dead_code, unused_imports, reason = "not all of it is tested here")]
#[path = "../src/tier/mod.rs"]
mod tier;

#[path = "../src/footprint.rs"]
#[allow(dead_code, reason = "not all of it is tested here")]
mod footprint;

mod settings {
    pub use eke_cache_mounts::settings::Compress;
}

mod sync {
    use std::sync::PoisonError;

    pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }
}

/// A backing file as a model: bytes under a lock, with a step of the schedule between two pages.
mod backing {
    use std::io;
    use std::sync::Arc;

    pub use eke_cachefs::backing::{Pages, Stamp};
    use shuttle::sync::mpsc::Receiver;

    use crate::sync::{Mutex, lock};

    const PAGE: usize = 4096;

    #[derive(Default)]
    pub struct File(Mutex<Content>);

    #[derive(Default)]
    struct Content {
        bytes: Vec<u8>,
        changes: u64,
        reads: usize,
        /// This many reads fail.
        faults: usize,
        /// Its server does not answer a stat until something is sent here.
        silent: Option<Arc<Mutex<Receiver<()>>>>,
    }

    impl File {
        pub fn of(bytes: Vec<u8>, faults: usize) -> Self {
            Self(Mutex::new(Content { bytes, faults, ..Content::default() }))
        }

        pub fn reads(&self) -> usize {
            lock(&self.0).reads
        }

        pub fn silent(until: Receiver<()>) -> Self {
            let silent = Some(Arc::new(Mutex::new(until)));
            Self(Mutex::new(Content { silent, ..Content::default() }))
        }

        pub fn stamp(&self) -> io::Result<Stamp> {
            let silent = lock(&self.0).silent.clone();
            if let Some(answer) = silent {
                let _ = lock(&answer).recv();
            }
            let content = lock(&self.0);
            let time_ns = i128::from(content.changes) + 1;
            Ok(Stamp {
                size: content.bytes.len() as u64,
                modified_ns: time_ns,
                changed_ns: time_ns,
                born_ns: 1,
            })
        }

        pub fn fresh_stamp(&self) -> io::Result<Stamp> {
            self.stamp()
        }

        pub fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
            self.begin_read()?;
            let mut done = 0;
            for page in out.chunks_mut(PAGE) {
                let content = lock(&self.0);
                let from = content.bytes.get(offset as usize + done..).unwrap_or_default();
                let len = from.len().min(page.len());
                page[..len].copy_from_slice(&from[..len]);
                done += len;
                if len < page.len() {
                    break;
                }
            }
            Ok(done)
        }

        pub fn run_before(&self, _: u64) -> u64 {
            0
        }

        pub fn pages(&self, _: u64, _: usize) -> Pages {
            Pages::Settled
        }

        pub fn settle(&self, _: u64, _: usize) -> Pages {
            Pages::Settled
        }

        pub fn read_from(&self, _: Pages, out: &mut [u8], offset: u64) -> io::Result<usize> {
            self.read_at(out, offset)
        }

        pub fn has_dirty(&self, _: u64, _: usize) -> Option<bool> {
            Some(false)
        }

        fn begin_read(&self) -> io::Result<()> {
            let mut content = lock(&self.0);
            content.reads += 1;
            if content.faults > 0 {
                content.faults -= 1;
                return Err(io::ErrorKind::Other.into());
            }
            Ok(())
        }

        pub fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
            let mut content = lock(&self.0);
            let (start, end) = (offset as usize, offset as usize + data.len());
            let len = content.bytes.len().max(end);
            content.bytes.resize(len, 0);
            content.bytes[start..end].copy_from_slice(data);
            content.changes += 1;
            Ok(data.len())
        }

        pub fn append(&self, data: &[u8]) -> io::Result<usize> {
            let mut content = lock(&self.0);
            content.bytes.extend_from_slice(data);
            content.changes += 1;
            Ok(data.len())
        }
    }
}

const BLOCK: usize = 4096;
const FILE: FileId = FileId(1);

/// A tier over one file, for several threads.
struct Set {
    tier: Tier,
    store: Arc<Store>,
    backing: File,
}

fn set(compress: Compress, backing: File) -> Arc<Set> {
    set_on(compress, backing, false)
}

fn set_on(compress: Compress, backing: File, is_remote: bool) -> Arc<Set> {
    let spec = StoreSpec { block_size: BLOCK, shards: 1, ..StoreSpec::for_cpus(Bytes::mib(2), 1) };
    let store = Arc::new(Store::new(spec).unwrap());
    let options = Options { tick: Duration::ZERO, is_remote, recent_blocks: 2, ..Options::default() };
    Arc::new(Set { tier: Tier::new(store.clone(), compress, options), store, backing })
}

impl Set {
    fn read(&self, offset: u64, len: usize) -> std::io::Result<Vec<u8>> {
        let mut context = self.tier.context();
        Ok(self.tier.read(&mut context, FILE, &self.backing, offset, len)?.to_vec())
    }

    fn write(&self, position: WritePosition, data: &[u8]) {
        let mut context = self.tier.context();
        self.tier.write(&mut context, FILE, &self.backing, position, data).unwrap();
    }

    fn open(&self) -> Freshness {
        self.tier.opened(FILE, self.backing.stamp().unwrap(), || Reporting::Unwatched)
    }
}

fn spawn<T: Send + 'static>(
    set: &Arc<Set>,
    run: impl FnOnce(&Set) -> T + Send + 'static,
) -> thread::JoinHandle<T> {
    let set = set.clone();
    thread::spawn(move || run(&set))
}

fn check(schedules: usize, scenario: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(scenario, schedules);
    shuttle::check_pct(scenario, schedules, 3);
}

/// Readers of parts and of the whole, one writer: a read that begins after a write is acknowledged sees it.
fn readers_and_a_writer(compress: Compress) {
    let set = set(compress, File::of(vec![1; 2 * BLOCK], 0));
    let acknowledged = Arc::new(AtomicUsize::new(1));
    let windows = [(0, 2 * BLOCK), (100, 50), (BLOCK as u64 - 50, 100)];
    let readers = windows.map(|(offset, len)| {
        let acknowledged = acknowledged.clone();
        spawn(&set, move |set| {
            for _ in 0..2 {
                let oldest = acknowledged.load(Ordering::SeqCst);
                let read = set.read(offset, len).unwrap();
                assert!(read.len() == len && read.iter().all(|&byte| usize::from(byte) >= oldest));
                set.store.worker(0).unwrap().step();
            }
        })
    });
    for value in 2..4 {
        set.write(WritePosition::At(0), &[value; 2 * BLOCK]);
        acknowledged.store(value.into(), Ordering::SeqCst);
    }
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    assert!(set.read(0, 2 * BLOCK).unwrap() == [3; 2 * BLOCK]);
}

#[test]
fn no_read_is_older_than_an_acknowledged_write_with_sync() {
    check(200, || readers_and_a_writer(Compress::Sync));
}

#[test]
fn no_read_is_older_than_an_acknowledged_write_with_async() {
    check(200, || readers_and_a_writer(Compress::Async));
}

#[test]
fn a_missing_block_is_read_once() {
    check(200, || {
        let set = set(Compress::Sync, File::of(vec![7; BLOCK], 0));
        let readers = [(0, BLOCK), (0, BLOCK), (500, 10)].map(|(offset, len)| {
            spawn(&set, move |set| assert!(set.read(offset, len).unwrap() == vec![7; len]))
        });
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert_eq!(set.backing.reads(), 1);
    });
}

/// Reads as a thread that must not wait: a callback reports when another's block has landed.
fn read_when_ready(set: &Set, len: usize) -> Vec<u8> {
    loop {
        let key = match set.tier.prepare(FILE, 0, len) {
            Readiness::Flying(key) => key,
            Readiness::Missing => return set.read(0, len).unwrap(),
            Readiness::Resident(read) => {
                let mut context = set.tier.context();
                return set.tier.read_prepared(&mut context, read, &set.backing, 0, len).unwrap().to_vec();
            }
        };
        let (callback, called) = shuttle::sync::mpsc::channel();
        set.tier.when_landed(key, Box::new(move || callback.send(()).unwrap()));
        called.recv().unwrap();
    }
}

#[test]
fn a_callback_is_called_and_the_block_was_read_once() {
    check(200, || {
        let set = set(Compress::Sync, File::of(vec![7; BLOCK], 0));
        let readers = [(); 3].map(|()| spawn(&set, |set| assert!(read_when_ready(set, BLOCK) == [7; BLOCK])));
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert_eq!(set.backing.reads(), 1);
    });
}

#[test]
fn a_callback_is_called_when_the_read_fails_too() {
    check(200, || {
        // Both attempts of the first: the whole block, then the requested bytes.
        let set = set(Compress::Sync, File::of(vec![7; BLOCK], 2));
        let first = spawn(&set, |set| set.read(0, BLOCK).is_ok());
        let second = spawn(&set, |set| {
            let Readiness::Flying(key) = set.tier.prepare(FILE, 0, BLOCK) else { return };
            let (callback, called) = shuttle::sync::mpsc::channel();
            set.tier.when_landed(key, Box::new(move || callback.send(()).unwrap()));
            called.recv().unwrap();
        });
        assert!(!first.join().unwrap());
        second.join().unwrap();
    });
}

#[test]
fn readers_that_wait_for_each_others_blocks_all_continue() {
    check(100, || {
        let set = set(Compress::Async, File::of(vec![7; 4 * BLOCK], 0));
        let windows = [(0, 3), (1, 3), (2, 2), (0, 4)];
        let readers = windows.map(|(block, count)| {
            spawn(&set, move |set| {
                let read = set.read((block * BLOCK) as u64, count * BLOCK).unwrap();
                assert!(read == vec![7; count * BLOCK]);
            })
        });
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

#[test]
fn an_error_is_the_leaders_own_and_the_others_read_themselves() {
    check(200, || {
        // Both attempts of the leader: the whole block, then the requested bytes.
        let set = set(Compress::Sync, File::of(vec![7; BLOCK], 2));
        let readers = [(); 3].map(|()| spawn(&set, |set| set.read(0, BLOCK)));
        let results = readers.map(|reader| reader.join().unwrap());
        assert_eq!(results.iter().filter(|result| result.is_err()).count(), 1);
        assert!(results.iter().flatten().all(|read| *read == [7; BLOCK]));
    });
}

#[test]
fn a_block_at_the_end_is_as_long_as_the_appends_that_were_acknowledged() {
    check(200, || {
        let set = set(Compress::Sync, File::of(vec![7; 100], 0));
        let acknowledged = Arc::new(AtomicUsize::new(100));
        let readers = [(); 2].map(|()| {
            let acknowledged = acknowledged.clone();
            spawn(&set, move |set| {
                for _ in 0..2 {
                    let least = acknowledged.load(Ordering::SeqCst);
                    assert!(set.read(0, 2 * BLOCK).unwrap().len() >= least);
                }
            })
        });
        for len in [150, 150 + BLOCK] {
            let more = len - acknowledged.load(Ordering::SeqCst);
            set.write(WritePosition::End, &vec![7; more]);
            acknowledged.store(len, Ordering::SeqCst);
        }
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        assert!(set.read(0, 2 * BLOCK).unwrap() == vec![7; 150 + BLOCK]);
    });
}

#[test]
fn own_writers_do_not_count_as_somebody_else() {
    check(200, || {
        let set = set(Compress::Sync, File::of(vec![7; 2 * BLOCK], 0));
        set.open();
        let writers = [0, 1].map(|block| {
            spawn(&set, move |set| set.write(WritePosition::At(block * BLOCK as u64), &[8; BLOCK]))
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!(set.open(), Freshness::Unchanged);
        set.backing.write_at(&[9], 0).unwrap();
        assert_eq!(set.open(), Freshness::Changed);
        assert_eq!(set.read(0, 1).unwrap(), [9]);
    });
}

#[test]
fn an_open_after_a_change_by_others_reads_the_change() {
    check(200, || {
        let set = set(Compress::Async, File::of(vec![1; BLOCK], 0));
        set.open();
        let readers = [(0, BLOCK), (4000, 10)].map(|(offset, len)| {
            spawn(&set, move |set| {
                set.read(offset, len).unwrap();
                set.store.worker(0).unwrap().step();
            })
        });
        set.backing.write_at(&[2; 10], 4000).unwrap();
        assert_eq!(set.open(), Freshness::Changed);
        assert_eq!(set.read(4000, 10).unwrap(), [2; 10]);
        readers.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(set.read(4000, 10).unwrap(), [2; 10]);
    });
}

#[test]
fn on_a_network_file_system_only_the_first_write_after_an_open_asks_the_server() {
    check(20, || {
        let set = set_on(Compress::Sync, File::of(vec![1; BLOCK], 0), true);
        set.open();
        set.read(0, BLOCK).unwrap();
        let mut context = set.tier.context();
        let at = WritePosition::At(0);
        set.tier.write(&mut context, FILE, &set.backing, at, &[2]).unwrap();
        // Nobody answers a stat: the next write would wait for ever.
        let (_answer, until) = shuttle::sync::mpsc::channel();
        let writer = spawn(&set, move |set| {
            let (silent, mut context) = (File::silent(until), set.tier.context());
            set.tier.write(&mut context, FILE, &silent, at, &[3]).unwrap();
        });
        writer.join().unwrap();
        assert_eq!(set.read(0, 1).unwrap(), [2]);
        assert_eq!(set.open(), Freshness::Changed);
    });
}

/// The files of the other's shard are among these.
const OTHERS: std::ops::Range<u64> = 2..100;

#[test]
fn a_server_that_does_not_answer_keeps_no_other_file_waiting() {
    check(20, || {
        let set = set(Compress::Sync, File::default());
        let (answer, until) = shuttle::sync::mpsc::channel();
        let stamp = set.backing.stamp().unwrap();
        set.tier.opened(FILE, stamp, || Reporting::Unwatched);
        let writer = spawn(&set, move |set| {
            let (silent, mut context) = (File::silent(until), set.tier.context());
            set.tier.write(&mut context, FILE, &silent, WritePosition::At(0), &[1]).unwrap();
        });
        for other in OTHERS {
            set.tier.opened(FileId(other), stamp, || Reporting::Unwatched);
        }
        // The server comes back: both stats of the write are answered.
        drop(answer);
        writer.join().unwrap();
    });
}
