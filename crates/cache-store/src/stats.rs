//! Counters and statistics of a store.

use eke_model::units::Bytes;

use crate::block::Form;

/// The result of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inserted {
    Done,
    Present,
    NoRoom,
    NoMemory,
}

/// What one shard counts, under its lock.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    /// Searches of the index for a read.
    pub lookups: u64,
    pub hits: u64,
    pub corrupted: u64,
    pub insertions: u64,
    pub no_room: u64,
    pub no_memory: u64,
    pub evictions: u64,
    pub drops: u64,
    pub recompressions: u64,
    /// Stored blocks, by form.
    by_form: [u64; 4],
    /// The size of the stored blocks in their files; their compressed size follows.
    pub raw: u64,
    pub compressed: u64,
}

impl Counts {
    pub fn add(&mut self, form: Form, raw: u32, compressed: u32) {
        self.by_form[form as usize] += 1;
        self.raw += u64::from(raw);
        self.compressed += u64::from(compressed);
    }

    pub fn take(&mut self, form: Form, raw: u32, compressed: u32) {
        self.by_form[form as usize] -= 1;
        self.raw -= u64::from(raw);
        self.compressed -= u64::from(compressed);
    }

    pub fn record_insertion(&mut self, outcome: Inserted) {
        match outcome {
            Inserted::Done => self.insertions += 1,
            Inserted::NoRoom => self.no_room += 1,
            Inserted::NoMemory => self.no_memory += 1,
            Inserted::Present => {}
        }
    }

    pub fn blocks(&self) -> u64 {
        self.by_form.iter().sum()
    }
}

/// A store at one moment. Shards are read one after another, so sums may be slightly inconsistent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// The limit of the store's memory.
    pub limit: Bytes,
    /// Memory in use: slabs, lists and tables.
    pub held: Bytes,
    /// The tables' share of it.
    pub tables: Bytes,
    /// Buffers of blocks that wait for compression. They come on top of the limit; the queues bound them.
    pub queued: Bytes,
    /// The size of the stored blocks in their files.
    pub raw: Bytes,
    /// Their compressed size.
    pub compressed: Bytes,
    /// Stored blocks that are all zero.
    pub zero: u64,
    /// Blocks stored uncompressed.
    pub uncompressed: u64,
    /// Blocks stored as the fast codec compressed them.
    pub fast: u64,
    /// Blocks stored as the high-ratio codec recompressed them.
    pub recompressed: u64,
    /// Searches of the index for a block to read.
    pub lookups: u64,
    /// Requested blocks that were stored.
    pub hits: u64,
    /// Requested blocks that were not stored.
    pub misses: u64,
    /// Hits whose bytes had changed in memory, or that could not be decompressed for lack of memory. They were dropped.
    pub corrupted: u64,
    /// Blocks admitted.
    pub insertions: u64,
    /// Blocks refused: all that could be evicted was being read, or the limit is too small for a block.
    pub no_room: u64,
    /// Blocks refused: the kernel gave no memory.
    pub no_memory: u64,
    /// Blocks refused: they changed or were dropped meanwhile.
    pub stale: u64,
    /// Blocks refused: they do not compress.
    pub incompressible: u64,
    /// Of these, blocks not tried, because earlier blocks of the file did not compress.
    pub not_tried: u64,
    /// Blocks refused: the queue was full.
    pub overrun: u64,
    /// Blocks evicted for others.
    pub evictions: u64,
    /// Blocks dropped by their owner.
    pub drops: u64,
    /// Blocks recompressed by the high-ratio codec so far.
    pub recompressions: u64,
}

impl Stats {
    /// Adds the counters of one shard.
    pub(crate) fn add(&mut self, counts: &Counts) {
        self.raw = self.raw + Bytes(counts.raw);
        self.compressed = self.compressed + Bytes(counts.compressed);
        let [zero, raw, fast, recompressed] = counts.by_form;
        let sums = [
            (&mut self.zero, zero),
            (&mut self.uncompressed, raw),
            (&mut self.fast, fast),
            (&mut self.recompressed, recompressed),
            (&mut self.lookups, counts.lookups),
            (&mut self.hits, counts.hits),
            (&mut self.corrupted, counts.corrupted),
            (&mut self.insertions, counts.insertions),
            (&mut self.no_room, counts.no_room),
            (&mut self.no_memory, counts.no_memory),
            (&mut self.evictions, counts.evictions),
            (&mut self.drops, counts.drops),
            (&mut self.recompressions, counts.recompressions),
        ];
        for (sum, more) in sums {
            *sum += more;
        }
    }

    /// Bytes of files per byte of memory; `None` while the store is empty.
    pub fn ratio(&self) -> Option<f64> {
        (self.raw.0 > 0).then(|| self.raw.0 as f64 / self.held.0.max(1) as f64)
    }

    /// The share of requested blocks that were stored; `None` before the first request.
    pub fn hit_rate(&self) -> Option<f64> {
        let asked = self.hits + self.misses;
        (asked > 0).then(|| self.hits as f64 / asked as f64)
    }
}
