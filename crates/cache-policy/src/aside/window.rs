//! Two samples of a mount, and what lies between them.

use std::time::Duration;

use eke_model::units::Bytes;

/// What an open costs here and not without the mount: two requests, for the open and the close, of which each wakes the worker (measured on
/// two virtual CPUs with Linux 6.18, fuser 0.18).
const OPEN_US: f64 = 60.0;
/// The same for a read of the worker's memory, beside the decompression.
const READ_US: f64 = 15.0;
/// What a block from the store takes a usual processor.
const HIT_US: f64 = 40.0;
/// Memory of the kernel for each file that is known through the mount, too: its inode and name (`fuse_inode`, `dentry`), and as much of the
/// backing file system, where they are held although nobody asks there.
const FILE: u64 = 2048;
/// The share of time below which reads of the disk do not matter.
const HARDLY: f64 = 0.02;
/// The share of time that answers of the store would save instead of refaults, before it returns.
const SHORT: f64 = 0.1;
/// Fewer opens and reads in a window say nothing.
const BUSY: u64 = 100;
/// The largest part of a file that is read again at once.
const BLOCK: u32 = 65_536;

/// A mount's counters and memory at one moment. Counters never fall while a worker lives.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Sample {
    /// By a monotonic clock.
    pub now: Duration,
    /// Files opened.
    pub opens: u64,
    /// Blocks from the store.
    pub hits: u64,
    /// Requested blocks from the disk.
    pub misses: u64,
    /// Blocks inserted into the store.
    pub inserted: u64,
    /// Blocks evicted from it.
    pub evicted: u64,
    /// What a block from the store takes, in µs.
    pub hit_us: f64,
    /// What a block from the disk takes, in µs; 0: unknown.
    pub miss_us: f64,
    /// The mean size of such a block; 0: unknown.
    pub miss_bytes: u32,
    /// Size of the stored blocks in their files.
    pub raw: Bytes,
    /// Memory for them.
    pub held: Bytes,
    /// The most that the store may have.
    pub limit: Bytes,
    /// Files that the kernel knows.
    pub files: u64,
    /// Memory that is unused, of the machine or of the tightest group.
    pub free: Bytes,
    /// Memory that is unused or holds clean file pages, of the same.
    pub available: Bytes,
    /// Little is unused there: the kernel drops what it could use.
    pub is_full: bool,
    /// File pages that were read again after they had been dropped, on the whole machine.
    pub refaulted: Bytes,
}

/// From one sample to a later one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// The first.
    pub begin: Sample,
    /// The last.
    pub end: Sample,
}

impl Window {
    /// Its time.
    pub fn length(&self) -> Duration {
        self.end.now.saturating_sub(self.begin.now)
    }

    fn us(&self) -> f64 {
        self.length().as_secs_f64() * 1e6
    }

    fn count(&self, of: impl Fn(&Sample) -> u64) -> u64 {
        of(&self.end).saturating_sub(of(&self.begin))
    }

    /// True if there are enough requests to judge by.
    pub fn is_busy(&self) -> bool {
        self.count(|s| s.opens) + self.count(|s| s.hits) + self.count(|s| s.misses) >= BUSY
    }

    /// True if misses keep the disk busy.
    pub fn reads_disk(&self) -> bool {
        self.count(|s| s.misses) as f64 * self.end.miss_us >= HARDLY * self.us()
    }

    /// True while what is missing goes into the store, and little leaves it.
    pub fn is_filling(&self) -> bool {
        let (inserted, evicted) = (self.count(|s| s.inserted), self.count(|s| s.evicted));
        inserted * 4 > self.count(|s| s.misses) && evicted * 2 < inserted
    }

    /// At most so many µs of the disk were saved by hits: as if each were a miss without the mount.
    pub fn saved_us(&self) -> f64 {
        self.count(|s| s.hits) as f64 * (self.end.miss_us - self.end.hit_us - READ_US).max(0.0)
    }

    /// So many µs went into requests that there would not be without the mount.
    pub fn spent_us(&self) -> f64 {
        self.count(|s| s.opens) as f64 * OPEN_US
    }

    /// Memory that compression saves, less what the mount's files take; in bytes, negative if that is more.
    pub fn gained(&self) -> i64 {
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let saved = signed(self.end.raw.0).saturating_sub(signed(self.end.held.0));
        saved.saturating_sub(signed(self.end.files.saturating_mul(FILE)))
    }

    /// True if the store's content would fit into the memory uncompressed. What the page cache has of the same files may not be counted
    /// twice, and how much that is nobody knows: either unused memory suffices, or half of all that the kernel could use.
    pub fn fits_uncompressed(&self) -> bool {
        let Sample { raw, held, free, available, .. } = self.end;
        raw.saturating_sub(held) <= free || raw.0.saturating_mul(2) <= (available + held).0
    }

    /// True if the store could save much of the time of refaults, which it cannot on a disk as fast as memory. They may be of any file on the
    /// machine.
    pub fn is_short_of_memory(&self) -> bool {
        let block = if self.end.miss_bytes == 0 { BLOCK } else { self.end.miss_bytes.clamp(4096, BLOCK) };
        let blocks = self.count(|s| s.refaulted.0) as f64 / f64::from(block);
        let saved_us = (self.end.miss_us - HIT_US - READ_US).max(0.0);
        blocks * saved_us >= SHORT * self.us()
    }

    /// True if requests cost so much more than hits save that somebody could notice.
    pub fn loses(&self) -> bool {
        self.spent_us() - self.saved_us() >= HARDLY * self.us()
    }
}
