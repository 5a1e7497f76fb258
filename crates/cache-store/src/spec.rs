//! The options of a store.

use std::fmt;
use std::sync::Arc;

use eke_model::units::{Bytes, MIB};

use crate::codec::{Codec, Lz4, Zstd};
use crate::error::Error;
use crate::evicted::EvictionListener;
use crate::shard::MAX_CLUSTER;

/// What happens to blocks that do not compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incompressible {
    /// All are stored uncompressed: for disks so slow that the page cache alone is too small.
    Keep,
    /// They are stored uncompressed in files of which other blocks compressed: there each would be a hole that costs every reader a
    /// seek. Of a file that does not compress none is stored: the page cache does that as well, for less.
    KeepFew,
    /// They are not stored.
    Refuse,
}

/// The options of a store.
#[derive(Clone)]
pub struct StoreSpec {
    /// The limit of its memory: slabs, lists and tables.
    pub limit: Bytes,
    /// The size of a block in bytes: a power of two, 4096 to 262144. A file's last block may be shorter.
    pub block_size: usize,
    /// Shares of the store with a lock each.
    pub shards: usize,
    /// Neighbouring blocks that form a cluster if they are admitted together: up to 64; 1: each block alone.
    pub together: usize,
    /// Queues of blocks to compress later: one per CPU.
    pub queues: usize,
    /// Blocks in each queue, including those that workers have.
    pub queue_depth: usize,
    /// Blocks in a batch for a codec, up to 16.
    pub batch: usize,
    /// Compresses blocks when they are admitted.
    pub fast: Arc<dyn Codec>,
    /// Recompresses blocks that stay.
    pub high_ratio: Option<Arc<dyn Codec>>,
    /// What happens to blocks that do not compress.
    pub incompressible: Incompressible,
    /// Gets the blocks that leave.
    pub listener: Option<Arc<dyn EvictionListener>>,
}

/// The least memory of a shard: its small queue, 3 % of it, must be more than one cluster.
const SHARD_MIN: u64 = 32 * MIB;

/// The blocks of a cluster: 1 MiB, which a spinning disk reads in the time of four seeks.
const TOGETHER: u64 = 16;

/// The most blocks in a batch.
pub(crate) const MAX_BATCH: usize = 16;

/// zstd levels 3, 6, 9, 12 compress Silesia files in blocks of 64 KiB by 3.79, 3.96, 4.03, 4.05 at 330, 97, 80, 24 MB/s of
/// one core. They decompress equally fast. 9 costs little more than 6, and uses idle CPU time.
const HIGH_RATIO_LEVEL: i32 = 9;

impl StoreSpec {
    /// The default for a machine with this many CPUs: blocks of 64 KiB, four shards per CPU, LZ4, then zstd 9.
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
            high_ratio: Some(Arc::new(Zstd::level(HIGH_RATIO_LEVEL))),
            incompressible: Incompressible::KeepFew,
            listener: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if !self.block_size.is_power_of_two() || !(4 << 10..=256 << 10).contains(&self.block_size) {
            return Err(Error::BlockSize(self.block_size));
        }
        if self.batch > MAX_BATCH {
            return Err(Error::Batch(self.batch));
        }
        if self.together > MAX_CLUSTER {
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
        let high_ratio = self.high_ratio.as_ref().map_or("none", |codec| codec.name());
        write!(
            f,
            "{} in {} shards, blocks of {} bytes, {} then {high_ratio}",
            self.limit,
            self.shards,
            self.block_size,
            self.fast.name()
        )
    }
}
