//! Replays a load in one way.

use eke_cache_policy::admission::DataPath;
use eke_cache_policy::aside::Reason;

use super::aside::{Aside, Held};
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
/// The warm-up is repeated until the mount was there for so long, to decide whether it is of use, but not more often than this.
const SETTLED_S: f64 = 60.0;
const MOST_WARM_UPS: usize = 20;
/// How often the files that the kernel knows are counted, in requests for each file.
const COUNTED_EVERY: usize = 8;

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
    aside: Option<Aside>,
    /// Files of which something is in memory, and requests until they are counted again.
    known: (u64, usize),
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
    tiers.settle();
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
            aside: (way == Way::Eke).then(|| Aside::new(machine.ratio, load.scale)),
            known: (0, 0),
            missed: vec![false; pieces],
            counts: vec![0; load.files.len()],
            over_mount: vec![false; load.files.len()],
        }
    }

    /// Repeats the warm-up: where it takes less than a minute, the mount would not have decided.
    fn settle(&mut self) {
        for _ in 0..MOST_WARM_UPS {
            if self.load.warm == 0 || self.product.as_ref().is_none_or(|product| product.now_s() > SETTLED_S)
            {
                return;
            }
            for &file in &self.load.requests[..self.load.warm] {
                self.request(file);
            }
        }
    }

    fn is_aside(&self) -> bool {
        self.aside.as_ref().is_some_and(Aside::is_aside)
    }

    fn request(&mut self, number: u32) -> Found {
        let file = self.load.files[number as usize];
        let count = &mut self.counts[number as usize];
        *count = count.saturating_add(1);
        let path = self.open(number, file);
        let mut found = Found { work: Work::request(file.bytes), ..Found::default() };
        if self.way != Way::PageCache && !self.is_aside() {
            found.work.opened_through_mount();
            self.aside.iter_mut().for_each(Aside::opened);
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
        if self.is_aside() {
            return DataPath::Passthrough;
        }
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
        self.aside.iter_mut().for_each(|aside| aside.hit(bytes.into()));
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
        self.note_read(pieces.clone(), path, bytes, took_s);
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

    fn note_read(&mut self, mut pieces: std::ops::Range<u32>, path: DataPath, bytes: u64, took_s: f64) {
        let Some(aside) = &mut self.aside else { return };
        if path == DataPath::Cached {
            aside.missed(bytes, took_s);
        } else if pieces.all(|piece| self.page_cache.has_evicted(piece)) {
            aside.refaulted(bytes);
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
            self.aside.iter_mut().for_each(|aside| aside.inserted(bytes.into()));
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

    /// Notes for the product, the store's new size, and the mount's place.
    fn after(&mut self, number: u32, found: &Found) {
        let evicted = self.store.take_evicted();
        let Some(product) = &mut self.product else { return };
        if found.hit_bytes > 0 {
            product.hit(number, found.hit_bytes, time::hit_s(found.hit_bytes));
        }
        let limit = product.served(&found.work, CPUS as f64, self.store.used(), self.machine.ratio);
        let now_s = product.now_s();
        if let Some(limit) = limit.filter(|_| !self.is_aside()) {
            self.store.set_capacity(limit);
        }
        let known = self.known();
        let Some(aside) = &mut self.aside else { return };
        evicted.iter().for_each(|&piece| aside.evicted(self.load.pieces[piece as usize].into()));
        let held = || Held {
            memory: self.memory,
            page_cache: self.page_cache.used(),
            store: self.store.used(),
            limit: self.store.capacity(),
            files: known,
        };
        match aside.step(now_s, held) {
            None => {}
            Some(None) => self.product.iter_mut().for_each(Product::has_returned),
            Some(Some(reason)) => self.leave(reason),
        }
    }

    /// The mount leaves, with its pages and the store. Where all fits, the directory's page cache gets what they had.
    fn leave(&mut self, reason: Reason) {
        for (file, over_mount) in self.load.files.iter().zip(std::mem::take(&mut self.over_mount)) {
            for piece in file.first..file.first + file.pieces {
                let bytes = self.load.pieces[piece as usize];
                if reason != Reason::Fits && over_mount {
                    self.page_cache.drop_piece(piece, bytes);
                }
                if reason == Reason::Fits && self.store.has(piece) && !self.page_cache.has(piece) {
                    self.page_cache.insert(piece, bytes);
                }
            }
        }
        self.over_mount = vec![false; self.load.files.len()];
        self.store.set_capacity(0);
    }

    /// Files of which something is in memory, counted now and then.
    fn known(&mut self) -> u64 {
        let (known, left) = self.known;
        if left > 0 {
            self.known.1 -= 1;
            return known;
        }
        let (page_cache, store) = (&self.page_cache, &self.store);
        let is_known = |file: &&File| {
            (file.first..file.first + file.pieces).any(|piece| page_cache.has(piece) || store.has(piece))
        };
        let known = self.load.files.iter().filter(is_known).count() as u64;
        self.known = (known, self.load.files.len() / COUNTED_EVERY);
        known
    }
}
