//! Which block goes when room is needed.
//!
//! A policy orders *slots*, the numbers that a shard gives to the blocks it holds; it never sees keys or bytes. A cluster of blocks
//! has the slot of its leader; where this module says block, a shard has a cluster. All of them
//! weigh in bytes, because compressed blocks differ by a factor of a hundred.
//!
//! The order is S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi: *FIFO queues are all you need for cache eviction*, SOSP '23) with one bit of frequency, which its authors found better than two for block I/O behind another
//! cache (the first author's blog, blog.jasony.me): exactly this store's place, behind the kernel's page cache.
//! `experiments/cache-replay` compares it with others.

mod ghosts;
mod queues;
mod s3fifo;

pub use s3fifo::S3Fifo;

/// The number of a block that is held, chosen by whoever holds it; small numbers are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot(pub u32);

impl Slot {
    /// As an index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
