//! What a store holds and has done, as numbers.

use eke_model::units::Bytes;

use crate::block::Form;

/// What became of a block on its way in.
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
    /// Looks into the index for a read.
    pub lookups: u64,
    pub hits: u64,
    pub corrupted: u64,
    pub insertions: u64,
    pub no_room: u64,
    pub no_memory: u64,
    pub evictions: u64,
    pub drops: u64,
    pub denser: u64,
    /// Blocks held, by form.
    by_form: [u64; 4],
    /// Bytes of the files that the blocks held stand for, and what they are compressed to.
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

/// A store at one moment; the shards are asked one after another, so that sums may be off by what happened meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// The most memory to hold.
    pub limit: Bytes,
    /// Memory held: slabs, lists and tables.
    pub held: Bytes,
    /// Of that, the tables.
    pub tables: Bytes,
    /// Room for blocks that wait for compression; comes on top of the limit and is bounded by the queues.
    pub queued: Bytes,
    /// What the blocks held are in their files.
    pub raw: Bytes,
    /// What they are compressed.
    pub compressed: Bytes,
    /// Blocks held that are all zero.
    pub zero: u64,
    /// Blocks held as they are.
    pub uncompressed: u64,
    /// Blocks held compressed by the fast codec.
    pub fast: u64,
    /// Blocks held compressed by the dense codec.
    pub dense: u64,
    /// Times that the index was searched for a block to read.
    pub lookups: u64,
    /// Blocks asked for and held.
    pub hits: u64,
    /// Blocks asked for and not held.
    pub misses: u64,
    /// Hits whose bytes had changed in memory, or for which there was no memory to decompress them; they were dropped.
    pub corrupted: u64,
    /// Blocks taken in.
    pub insertions: u64,
    /// Blocks not taken in: everything that could make room was being read, or the limit is too small for one.
    pub no_room: u64,
    /// Blocks not taken in: the kernel gave no memory.
    pub no_memory: u64,
    /// Blocks not taken in: they changed or were dropped on the way.
    pub stale: u64,
    /// Blocks not taken in: they do not compress.
    pub incompressible: u64,
    /// Of these, those that were not tried, because blocks of the same file before them did not compress.
    pub not_tried: u64,
    /// Blocks not taken in: the queue was full.
    pub overrun: u64,
    /// Blocks that went for others.
    pub evictions: u64,
    /// Blocks that were dropped by their owner.
    pub drops: u64,
    /// Blocks that were recompressed by the dense codec.
    pub denser: u64,
}

impl Stats {
    /// Adds what one shard counted.
    pub(crate) fn add(&mut self, counts: &Counts) {
        self.raw = self.raw + Bytes(counts.raw);
        self.compressed = self.compressed + Bytes(counts.compressed);
        let [zero, raw, fast, dense] = counts.by_form;
        let sums = [
            (&mut self.zero, zero),
            (&mut self.uncompressed, raw),
            (&mut self.fast, fast),
            (&mut self.dense, dense),
            (&mut self.lookups, counts.lookups),
            (&mut self.hits, counts.hits),
            (&mut self.corrupted, counts.corrupted),
            (&mut self.insertions, counts.insertions),
            (&mut self.no_room, counts.no_room),
            (&mut self.no_memory, counts.no_memory),
            (&mut self.evictions, counts.evictions),
            (&mut self.drops, counts.drops),
            (&mut self.denser, counts.denser),
        ];
        for (sum, more) in sums {
            *sum += more;
        }
    }

    /// Bytes of files held for each byte of memory; `None` while nothing is held.
    pub fn ratio(&self) -> Option<f64> {
        (self.raw.0 > 0).then(|| self.raw.0 as f64 / self.held.0.max(1) as f64)
    }

    /// The share of blocks asked for that were held; `None` before the first.
    pub fn hit_rate(&self) -> Option<f64> {
        let asked = self.hits + self.misses;
        (asked > 0).then(|| self.hits as f64 / asked as f64)
    }
}
