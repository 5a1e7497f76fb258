//! Replays a load in one way.

use eke_cache_policy::admission::DataPath;

use super::load::{File, Load};
use super::page_cache::{Eviction, PageCache};
use super::product::Product;
use super::queue::CPUS;
use super::store::{Order, Store};
use super::time::{self, Work};
use super::{Machine, Way};

/// The store keeps blocks that save at least an eighth.
const LEAST_RATIO: f64 = 8.0 / 7.0;
/// A file goes through the page cache after so many requests, if files do so at all only when hot.
const HOT: u8 = 3;
/// Counts of requests are halved after so many requests for each file.
const HALVED_AFTER: usize = 4;

/// What the measured requests of a replay read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reads {
    /// What each request needs.
    pub works: Vec<Work>,
    /// Requests that read from the disk.
    pub missed: u64,
    /// Requested bytes.
    pub bytes: u64,
    /// Bytes from the disk.
    pub disk_bytes: u64,
}

/// Both tiers in the middle of a replay.
struct Tiers<'a> {
    load: &'a Load,
    machine: &'a Machine,
    way: Way,
    /// The memory of the sample.
    memory: u64,
    page_cache: PageCache,
    store: Store,
    product: Option<Product>,
    /// Pieces that were missed before, for late admission.
    missed: Vec<bool>,
    /// Requests for each file, halved now and then.
    counts: Vec<u8>,
    /// Whether the page cache has pages of each file over the mount. Other pages are the backing file's.
    over_mount: Vec<bool>,
}

/// What one request found.
#[derive(Debug, Default)]
struct Found {
    work: Work,
    disk_bytes: u64,
    /// Found in the store.
    hit_bytes: u64,
}

/// Replays with the kernel's page cache and the product's eviction.
pub fn replay(load: &Load, machine: &Machine, way: Way) -> Reads {
    let order = match way {
        Way::Exclusive(_) => Order::Lru,
        Way::ResidentFirst(_) => Order::ResidentFirst,
        _ => Order::S3Fifo,
    };
    replay_with(load, machine, way, Eviction::TwoLists, order)
}

/// Replays with these orders of eviction.
pub fn replay_with(load: &Load, machine: &Machine, way: Way, eviction: Eviction, order: Order) -> Reads {
    let mut tiers = Tiers::new(load, machine, way, eviction, order);
    let mut reads = Reads::default();
    for (number, &file) in load.requests.iter().enumerate() {
        if number % (HALVED_AFTER * load.files.len()) == 0 {
            tiers.counts.iter_mut().for_each(|count| *count /= 2);
        }
        let found = tiers.request(file);
        if number >= load.warm {
            reads.bytes += load.files[file as usize].bytes;
            reads.disk_bytes += found.disk_bytes;
            reads.missed += u64::from(found.disk_bytes > 0);
            reads.works.push(found.work);
        }
    }
    reads
}

impl<'a> Tiers<'a> {
    fn new(load: &'a Load, machine: &'a Machine, way: Way, eviction: Eviction, order: Order) -> Self {
        let pieces = load.pieces.len();
        let memory = machine.memory.0 / load.scale;
        let mut store = Store::new(order, pieces);
        store.set_capacity(memory * u64::from(way.percent()) / 100);
        Self {
            load,
            machine,
            way,
            memory,
            page_cache: PageCache::new(eviction, pieces),
            store,
            product: (way == Way::Eke).then(|| Product::new(machine.memory, load.scale)),
            missed: vec![false; pieces],
            counts: vec![0; load.files.len()],
            over_mount: vec![false; load.files.len()],
        }
    }

    fn request(&mut self, number: u32) -> Found {
        let file = self.load.files[number as usize];
        let count = &mut self.counts[number as usize];
        *count = count.saturating_add(1);
        let path = self.open(number, file);
        let mut found = Found { work: Work::request(file.bytes), ..Found::default() };
        if self.way != Way::PageCache {
            found.work.opened_through_mount();
        }
        let mut run = 0;
        for piece in file.first..file.first + file.pieces {
            if self.is_in_memory(piece, path, &mut found) {
                self.end_run(number, piece, std::mem::take(&mut run), path, &mut found);
            } else {
                run += 1;
            }
        }
        self.end_run(number, file.first + file.pieces, run, path, &mut found);
        self.after(number, &found);
        found
    }

