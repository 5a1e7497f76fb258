//! What kind of store.

use std::fmt;
use std::sync::Arc;

use eke_model::units::{Bytes, MIB};

use crate::codec::{Codec, Lz4, Zstd};
use crate::error::Error;
use crate::shard::MOST_TOGETHER;

/// What happens to blocks that do not compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incompressible {
    /// They are held as they are: for disks so slow that the page cache alone is too small.
    Keep,
    /// They are held as they are where they are few: in a file that compresses otherwise each would be a hole, and cost every
    /// reader of the file a seek of its own. Of a file that does not compress none is held: the page cache does that as well,
    /// and for less.
    KeepFew,
    /// They are not held.
    Refuse,
}

/// What a store is made of.
#[derive(Clone)]
pub struct StoreSpec {
    /// The most memory to hold: slabs, lists and tables.
    pub limit: Bytes,
    /// The size of a block in bytes (the last one of a file may be shorter): a power of two, 4096 to 262144.
    pub block_size: usize,
    /// Shares of the store with a lock each.
    pub shards: usize,
    /// Blocks beside each other in a file that stay and go together, if they came in together: up to 64; 1: each for itself.
    pub together: usize,
    /// Queues of blocks to compress later: one per CPU.
    pub queues: usize,
    /// Blocks in each of them, those in work included.
    pub queue_depth: usize,
    /// Blocks that a codec gets at once, up to 16.
    pub batch: usize,
    /// Compresses what comes in.
    pub fast: Arc<dyn Codec>,
    /// Compresses again what stays.
    pub dense: Option<Arc<dyn Codec>>,
    /// What happens to blocks that do not compress.
    pub incompressible: Incompressible,
}

/// What a shard should have at least, so that its small queue, 3 % of it, is more than one cluster.
const SHARD_MIN: u64 = 32 * MIB;

/// The most blocks of a cluster: a MiB, which a disk that seeks reads for the price of four seeks.
const TOGETHER: u64 = 16;

/// The most blocks that a codec gets at once.
pub(crate) const MOST_AT_ONCE: usize = 16;

/// On Silesia files in blocks of 64 KiB levels 3, 6, 9, 12 leave 3.79, 3.96, 4.03, 4.05 to 1 at 330, 97, 80, 24 MB/s of one
/// core, and are decompressed equally fast: 9 costs little more than 6 does. It is idle processors' time.
const DENSE_LEVEL: i32 = 9;

impl StoreSpec {
    /// The usual store for a machine with so many CPUs: blocks of 64 KiB, four shards to a CPU, LZ4 and then zstd 9.
    pub fn for_cpus(limit: Bytes, cpus: usize) -> Self {
        let cpus = cpus.max(1);
        let shards = (4 * cpus).min(usize::try_from(limit.0 / SHARD_MIN).unwrap_or(usize::MAX)).max(1);
        Self {
            limit,
            block_size: 64 << 10,
            shards,
            // A smaller shard has smaller clusters, for the same reason.
            together: (limit.0 / shards as u64 * TOGETHER / SHARD_MIN).clamp(1, TOGETHER) as usize,
            queues: cpus,
            queue_depth: 32,
            batch: 8,
            fast: Arc::new(Lz4),
            dense: Some(Arc::new(Zstd::level(DENSE_LEVEL))),
            incompressible: Incompressible::KeepFew,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if !self.block_size.is_power_of_two() || !(4 << 10..=256 << 10).contains(&self.block_size) {
            return Err(Error::BlockSize(self.block_size));
        }
        if self.batch > MOST_AT_ONCE {
            return Err(Error::Batch(self.batch));
        }
        if self.together > MOST_TOGETHER {
            return Err(Error::Together(self.together));
        }
        let counts = [
            (self.together, "block in a cluster"),
            (self.shards, "shard"),
            (self.queues, "queue"),
            (self.queue_depth, "block in a queue"),
            (self.batch, "block in a batch"),
        ];
        counts.iter().find(|(count, _)| *count == 0).map_or(Ok(()), |(_, what)| Err(Error::None(what)))
    }
}

impl fmt::Debug for StoreSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dense = self.dense.as_ref().map_or("none", |codec| codec.name());
        write!(
            f,
            "{} in {} shards, blocks of {} bytes, {} then {dense}",
            self.limit,
            self.shards,
            self.block_size,
            self.fast.name()
        )
    }
}
