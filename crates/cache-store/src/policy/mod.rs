//! The eviction policy.
//!
//! A policy orders *slots*, the numbers that a shard gives to its blocks. It sees neither keys nor bytes. A cluster has the
//! slot of its leader; what this module calls a block is a cluster of the shard. Blocks weigh in bytes, because compressed sizes
//! differ by a factor of a hundred.
//!
//! The policy is S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi: *FIFO queues are all you need for cache eviction*, SOSP '23) with
//! one bit of frequency. Its authors found one bit better than two for block I/O behind another cache (the first author's
//! blog, blog.jasony.me). This store is behind the kernel's page cache. `experiments/cache-replay` compares it with other
//! policies.

mod ghosts;
mod queues;
mod s3fifo;

pub use s3fifo::S3Fifo;

/// How long a block will probably stay, the shortest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Heat {
    /// In the small queue, not requested since it was admitted.
    New,
    /// In the small queue, and requested.
    Requested,
    /// In the main queue.
    Main,
    /// In the main queue, and requested since it was last renewed.
    MainRequested,
}

/// Where an admitted block enters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entrance {
    /// The small queue, unless a ghost recognises it.
    Small,
    /// The main queue: somebody asked for it to stay.
    Main,
}

/// The number of a stored block, chosen by the shard. Small numbers are reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot(pub u32);

impl Slot {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