    /// The path of the file's reads.
    fn open(&mut self, number: u32, file: File) -> DataPath {
        let Some(product) = &self.product else {
            return if self.way == Way::PageCache { DataPath::Passthrough } else { DataPath::Cached };
        };
        let (path, drops) = product.open(number, file.bytes);
        if drops {
            let over_mount = std::mem::take(&mut self.over_mount[number as usize]);
            for piece in file.first..file.first + file.pieces {
                self.store.remove(piece);
                if over_mount {
                    self.page_cache.drop_piece(piece, self.load.pieces[piece as usize]);
                }
            }
        }
        self.over_mount[number as usize] |= path == DataPath::Cached;
        path
    }

    /// Looks a piece up in both tiers.
    fn is_in_memory(&mut self, piece: u32, path: DataPath, found: &mut Found) -> bool {
        let bytes = self.load.pieces[piece as usize];
        if self.page_cache.request(piece, bytes) {
            return true;
        }
        if path == DataPath::Passthrough || !self.store.request(piece) {
            return false;
        }
        found.work.through_worker(bytes.into());
        found.work.cpu_s += time::hit_s(bytes.into());
        found.hit_bytes += u64::from(bytes);
        if matches!(self.way, Way::Exclusive(_)) {
            self.store.remove(piece);
        }
        self.enter_page_cache(piece);
        true
    }

    /// Reads the `run` pieces before `end` from the disk.
    fn end_run(&mut self, number: u32, end: u32, run: u32, path: DataPath, found: &mut Found) {
        if run == 0 {
            return;
        }
        let pieces = end - run..end;
        let bytes: u64 = pieces.clone().map(|piece| u64::from(self.load.pieces[piece as usize])).sum();
        let before = found.work;
        found.work.from_disk(&self.machine.disk, bytes);
        found.disk_bytes += bytes;
        let took_s = found.work.disk_s - before.disk_s + found.work.cpu_s - before.cpu_s;
        let mut admits = path == DataPath::Cached;
        if admits {
            found.work.through_worker(bytes);
            if let Some(product) = &self.product {
                let block = u64::from(end - run - self.load.files[number as usize].first);
                admits = product.read(number, block, bytes, took_s);
            }
        }
        for piece in pieces {
            if admits {
                self.admit(piece, found);
            }
            self.enter_page_cache(piece);
        }
    }

    /// Stores a piece that was missed, if the way does that.
    fn admit(&mut self, piece: u32, found: &mut Found) {
        let was_missed = std::mem::replace(&mut self.missed[piece as usize], true);
        let admits = match self.way {
            Way::PageCache | Way::Exclusive(_) => false,
            Way::Late(_) => was_missed,
            _ => true,
        };
        if admits {
            self.compress(piece, &mut found.work);
        }
    }

    /// Compresses a piece, and stores it if that saves enough.
    fn compress(&mut self, piece: u32, work: &mut Work) {
        let bytes = self.load.pieces[piece as usize];
        let took_s = time::compress_s(bytes.into());
        let (file, pays) = (self.file_of(piece) as u32, self.compresses());
        if let Some(product) = &mut self.product {
            product.compressed(file, bytes.into(), took_s, pays);
        }
        if pays {
            work.cpu_s += took_s;
            self.store.insert(piece, (f64::from(bytes) / self.machine.ratio).ceil() as u32);
        }
    }

    fn compresses(&self) -> bool {
        self.machine.ratio >= LEAST_RATIO
    }

    /// Puts a piece into the page cache, unless its file is read by direct I/O. The page cache has what the store leaves.
    fn enter_page_cache(&mut self, piece: u32) {
        if self.way != Way::Direct || !self.compresses() || self.is_hot(piece) {
            self.page_cache.insert(piece, self.load.pieces[piece as usize]);
            self.store.note_resident(piece, true);
        }
        while self.page_cache.used() + self.store.used() > self.memory {
            let Some(gone) = self.page_cache.evict(&self.load.pieces) else { break };
            self.store.note_resident(gone, false);
            if matches!(self.way, Way::Exclusive(_)) && !self.store.has(gone) {
                // Somebody compresses it; whose request that is, is unknown.
                self.compress(gone, &mut Work::default());
            }
        }
    }

    fn is_hot(&self, piece: u32) -> bool {
        self.counts[self.file_of(piece)] >= HOT
    }

    fn file_of(&self, piece: u32) -> usize {
        self.load.files.partition_point(|file| file.first <= piece) - 1
    }

    /// Notes for the product, and the store's new size.
    fn after(&mut self, number: u32, found: &Found) {
        let Some(product) = &mut self.product else { return };
        if found.hit_bytes > 0 {
            product.hit(number, found.hit_bytes, time::hit_s(found.hit_bytes));
        }
        let limit = product.served(&found.work, CPUS as f64, self.store.used(), self.machine.ratio);
        if let Some(limit) = limit {
            self.store.set_capacity(limit);
        }
    }
}
