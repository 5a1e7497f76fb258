//! Disks, and what each step costs a processor.
//!
//! The costs are of Linux 6.18 on two virtual CPUs. They are from stored results: `web-hot.json` (all in the page cache: 4.7 GB/s with two CPUs),
//! `web-fast.json` (3.3 GB/s from a disk as fast as memory), `names.json` (5,000 files opened and read through a mount: 0.14 ms each more than without), and
//! the LZ4 rates of `store.json`.

use eke_cache_policy::admission::cost::ROUND_TRIP_US;

/// The most bytes of one read. 0.5 to 0.6 MB is the mean of `web.json` on ext4.
const READ: u64 = 512 << 10;
/// The costs' block.
const BLOCK: f64 = 65_536.0;

/// A request at server and client, without its bytes.
const REQUEST_US: f64 = 50.0;
/// 64 KiB from the page cache to the client.
const COPY_US: f64 = 28.0;
/// 64 KiB from the disk to the page cache, and each read.
const BLOCK_LAYER_US: f64 = 12.0;
const READ_US: f64 = 10.0;
/// Opening and closing a file through a mount, in which a worker answers.
const OPEN_US: f64 = 100.0;
/// The part of a FUSE request that does not depend on its bytes.
const ROUND_TRIP_SHARE: f64 = 0.75;
/// 64 KiB found in the store, and decompressed.
const HIT_US: f64 = 18.0;
/// 64 KiB compressed by LZ4.
const COMPRESS_US: f64 = 90.0;

/// A disk of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Disk {
    /// Its name.
    pub name: String,
    /// Bytes a second.
    pub rate: f64,
    /// The time of each read beside the transfer, during which the disk does nothing else.
    pub positioning_s: f64,
    /// The time of each read that does not keep other reads waiting.
    pub latency_s: f64,
}

impl Disk {
    /// The disk's time for `reads` reads of `bytes` bytes in all.
    pub fn seconds(&self, reads: u64, bytes: u64) -> f64 {
        reads as f64 * self.positioning_s + bytes as f64 / self.rate
    }
}

/// The reads that a run of bytes needs.
pub fn reads_of(run: u64) -> u64 {
    run.div_ceil(READ)
}

/// The least share of a read that a piece of `bytes` needs, if it is one of `pieces` in its file.
pub(super) fn share_of_read(bytes: u64, pieces: u32) -> f64 {
    (bytes as f64 / READ as f64).max(1.0 / f64::from(pieces))
}

/// Seconds to look a piece up in the store and decompress it.
pub fn hit_s(bytes: u64) -> f64 {
    HIT_US * 1e-6 * bytes as f64 / BLOCK
}

/// Seconds to compress a piece.
pub fn compress_s(bytes: u64) -> f64 {
    COMPRESS_US * 1e-6 * bytes as f64 / BLOCK
}

/// Processor time of reads from the disk.
pub fn block_layer_s(reads: u64, bytes: u64) -> f64 {
    1e-6 * (READ_US * reads as f64 + BLOCK_LAYER_US * bytes as f64 / BLOCK)
}

/// What one request needs.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Seconds of a processor.
    pub cpu_s: f64,
    /// Seconds of the disk.
    pub disk_s: f64,
    /// Reads from the disk.
    pub reads: u64,
}

impl Work {
    /// A request for a file of `bytes`, from the page cache.
    pub fn request(bytes: u64) -> Self {
        Self { cpu_s: 1e-6 * (REQUEST_US + COPY_US * bytes as f64 / BLOCK), ..Self::default() }
    }

    /// The file is on a mount.
    pub fn opened_through_mount(&mut self) {
        self.cpu_s += 1e-6 * OPEN_US;
    }

    /// `bytes` of it pass through a worker.
    pub fn through_worker(&mut self, bytes: u64) {
        let (whole, round_trip) = (bytes as f64 / BLOCK, f64::from(ROUND_TRIP_US));
        let fixed = ROUND_TRIP_SHARE * whole.ceil();
        self.cpu_s += 1e-6 * round_trip * (fixed + (1.0 - ROUND_TRIP_SHARE) * whole);
    }

    /// A run of `bytes` is read from the disk.
    pub fn from_disk(&mut self, disk: &Disk, bytes: u64) {
        let reads = reads_of(bytes);
        self.reads += reads;
        self.disk_s += disk.seconds(reads, bytes);
        self.cpu_s += block_layer_s(reads, bytes);
    }

    /// The time until the busier of disk and `cpus` processors has done it: the model's clock, as if always many requests wait.
    pub fn clock_s(&self, cpus: f64) -> f64 {
        self.disk_s.max(self.cpu_s / cpus)
    }
}
